"""What the home of several shards keeps: the routing, whose each name is, and copies of what people define."""

import asyncio

import pytest

from hascheduler.errors import InvalidInput
from hascheduler.model.collection import Collection
from hascheduler.model.definition import Definition
from hascheduler.model.documents.definition import encode_definition
from hascheduler.model.documents.routing import ROUTING_ID
from hascheduler.model.routing import Routing
from hascheduler.model.values.instants import WallMs
from hascheduler.ports.sharding import ReservedName
from tests.contract.backends import Backend, on

pytestmark = on("memory", "mongomock", "pymongo", "motor")

NAMES = ("default", "0001", "0002")
NOW = WallMs(1_700_000_000_000)
DEFINITIONS = Collection.DEFINITIONS


def moved(epoch: int, to: int) -> Routing:
    return Routing(epoch, NAMES, (to, *Routing.even(NAMES).shard_of_slot[1:]))


# The routing


async def test_of_routings_that_are_made_at_once_one_stays(backend: Backend) -> None:
    assert await backend.routing.get() is None
    wanted = [moved(1, to) for to in range(3)]
    made = await asyncio.gather(*map(backend.routing.create, wanted))
    assert sorted(made) == [False, False, True]
    assert await backend.routing.get() == wanted[made.index(True)]


async def test_the_routing_changes_by_compare_and_set_on_its_epoch(backend: Backend) -> None:
    await backend.routing.create(moved(1, 0))
    done = await asyncio.gather(*(backend.routing.replace(1, moved(2, to)) for to in (1, 2)))
    assert sorted(done) == [False, True]
    assert await backend.routing.get() == moved(2, 1 + done.index(True))
    assert not await backend.routing.replace(1, moved(3, 0))
    assert await backend.routing.replace(2, moved(3, 0))


async def test_a_routing_that_was_broken_by_hand_is_refused(backend: Backend) -> None:
    broken = {"_id": ROUTING_ID, "rev": 1, "epoch": 1, "shards": [], "slots": []}
    await backend.behind.insert(Collection.ROUTING, broken)
    with pytest.raises(InvalidInput) as refused:
        await backend.routing.get()
    assert refused.value.path == ("shards",)


@pytest.mark.parametrize("collection", [Collection.JOBS, Collection.SCHEDULES])
async def test_a_home_with_a_job_or_a_schedule_was_used(backend: Backend, collection: Collection) -> None:
    assert await backend.routing.is_unused()
    await backend.behind.insert(DEFINITIONS, document(1))
    assert await backend.routing.is_unused()
    await backend.behind.insert(collection, {"_id": "one"})
    assert not await backend.routing.is_unused()


# Names


async def test_of_reservations_at_once_one_gets_the_name(backend: Backend) -> None:
    assert await backend.names.get("nightly") is None
    tenants = ["a", "b", "c"]
    reserved = await asyncio.gather(*(backend.names.reserve("nightly", tenant, None, NOW) for tenant in tenants))
    (won,) = [each for each in reserved if each is not None]
    assert won == await backend.names.get("nightly") == ReservedName("nightly", won.tenant, 1, NOW)


async def test_a_name_is_reserved_again_in_the_place_of_what_was_read(backend: Backend) -> None:
    first = await backend.names.reserve("nightly", "a", None, NOW)
    assert first is not None
    later = WallMs(NOW + 1)
    again = await asyncio.gather(*(backend.names.reserve("nightly", tenant, first, later) for tenant in ("b", "c")))
    (won,) = [each for each in again if each is not None]
    assert won == await backend.names.get("nightly") == ReservedName("nightly", won.tenant, 2, later)
    assert await backend.names.reserve("nightly", "a", None, later) is None


async def test_a_release_takes_no_later_reservation_away(backend: Backend) -> None:
    first = await backend.names.reserve("nightly", "a", None, NOW)
    assert first is not None
    second = await backend.names.reserve("nightly", "a", first, NOW)
    assert second is not None
    assert not await backend.names.release(first)
    assert await backend.names.get("nightly") == second
    assert await backend.names.release(second)
    assert await backend.names.get("nightly") is None
    assert not await backend.names.release(second)
    assert await backend.names.reserve("nightly", "b", second, NOW) is None


# Copies


def document(rev: int, cost_ms: int = 1_000) -> dict[str, object]:
    return encode_definition(Definition("log", rev=rev, default_cost_ms=cost_ms))


async def test_a_copy_is_the_whole_document_and_swapped_by_its_revision(backend: Backend) -> None:
    copies = backend.copies
    assert await copies.get(DEFINITIONS, "log") is None
    assert await copies.insert(DEFINITIONS, document(1))
    assert not await copies.insert(DEFINITIONS, document(1))
    assert await copies.replace(DEFINITIONS, document(1), document(4, 7))
    assert await copies.get(DEFINITIONS, "log") == document(4, 7)
    assert not await copies.replace(DEFINITIONS, document(1), document(5))
    assert not await copies.delete(DEFINITIONS, document(1))
    assert await copies.get(DEFINITIONS, "log") == document(4, 7)
    assert await copies.delete(DEFINITIONS, document(4))
    assert await copies.get(DEFINITIONS, "log") is None
    assert not await copies.delete(DEFINITIONS, document(4))


@pytest.mark.parametrize("rev", [None, "x", 1.5])
async def test_one_that_was_broken_by_hand_is_swapped_too(backend: Backend, rev: object) -> None:
    broken = {"_id": "log", "colour": "blue"} | ({} if rev is None else {"rev": rev})
    await backend.behind.insert(DEFINITIONS, broken)
    assert await backend.copies.get(DEFINITIONS, "log") == broken
    assert await backend.copies.replace(DEFINITIONS, broken, document(1))
    assert await backend.copies.get(DEFINITIONS, "log") == document(1)
