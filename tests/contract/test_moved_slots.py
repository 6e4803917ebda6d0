"""`SlotStore`: documents of one slot of tenants on their way from one shard to another."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest

from hascheduler.errors import StoreUnavailable
from hascheduler.mirror.changes import Change
from hascheduler.mirror.mirror import Mirror
from hascheduler.model.collection import Collection
from hascheduler.model.documents.share import encode_share
from hascheduler.model.job import OCCUPYING, JobState
from hascheduler.model.routing import slot_of
from hascheduler.model.share import Share, slot_key
from hascheduler.model.values.instants import WallMs
from hascheduler.mongo.connection import Client, open_database
from hascheduler.mongo.slots import MongoSlotStore
from hascheduler.mongo.stream.source import MongoChangeSource
from hascheduler.ports.sharding import MovedDocuments, SlotStore
from hascheduler.testing.memory.connection import MemoryConnection
from hascheduler.testing.memory.database import MemoryDatabase
from hascheduler.testing.memory.routing import MemorySlotStore
from tests.contract.following import opened, read_snapshot
from tests.factories import NOW

KEPT_MS = 600_000
TENANT, OTHER = "acme", "t1"
SHARE = Share(slot_key(slot_of(TENANT)), 5, 0, lowered=True, released=5)
AT = WallMs(NOW + 1_000)


@dataclass
class Shards:
    """Two shards, what is stored in them, and the store that moves."""

    store: SlotStore
    documents: Any
    insert: Any

    async def ids(self, index: int, collection: Collection = Collection.JOBS) -> list[str]:
        return sorted(document["_id"] for document in await self.documents(index, collection))

    async def all_moved(self, limit: int = 100) -> MovedDocuments:
        """The last answer, after calls until nothing more moves."""
        for _ in range(100):
            moved = await self.store.move_some(0, 1, SHARE, limit, AT)
            if not moved.documents:
                return moved
        raise AssertionError("it goes on for ever")


@pytest.fixture(params=["memory_shards", pytest.param("pymongo_shards", marks=pytest.mark.real)])
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

    await insert(0, Collection.SHARES, encode_share(SHARE))
    return Shards(MemorySlotStore(connections, KEPT_MS), documents, insert)


@pytest.fixture
async def pymongo_shards(pymongo_client: Client, ready_databases: Sequence[str]) -> Shards:
    databases = [open_database(pymongo_client, name) for name in ready_databases[:2]]

    async def documents(index: int, collection: Collection) -> list[Any]:
        return await databases[index][collection.value].find().to_list(None)

    async def insert(index: int, collection: Collection, document: dict[str, Any]) -> None:
        await databases[index][collection.value].insert_one(dict(document))

    await insert(0, Collection.SHARES, encode_share(SHARE))
    return Shards(MongoSlotStore(databases, KEPT_MS), documents, insert)


def job(id: str, state: JobState = JobState.PENDING, tenant: str = TENANT, **more: Any) -> dict[str, Any]:
    return {"_id": id, "tenant": tenant, "state": state.value, "rev": 3, "definition": "log", **more}


def schedule(name: str, tenant: str = TENANT) -> dict[str, Any]:
    return {"_id": name, "rev": 2, "cursor_ms": NOW, "job": {"tenant": tenant}}


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


@pytest.mark.parametrize("share", [Share(SHARE.key, 4, 0), Share(SHARE.key, 6, 0)])
async def test_nothing_moves_under_another_share_than_the_one_that_closed_the_slot(
    shards: Shards, share: Share
) -> None:
    await shards.insert(0, Collection.JOBS, job("a"))
    moved = await shards.store.move_some(0, 1, share, 10, AT)
    assert (moved.documents, await shards.ids(0), await shards.ids(1)) == (0, ["a"], [])
    assert moved.left


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
                await shards.store.move_some(0, 1, SHARE, 7, AT)

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
            changes += (await stream.next_batch(1_000)).changes
    assert [(change.id, change.moved) for change in changes] == [("a", True), ("b", False)]
    folded = Mirror().fold(changes)
    assert "a" not in {event.job for event in folded.events}
