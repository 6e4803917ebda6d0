"""`LeaseStore`: who leads, by name; every write is one compare-and-set."""

from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest

from hascheduler.errors import InvalidInput
from hascheduler.model.collection import Collection
from hascheduler.model.leadership import LeaseRecord
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import LeaseStore
from tests.contract.backends import Backend, on
from tests.contract.checks import (
    RACERS,
    an_update_of_another_version_changes_nothing,
    of_racing_creates_one_wins,
    of_racing_updates_one_wins,
    raced,
)
from tests.factories import NOW, make_lease

each_store = on("memory", "mongomock", "pymongo", "motor", "kubernetes")


@each_store
async def test_a_second_create_loses_and_changes_nothing(backend: Backend) -> None:
    await backend.leases.create(make_lease("r1"))
    assert await backend.leases.create(make_lease("r2")) is False
    assert await backend.leases.get("default") == make_lease("r1")


@each_store
@pytest.mark.parametrize(
    "proposed",
    [make_lease("r2", term=2, transitions=1, endpoint=""), make_lease("", renewals=1)],
    ids=["taken", "released"],
)
async def test_an_update_replaces_the_version_it_expects(backend: Backend, proposed: LeaseRecord) -> None:
    assert await backend.leases.get("default") is None
    await backend.leases.create(make_lease("r1"))
    assert await backend.leases.update(make_lease("r1"), proposed) is True
    assert await backend.leases.get("default") == proposed


@each_store
@pytest.mark.parametrize(
    "check", [an_update_of_another_version_changes_nothing, of_racing_creates_one_wins, of_racing_updates_one_wins]
)
async def test_each_write_compares_and_sets(
    backend: Backend, check: Callable[[LeaseStore], Coroutine[Any, Any, None]]
) -> None:
    await check(backend.leases)


@each_store
async def test_only_holder_term_and_renewals_distinguish_versions(backend: Backend) -> None:
    await backend.leases.create(make_lease())
    expected = replace(make_lease(), renewed_at_ms=WallMs(NOW + 5), endpoint="elsewhere", transitions=9)
    assert await backend.leases.update(expected, make_lease(renewals=1)) is True


@each_store
async def test_an_update_of_a_deleted_lease_creates_none(backend: Backend) -> None:
    await backend.leases.create(make_lease())
    await backend.behind.delete(Collection.LEASES, "default")
    assert await backend.leases.update(make_lease(), make_lease(renewals=1)) is False
    assert await backend.leases.get("default") is None


@each_store
async def test_names_do_not_meet(backend: Backend) -> None:
    await backend.leases.create(make_lease("r1", name="a"))
    assert await backend.leases.create(make_lease("r2", name="b")) is True
    assert await backend.leases.get("a") == make_lease("r1", name="a")


# An unreadable document in the place of a lease needs no repair by hand. In the cluster, a schema keeps it out.
any_document = on("memory", "mongomock", "pymongo", "motor")


@any_document
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


@any_document
async def test_a_lease_of_a_later_release_is_never_replaced(backend: Backend) -> None:
    await backend.behind.insert(Collection.LEASES, {"_id": "default", "v": 999})
    with pytest.raises(InvalidInput):
        await backend.leases.get("default")
    with pytest.raises(InvalidInput):
        await backend.leases.create(make_lease())
