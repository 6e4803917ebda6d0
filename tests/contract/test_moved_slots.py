"""`SlotStore`: documents of one slot of tenants on their way from one shard to another."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest

from hascheduler.errors import StoreUnavailable
from hascheduler.mirror.changes import Change
from hascheduler.mirror.mirror import Mirror
from hascheduler.model.collection import Collection
from hascheduler.model.documents.hold import encode_hold
from hascheduler.model.hold import Hold, partition_key
from hascheduler.model.job import OCCUPYING, JobState
from hascheduler.model.routing import slot_of
from hascheduler.model.values.instants import WallMs
from hascheduler.mongo.connection import Client, Database, open_database
from hascheduler.mongo.slots import MongoSlotStore
from hascheduler.mongo.stream.source import MongoChangeSource
from hascheduler.ports.sharding import MOVE_MARK, MovedDocuments, Passage, SlotStore
from hascheduler.testing.memory.database import MemoryConnection, MemoryDatabase
from tests.contract.following import opened, read_snapshot
from tests.doubles.shards import MemorySlotStore
from tests.factories import NOW

KEPT_MS = 600_000
TENANT, OTHER = "acme", "t1"
HOLD = Hold(partition_key(slot_of(TENANT)), 5, is_held=True, released=5)
CLOSED, OPEN = Hold(HOLD.key, 5, is_held=True), Hold(HOLD.key, 6, is_held=False)
"""Of the target: before the slot arrives, and afterwards."""
FIRST, REST = Passage(0, 1, HOLD, CLOSED), Passage(0, 1, HOLD, OPEN)
AT = WallMs(NOW + 1_000)


@dataclass
class Shards:
    """Two shards, what is stored in them, and the store that moves."""

    store: SlotStore
    documents: Any
    insert: Any
    put: Any

    async def ids(self, index: int, collection: Collection = Collection.JOBS) -> list[str]:
        return sorted(document["_id"] for document in await self.documents(index, collection))

    async def first_moved(self, limit: int = 100) -> MovedDocuments:
        """The last answer, after calls until nothing more moves."""
        return await self._until_none(lambda: self.store.move_first(FIRST, limit, AT))

    async def all_moved(self, limit: int = 100) -> MovedDocuments:
        """As `first_moved`, of the rest too."""
        await self.first_moved(limit)
        await self.arrive()
        return await self._until_none(lambda: self.store.move_rest(REST, limit, AT))

    async def arrive(self) -> None:
        """The slot is opened in the target."""
        await self.put(1, OPEN)

    async def _until_none(self, move: Callable[[], Awaitable[MovedDocuments]]) -> MovedDocuments:
        for _ in range(100):
            moved = await move()
            if not moved.documents:
                return moved
        raise AssertionError("it goes on for ever")


@pytest.fixture(
    params=[
        "memory_shards",
        pytest.param("pymongo_shards", marks=pytest.mark.real),
        pytest.param("pymongo_shards_apart", marks=pytest.mark.real),
    ]
)
def shards(request: pytest.FixtureRequest) -> Shards:
    made: Shards = request.getfixturevalue(request.param)
    return made


@pytest.fixture
async def memory_shards() -> Shards:
    connections = [MemoryConnection(MemoryDatabase()) for _ in range(2)]

    async def documents(index: int, collection: Collection) -> list[Any]:
        return list(connections[index].database.documents(collection))

    async def insert(index: int, collection: Collection, document: dict[str, Any]) -> None:
        assert connections[index].database.insert(collection, document)

    async def put(index: int, hold: Hold) -> None:
        connections[index].database.replace(Collection.HOLDS, encode_hold(hold))

    await put(0, HOLD)
    await put(1, CLOSED)
    return Shards(MemorySlotStore(connections, KEPT_MS), documents, insert, put)


@pytest.fixture
async def pymongo_shards(pymongo_client: Client, ready_databases: Sequence[str]) -> Shards:
    return await shards_of([open_database(pymongo_client, name) for name in ready_databases[:2]])


@pytest.fixture
async def pymongo_shards_apart(two_mongodbs: Sequence[Database]) -> Shards:
    return await shards_of(two_mongodbs)


async def shards_of(databases: Sequence[Database]) -> Shards:

    async def documents(index: int, collection: Collection) -> list[Any]:
        return await databases[index][collection.value].find({}, {MOVE_MARK: False}).to_list(None)

    async def insert(index: int, collection: Collection, document: dict[str, Any]) -> None:
        await databases[index][collection.value].insert_one(dict(document))

    async def put(index: int, hold: Hold) -> None:
        of_it = {"_id": hold.key}
        await databases[index][Collection.HOLDS.value].replace_one(of_it, encode_hold(hold), upsert=True)

    await put(0, HOLD)
    await put(1, CLOSED)
    return Shards(MongoSlotStore(databases, KEPT_MS), documents, insert, put)


def job(id: str, state: JobState = JobState.PENDING, tenant: str = TENANT, **more: Any) -> dict[str, Any]:
    return {"_id": id, "tenant": tenant, "state": state.value, "rev": 3, "definition": "log", **more}


def schedule(name: str, tenant: str = TENANT, **policy: Any) -> dict[str, Any]:
    return {"_id": name, "rev": 2, "cursor_ms": NOW, "policy": policy, "job": {"tenant": tenant}}


async def test_all_that_is_of_the_slot_moves_as_it_is_and_nothing_else(shards: Shards) -> None:
    for state in set(JobState) - OCCUPYING:
        await shards.insert(0, Collection.JOBS, job(f"a-{state}", state, payload={"n": 1}))
    await shards.insert(0, Collection.JOBS, job("theirs", tenant=OTHER))
    for name, tenant in (("tick", TENANT), ("tick-2", OTHER)):
        await shards.insert(0, Collection.SCHEDULES, schedule(name, tenant))
        for number in range(3):
            record = {"_id": f"{name}:{NOW + number:013d}", "schedule": name, "verdict": "missed"}
            await shards.insert(0, Collection.VERDICTS, record)
    before = {document["_id"]: document for document in await shards.documents(0, Collection.JOBS)}
    assert await shards.all_moved(limit=2) == MovedDocuments(0, 0)
    assert await shards.ids(0) == ["theirs"]
    assert {document["_id"]: document for document in await shards.documents(1, Collection.JOBS)} == {
        id: document for id, document in before.items() if id != "theirs"
    }
    assert await shards.ids(0, Collection.SCHEDULES) == ["tick-2"]
    assert await shards.ids(1, Collection.SCHEDULES) == ["tick"]
    assert [id.partition(":")[0] for id in await shards.ids(0, Collection.VERDICTS)] == ["tick-2"] * 3
    assert [id.partition(":")[0] for id in await shards.ids(1, Collection.VERDICTS)] == ["tick"] * 3


async def test_what_a_processor_has_is_left_and_counted(shards: Shards) -> None:
    for state in OCCUPYING:
        await shards.insert(0, Collection.JOBS, job(f"a-{state}", state))
    moved = await shards.all_moved()
    assert moved.left
    assert await shards.ids(0) == ["a-dispatched", "a-running"]
    assert await shards.ids(1) == []


async def test_first_goes_what_the_target_needs_to_decide_and_no_more(shards: Shards) -> None:
    """A fire may look at the live jobs of its schedule, and a job does at those that it waits for."""
    await shards.insert(0, Collection.SCHEDULES, schedule("tick", overlap="buffer_one"))
    await shards.insert(0, Collection.JOBS, job(f"fire:tick:{NOW}", schedule="tick"))
    for name, policy in (("tack", {"overlap": "allow"}), ("tock", {})):
        await shards.insert(0, Collection.SCHEDULES, schedule(name, **policy))
        await shards.insert(0, Collection.JOBS, job(f"fire:{name}:{NOW}", schedule=name))
    await shards.insert(0, Collection.JOBS, job("fire:tick:1", JobState.FAILED, schedule="tick"))
    await shards.insert(0, Collection.JOBS, job("ended", JobState.FAILED))
    await shards.insert(0, Collection.JOBS, job("awaited", JobState.FAILED))
    await shards.insert(0, Collection.JOBS, job("first"))
    await shards.insert(0, Collection.JOBS, job("second", waits_for=["first", "awaited", "long gone"]))
    await shards.insert(0, Collection.JOBS, job("third", waits_for=["second"]))
    await shards.insert(0, Collection.JOBS, job("alone", waits_for=[]))
    assert await shards.first_moved(limit=2) == MovedDocuments(0, 0)
    assert await shards.ids(0) == ["alone", "ended", f"fire:tack:{NOW}", "fire:tick:1", f"fire:tock:{NOW}"]
    assert await shards.ids(1, Collection.SCHEDULES) == ["tack", "tick", "tock"]
    assert await shards.all_moved(limit=2) == MovedDocuments(0, 0)
    assert await shards.ids(0) == []


async def test_first_go_the_jobs_of_a_batch_that_another_job_waits_for(shards: Shards) -> None:
    """Else the target would find none of them, and take them for jobs that succeeded."""
    for id, state in (("m", JobState.PENDING), ("n", JobState.FAILED)):
        await shards.insert(0, Collection.JOBS, job(id, state, batch="batch:x"))
    await shards.insert(0, Collection.JOBS, job("w", waits_for=["w", "batch:x"]))
    await shards.insert(0, Collection.JOBS, job("other", JobState.FAILED, batch="batch:y"))
    assert (await shards.store.move_first(FIRST, 2, AT)).left
    assert await shards.ids(1) == ["m", "n"]
    assert await shards.first_moved(limit=2) == MovedDocuments(0, 0)
    assert await shards.ids(0) == ["other"]


async def test_a_job_comes_after_all_jobs_of_the_batch_that_it_waits_for(shards: Shards) -> None:
    members = {"m", "n", "o"}
    for id, state in zip(sorted(members), (JobState.PENDING, JobState.FAILED, JobState.SUCCEEDED), strict=True):
        await shards.insert(0, Collection.JOBS, job(id, state, batch="batch:x"))
    await shards.insert(0, Collection.JOBS, job("a", waits_for=["a", "batch:x"]))
    await shards.arrive()
    there: set[str] = set()
    for _ in range(10):
        await shards.store.move_rest(REST, 1, AT)
        there = set(await shards.ids(1))
        assert "a" not in there or members <= there
    assert there == {"a", *members}


async def test_a_job_comes_after_those_that_it_waits_for(shards: Shards) -> None:
    """However few move at a time: one that is not there would count as succeeded."""
    waits_for = {f"b-{number}": [f"b-{number - 1}", "a"] for number in range(1, 5)}
    await shards.insert(0, Collection.JOBS, job("b-0", JobState.FAILED))
    await shards.insert(0, Collection.JOBS, job("a"))
    for id, ids in waits_for.items():
        await shards.insert(0, Collection.JOBS, job(id, waits_for=ids))
    await shards.arrive()
    there: set[str] = set()
    for _ in range(20):
        await shards.store.move_rest(REST, 1, AT)
        there = set(await shards.ids(1))
        assert all(there.issuperset(waits_for[id]) for id in there & waits_for.keys()), there
    assert there == {"a", "b-0", *waits_for}


async def test_what_is_most_urgent_comes_first_and_what_ended_after_it(shards: Shards) -> None:
    for id, state, priority, at_ms in (
        ("low", JobState.PENDING, 1, 1),
        ("late", JobState.PENDING, 9, 3),
        ("early", JobState.PENDING, 9, 2),
        ("over", JobState.SUCCEEDED, 10, 1),
    ):
        await shards.insert(0, Collection.JOBS, job(id, state, priority=priority, submitted_at_ms=at_ms))
    await shards.arrive()
    seen: list[str] = []
    for _ in range(4):
        await shards.store.move_rest(REST, 1, AT)
        seen += set(await shards.ids(1)) - set(seen)
    assert seen == ["early", "late", "low", "over"]


@pytest.mark.parametrize("holds", [
    (Hold(HOLD.key, 4, is_held=True), CLOSED),
    (Hold(HOLD.key, 6, is_held=True), CLOSED),
    (HOLD, OPEN),
    (HOLD, Hold(HOLD.key, 4, is_held=True)),
])  # fmt: skip
@pytest.mark.parametrize("part", ["move_first", "move_rest"])
async def test_nothing_moves_under_other_shares_than_the_mover_has_seen(
    shards: Shards, part: str, holds: tuple[Hold, Hold]
) -> None:
    await shards.insert(0, Collection.JOBS, job("a", waits_for=[] if part == "move_rest" else ["gone"]))
    await shards.insert(0, Collection.SCHEDULES, schedule("tick"))
    moved = await getattr(shards.store, part)(Passage(0, 1, *holds), 10, AT)
    assert (moved.documents, await shards.ids(0), await shards.ids(1)) == (0, ["a"], [])
    assert await shards.ids(0, Collection.SCHEDULES) == ["tick"]
    assert moved.left


async def test_a_mover_that_saw_the_slot_closed_moves_nothing_once_it_is_open(shards: Shards) -> None:
    await shards.insert(0, Collection.JOBS, job("a", schedule="tick"))
    await shards.arrive()
    assert (await shards.store.move_first(FIRST, 10, AT)).documents == 0
    assert await shards.ids(0) == ["a"]


async def test_a_job_that_is_there_already_goes_from_here(shards: Shards) -> None:
    await shards.insert(0, Collection.JOBS, job("a"))
    there = job("a", JobState.SUCCEEDED, result=7)
    await shards.insert(1, Collection.JOBS, there)
    await shards.insert(0, Collection.JOBS, job("b"))
    assert await shards.all_moved() == MovedDocuments(0, 0)
    assert await shards.ids(0) == []
    assert {document["_id"]: document for document in await shards.documents(1, Collection.JOBS)} == {
        "a": there,
        "b": job("b"),
    }


@pytest.mark.parametrize("arriving", [job("a", JobState.SUCCEEDED, attempt=1), job("a", attempt=1)])
@pytest.mark.parametrize("others", [0, 3])
async def test_a_job_that_was_handed_out_comes_in_the_place_of_its_late_copy(
    shards: Shards, arriving: dict[str, Any], others: int
) -> None:
    """A leader that had stood still since it fired it wakes up when the slot is there and the job not yet."""
    await shards.insert(0, Collection.JOBS, arriving)
    for number in range(others):
        await shards.insert(0, Collection.JOBS, job(f"b{number}"))
    await shards.insert(1, Collection.JOBS, job("a"))
    assert await shards.all_moved() == MovedDocuments(0, 0)
    assert await shards.ids(0) == []
    assert {document["_id"]: document for document in await shards.documents(1, Collection.JOBS)}["a"] == arriving
    assert len(await shards.ids(1)) == 1 + others


@pytest.mark.parametrize("state", [JobState.DISPATCHED, JobState.RUNNING, JobState.FAILED])
async def test_a_late_copy_that_was_handed_out_stays(shards: Shards, state: JobState) -> None:
    there = job("a", state, attempt=1)
    await shards.insert(0, Collection.JOBS, job("a", JobState.SUCCEEDED, attempt=1))
    await shards.insert(1, Collection.JOBS, there)
    assert await shards.all_moved() == MovedDocuments(0, 0)
    assert await shards.documents(1, Collection.JOBS) == [there]


@pytest.mark.parametrize("key", ["idempotency_key", "unique_key"])
async def test_of_two_jobs_of_one_key_the_later_one_arrives_cancelled(shards: Shards, key: str) -> None:
    held: dict[str, Any] = {key: "k"}
    first = job("first", **held)
    await shards.insert(1, Collection.JOBS, first)
    await shards.insert(0, Collection.JOBS, job("second", **held))
    assert await shards.all_moved() == MovedDocuments(0, 0)
    stored = {document["_id"]: document for document in await shards.documents(1, Collection.JOBS)}
    assert stored["first"] == first
    second = stored["second"]
    assert (second["state"], second["error"]) == ("cancelled", "another job has its key")
    assert key not in second
    assert second["rev"] == 4
    assert second["finished_at_ms"] == AT


async def test_however_many_move_at_once_each_document_is_in_one_shard(shards: Shards) -> None:
    for number in range(40):
        await shards.insert(0, Collection.JOBS, job(f"a-{number:02}"))

    async def moves() -> None:
        for _ in range(20):
            with suppress(StoreUnavailable):  # they are in each other's way
                await shards.store.move_rest(REST, 7, AT)

    await shards.arrive()
    await asyncio.gather(*(moves() for _ in range(4)))
    assert await shards.all_moved() == MovedDocuments(0, 0)
    assert await shards.ids(0) == []
    assert await shards.ids(1) == [f"a-{number:02}" for number in range(40)]


@pytest.mark.real
async def test_a_stream_tells_what_has_moved_from_what_has_happened(
    pymongo_shards: Shards, pymongo_client: Client, ready_databases: Sequence[str]
) -> None:
    await pymongo_shards.insert(0, Collection.JOBS, job("a", JobState.SUCCEEDED))
    source = MongoChangeSource(open_database(pymongo_client, ready_databases[1]))
    async with opened(source) as stream:
        await read_snapshot(stream)
        await pymongo_shards.all_moved()
        await pymongo_shards.insert(1, Collection.JOBS, job("b"))
        changes: list[Change] = []
        while len(changes) < 2:
            found = (await stream.next_batch(1_000)).changes
            changes += [change for change in found if change.collection is Collection.JOBS]
    assert [(change.id, change.moved) for change in changes] == [("a", True), ("b", False)]
    folded = Mirror().fold(changes)
    assert "a" not in {event.job for event in folded.events}
