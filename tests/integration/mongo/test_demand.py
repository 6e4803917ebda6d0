"""`ShardDemand`, on two shards in memory and on two databases of a real mongod."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import pytest

from hascheduler.model.collection import Collection as Stored
from hascheduler.model.documents.job import new_job_document
from hascheduler.model.documents.processor import encode_processor
from hascheduler.model.processor import ProcessorRef
from hascheduler.model.values.instants import WallMs
from hascheduler.mongo import demand as demand_room
from hascheduler.mongo.connection import connect, open_database
from hascheduler.mongo.demand import MongoShardDemand
from hascheduler.mongo.schema.indexes import ensure_collections_and_indexes
from hascheduler.ports.demand import BeatLimits, Demand, ShardDemand
from hascheduler.testing.memory.database import MemoryConnection, MemoryDatabase
from tests.doubles.shards import MemoryShardDemand
from tests.integration.mongo.examples import job
from tests.unit.processor.world import HandClock

LIMITS = BeatLimits(1_500, 5_000)
LOG = frozenset({"log"})
Put = Callable[[int, Stored, Mapping[str, Any]], Awaitable[None]]


@dataclass
class Shards:
    demand: ShardDemand
    clock: HandClock
    put: Put

    async def look(self, definitions: frozenset[str] = LOG, own: tuple[str, ...] = ()) -> list[Demand]:
        return list(await self.demand.look(definitions, own))

    async def submit(self, shard: int, *ids: str, **more: Any) -> None:
        stored: dict[str, Any] = {
            name: more.pop(name) for name in ("state", "processor", "retry_at_ms") if name in more
        }
        for id in ids:
            await self.put(shard, Stored.JOBS, {**new_job_document(job(id, **more)), **stored})

    async def register(
        self, shard: int, id: str, *, beat: int = 1, definitions: frozenset[str] = LOG, **more: Any
    ) -> None:
        fields: dict[str, Any] = {"slots": 4, "draining": False, **more}
        processor = ProcessorRef(id=id, name="p", shard="s", definitions=definitions, beat=beat, parked=0, **fields)
        await self.put(shard, Stored.PROCESSORS, encode_processor(processor))


@pytest.fixture(params=["memory", "mongo"])
def shards(request: pytest.FixtureRequest) -> Shards:
    return cast(Shards, request.getfixturevalue(f"{request.param}_shards"))


@pytest.fixture
def memory_shards() -> Shards:
    databases, clock = [MemoryDatabase(), MemoryDatabase()], HandClock()

    async def put(shard: int, collection: Stored, document: Mapping[str, Any]) -> None:
        databases[shard].replace(collection, document)

    connections = [MemoryConnection(database) for database in databases]
    return Shards(MemoryShardDemand(connections, clock, LIMITS), clock, put)


@pytest.fixture
async def mongo_shards(mongodb_uri: str, database_name: str) -> AsyncIterator[Shards]:
    clock = HandClock()
    async with connect(mongodb_uri) as client:
        stored = [open_database(client, database_name), open_database(client, f"{database_name}-0001")]
        for database in stored:
            await ensure_collections_and_indexes(database)

        async def put(shard: int, collection: Stored, document: Mapping[str, Any]) -> None:
            await stored[shard][collection.value].replace_one({"_id": document["_id"]}, dict(document), upsert=True)

        yield Shards(MongoShardDemand(stored, clock, LIMITS), clock, put)
        await client.drop_database(f"{database_name}-0001")


async def test_jobs_that_nobody_takes_are_unserved(shards: Shards) -> None:
    await shards.submit(1, "a", "b")
    assert await shards.look() == [Demand(0), Demand(1, waiting=2, unserved=2, unmet=2)]


async def test_jobs_are_met_by_free_slots_of_those_who_take_them(shards: Shards) -> None:
    await shards.submit(0, "a", "b", "c")
    await shards.register(0, "p.1", slots=4)
    await shards.submit(0, "d", state="running", processor="p.1")
    await shards.submit(0, "e", state="dispatched", processor="p.1")
    assert await shards.look() == [Demand(0, 3, 0, 1, ("p.1",), 4), Demand(1)]


async def test_only_jobs_that_wait_for_a_slot_and_for_me_are_counted(shards: Shards) -> None:
    await shards.submit(0, "now")
    await shards.submit(0, "was", not_before_ms=WallMs(1_000_000), retry_at_ms=1_000_000)
    await shards.submit(0, "later", not_before_ms=WallMs(1_000_001))
    await shards.submit(0, "tried", retry_at_ms=1_000_001)
    await shards.submit(0, "next", depends_on=("now",), waits_for=("now",))
    await shards.submit(0, "done", state="succeeded")
    await shards.submit(0, "other", definition="other")
    assert (await shards.look())[0].waiting == 2
    assert (await shards.look(frozenset({"*"})))[0].waiting == 3
    assert (await shards.look(frozenset({"log", "other"})))[0].waiting == 3


async def test_processors_that_take_nothing_of_mine_drain_or_are_myself_serve_nobody(shards: Shards) -> None:
    await shards.submit(0, "a")
    await shards.register(0, "p.other", definitions=frozenset({"other"}))
    await shards.register(0, "p.leaves", draining=True)
    await shards.register(0, "p.me")
    assert (await shards.look(own=("p.me",)))[0] == Demand(0, 1, 1, 1)
    await shards.register(0, "p.any", definitions=frozenset({"*"}))
    assert (await shards.look(own=("p.me",)))[0] == Demand(0, 1, 0, 0, ("p.any",), 4)


async def test_one_that_shows_no_life_soon_after_it_is_first_seen_is_dead(shards: Shards) -> None:
    await shards.submit(0, "a")
    await shards.register(0, "p.1")
    assert (await shards.look())[0].servers == ("p.1",)
    shards.clock.now_ms += LIMITS.unproven_ms - 1
    assert (await shards.look())[0].servers == ("p.1",)
    shards.clock.now_ms += 1
    assert (await shards.look())[0].unserved == 1


async def test_one_that_showed_life_and_then_stands_still_is_dead_until_its_beat_changes(shards: Shards) -> None:
    await shards.submit(0, "a")
    await shards.register(0, "p.1")
    await shards.look()
    await shards.register(0, "p.1", beat=2)
    assert (await shards.look())[0].servers == ("p.1",)
    shards.clock.now_ms += LIMITS.dead_after_ms - 1
    assert (await shards.look())[0].servers == ("p.1",)
    shards.clock.now_ms += 1
    assert (await shards.look())[0].unserved == 1
    await shards.register(0, "p.1", beat=3)
    assert (await shards.look())[0].servers == ("p.1",)


async def test_what_is_broken_is_passed_over(shards: Shards) -> None:
    await shards.submit(1, "a")
    await shards.put(1, Stored.JOBS, {"_id": "b", "state": "pending", "definition": 7, "submitted_at_ms": 1})
    await shards.put(0, Stored.PROCESSORS, {"_id": "p.1", "definitions": "log"})
    assert await shards.look() == [Demand(0), Demand(1, 1, 1, 1)]


@pytest.mark.parametrize("shards", ["mongo"], indirect=True)
async def test_jobs_behind_many_others_are_found_in_time(shards: Shards, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demand_room, "PAGE", 10)
    await shards.submit(0, *(f"other-{number:02}" for number in range(25)), definition="other")
    await shards.submit(0, "mine", submitted_at_ms=WallMs(2_000))
    assert [(await shards.look())[0].waiting for _ in range(5)] == [0, 0, 1, 1, 1]
    await shards.submit(0, "mine", submitted_at_ms=WallMs(2_000), state="running")
    # Behind it nothing is left, so it begins again, and comes to what was submitted before.
    await shards.submit(0, "late", submitted_at_ms=WallMs(1))
    assert [(await shards.look())[0].waiting for _ in range(3)] == [0, 1, 1]


@pytest.mark.parametrize("shards", ["mongo"], indirect=True)
async def test_each_set_of_definitions_is_read_on_where_it_was(shards: Shards, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demand_room, "PAGE", 10)
    monkeypatch.setattr(demand_room, "_POSITIONS_MAX", 2)
    await shards.submit(0, *(f"other-{number:02}" for number in range(15)), definition="other")
    await shards.submit(0, "mine", submitted_at_ms=WallMs(2_000))
    other, third = frozenset({"other"}), frozenset({"third"})
    found = [[(await shards.look(each))[0].waiting for each in (LOG, other)] for _ in range(3)]
    assert found == [[0, 10], [1, 10], [1, 10]]
    # Of more than are kept the one that asked the longest time ago begins again.
    for one in (third, frozenset({"fourth"})):
        await shards.look(one)
    assert [(await shards.look())[0].waiting for _ in range(2)] == [0, 1]


async def test_a_shard_in_memory_that_is_cut_off_is_left_out() -> None:
    connections = [MemoryConnection(MemoryDatabase()), MemoryConnection(MemoryDatabase())]
    connections[0].cut()
    demand = MemoryShardDemand(connections, HandClock(), LIMITS)
    assert [each.shard for each in await demand.look(LOG, ())] == [1]


async def test_a_shard_whose_mongod_is_away_is_left_out(mongodb_uri: str, database_name: str) -> None:
    away = "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=200"
    async with connect(mongodb_uri) as client, connect(away) as nowhere:
        database = open_database(client, database_name)
        await ensure_collections_and_indexes(database)
        demand = MongoShardDemand([open_database(nowhere, database_name), database], HandClock(), LIMITS)
        assert [each.shard for each in await demand.look(LOG, ())] == [1]
