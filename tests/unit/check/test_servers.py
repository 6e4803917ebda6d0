"""Which rights a user lacks."""

import pytest

from hascheduler.check.servers import Privileges, missing_privileges

NEEDED: Privileges = {"": frozenset({"find"}), "jobs": frozenset({"insert", "update"})}


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ({"": frozenset({"find", "insert", "update"})}, []),
        ({"": frozenset({"find"}), "jobs": frozenset({"insert", "update"})}, []),
        ({"jobs": frozenset({"find", "insert", "update"})}, ["find on all collections"]),
        ({"": frozenset({"find"}), "schedules": frozenset({"update"})}, ["insert on jobs", "update on jobs"]),
        ({}, ["find on all collections", "insert on jobs", "update on jobs"]),
    ],
)
def test_an_action_is_given_on_its_collection_or_on_all(given: Privileges, missing: list[str]) -> None:
    filled = {collection: given.get(collection, frozenset()) for collection in ("", "jobs", "schedules")}
    assert missing_privileges(NEEDED, filled) == missing
