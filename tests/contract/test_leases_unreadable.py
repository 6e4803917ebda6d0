"""`LeaseStore`: an unreadable document in the place of a lease needs no repair by hand."""

from typing import Any

import pytest

from hascheduler.errors import InvalidInput
from hascheduler.model.collection import Collection
from tests.contract.backends import Backend, on
from tests.contract.checks import RACERS, raced
from tests.factories import make_lease

# A Lease of the cluster can't be any document: its schema says what it may hold.
pytestmark = on("memory", "mongomock", "pymongo", "motor")


@pytest.mark.parametrize(
    "garbage",
    [
        {},
        {"term": "seven"},
        {"holder": None, "term": 3},
        {"v": 1, "holder": "r1", "term": 1, "renewals": [1], "a": {"$gt": 1}},
    ],
)
async def test_an_unreadable_lease_counts_as_none_and_one_of_many_candidates_replaces_it(
    backend: Backend, garbage: dict[str, Any]
) -> None:
    await backend.behind.insert(Collection.LEASES, {"_id": "default", **garbage})
    assert await backend.leases.get("default") is None
    made = await raced(backend.leases.create(make_lease(f"r{number}")) for number in range(RACERS))
    assert made.count(True) == 1
    assert await backend.leases.get("default") == make_lease(f"r{made.index(True)}")


async def test_a_lease_of_a_later_release_is_never_replaced(backend: Backend) -> None:
    await backend.behind.insert(Collection.LEASES, {"_id": "default", "v": 999})
    with pytest.raises(InvalidInput):
        await backend.leases.get("default")
    with pytest.raises(InvalidInput):
        await backend.leases.create(make_lease())
