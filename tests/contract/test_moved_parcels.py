"""Documents between two MongoDBs: a mover may end, or fall asleep, between any two of its transactions."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest

from hascheduler.model.collection import Collection
from hascheduler.model.documents.hold import encode_hold
from hascheduler.model.hold import Hold, partition_key
from hascheduler.model.job import JobState
from hascheduler.model.routing import slot_of
from hascheduler.model.values.instants import WallMs
from hascheduler.mongo.connection import Database
from hascheduler.mongo.slots import MongoSlotStore
from hascheduler.mongo.slots.parcels import Apart
from hascheduler.ports.sharding import MovedDocuments, Passage
from tests.factories import NOW

pytestmark = pytest.mark.real

TENANT = "acme"
KEY = partition_key(slot_of(TENANT))
CLOSED = Hold(KEY, 5, is_held=True, released=5)
UNOPENED, OPEN = Hold(KEY, 5, is_held=True), Hold(KEY, 6, is_held=False)
FIRST, REST = Passage(0, 1, CLOSED, UNOPENED), Passage(0, 1, CLOSED, OPEN)
AT = WallMs(NOW + 1_000)
IDS = [f"job-{number}" for number in range(5)]


class Killed(Exception):
    """The process of a mover ended here."""


@pytest.fixture
async def apart(two_mongodbs: Sequence[Database]) -> Sequence[Database]:
    """With five jobs and a schedule in the first."""
    here, there = two_mongodbs
    await put(here, CLOSED)
    await put(there, UNOPENED)
    jobs = [{"_id": id, "tenant": TENANT, "state": "pending", "rev": 1, "schedule": "tick"} for id in IDS]
    await here["jobs"].insert_many(jobs)
    tick = {"_id": "tick", "rev": 2, "policy": {"overlap": "skip"}, "job": {"tenant": TENANT}}
    await here["schedules"].insert_one(tick)
    return two_mongodbs


async def put(database: Database, hold: Hold) -> None:
    await database["holds"].replace_one({"_id": hold.key}, encode_hold(hold), upsert=True)


async def first_moved(databases: Sequence[Database], passage: Passage = FIRST) -> MovedDocuments:
    store = MongoSlotStore(databases, 600_000)
    for _ in range(20):
        moved = await store.move_first(passage, 2, AT)
        if not moved.documents:
            return moved
    raise AssertionError("it goes on for ever")


async def stored(database: Database, collection: Collection = Collection.JOBS) -> list[Any]:
    return sorted([document["_id"] async for document in database[collection.value].find()])


def dies_before(monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    async def die(*_: object) -> Any:
        raise Killed(step)

    monkeypatch.setattr(Apart, step, die)


@pytest.mark.parametrize("step", ["_depart", "_arrive", "_inserted", "_forget"])
async def test_a_mover_that_ends_before_a_step_leaves_it_to_the_next_one(
    apart: Sequence[Database], monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    with monkeypatch.context() as patched:
        dies_before(patched, step)
        with pytest.raises(Killed):
            await first_moved(apart)
    assert await first_moved(apart) == MovedDocuments(0, 0)
    assert (await stored(apart[0]), await stored(apart[1])) == ([], IDS)
    assert await stored(apart[1], Collection.SCHEDULES) == ["tick"]
    assert await stored(apart[0], Collection.DEPARTURES) == []


async def test_what_has_departed_is_not_taken_for_moved(
    apart: Sequence[Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All has left its collection, and nothing has arrived: the slot may not be opened yet."""
    await apart[0]["jobs"].delete_many({})
    with monkeypatch.context() as patched:
        dies_before(patched, "_arrive")
        with pytest.raises(Killed):
            await first_moved(apart)
    assert await stored(apart[0], Collection.SCHEDULES) == []
    assert await MongoSlotStore(apart, 600_000).move_first(FIRST, 10, AT) == MovedDocuments(1, 1)
    assert await stored(apart[1], Collection.SCHEDULES) == ["tick"]


@pytest.mark.parametrize("back", [False, True])
async def test_what_a_mover_left_on_its_way_comes_to_where_the_slot_rests(
    apart: Sequence[Database], monkeypatch: pytest.MonkeyPatch, *, back: bool
) -> None:
    """The other shard, or by now the same one again."""
    await put(apart[1], OPEN)
    with monkeypatch.context() as patched:
        dies_before(patched, "_arrive")
        with pytest.raises(Killed):
            await MongoSlotStore(apart, 600_000).move_first(REST, 10, AT)
    store = MongoSlotStore(apart, 600_000)
    assert await store.underway(0) == {slot_of(TENANT)}
    assert not await store.underway(1)
    if back:
        await put(apart[0], Hold(KEY, 9, is_held=False))
    opened = Hold(KEY, 9, is_held=False)
    passage = Passage(0, 0, opened, opened) if back else REST
    assert await store.deliver(passage, AT) == len(IDS)
    assert await stored(apart[0 if back else 1]) == IDS
    assert await store.underway(0) == frozenset()
    assert await store.deliver(passage, AT) == 0


async def test_in_one_mongodb_nothing_is_on_its_way(apart: Sequence[Database]) -> None:
    here = apart[0]
    await here["departures"].insert_one({"_id": f"{slot_of(TENANT):02x}/x/0000"})
    assert await MongoSlotStore([here, here], 600_000).underway(0) == frozenset()


@pytest.mark.parametrize("opened", [False, True])
async def test_a_mover_that_slept_brings_nothing_twice(
    apart: Sequence[Database], monkeypatch: pytest.MonkeyPatch, *, opened: bool
) -> None:
    """Its parcel was brought by another mover, and what was in it has run and is forgotten."""
    asleep: list[tuple[Apart, Any]] = []
    inserted = Apart._inserted

    async def sleep(self: Apart, *parcel: Any) -> bool:
        asleep.append((self, parcel))
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(Apart, "_inserted", sleep)
        with suppress(Killed):
            await first_moved(apart)
    await first_moved(apart)
    await apart[1]["jobs"].delete_many({})
    if opened:
        await put(apart[1], OPEN)
        await apart[0]["jobs"].insert_one({"_id": "late", "tenant": TENANT, "state": JobState.PENDING.value})
        await MongoSlotStore(apart, 600_000).move_rest(REST, 10, AT)
    (mover, parcel), *_ = asleep
    assert await inserted(mover, *parcel) == (not opened)
    assert await stored(apart[1]) == (["late"] if opened else [])


async def test_names_of_parcels_are_forgotten_once_nobody_can_bring_them_again(apart: Sequence[Database]) -> None:
    await first_moved(apart)
    assert len(await stored(apart[1], Collection.ARRIVALS)) > 1
    await put(apart[1], OPEN)
    await apart[0]["jobs"].insert_one({"_id": "late", "tenant": TENANT, "state": JobState.PENDING.value})
    await MongoSlotStore(apart, 600_000).move_rest(REST, 10, AT)
    (left,) = await apart[1]["arrivals"].find().to_list(None)
    assert left["rev"] == OPEN.rev
