"""What a deployment of several shards keeps on real servers: whose a database is, its part of caps, moves cut short."""

import asyncio
from collections.abc import Collection, Sequence

import pytest
from pymongo.errors import OperationFailure

from hascheduler.clock import SystemClock
from hascheduler.errors import InvalidInput, StoreUnavailable
from hascheduler.model.documents.leadership import encode_hold
from hascheduler.mongo.connection import Client, Database, open_database, transaction
from hascheduler.mongo.holds import OrphanedTransactions
from hascheduler.mongo.identities import require_known_database, require_own_database
from hascheduler.mongo.replicas import MongoReplicaBoard, ready_replicas
from hascheduler.mongo.tenants import MongoTenantStore
from hascheduler.ports.tenants import Key
from hascheduler.schema.definition import Definition
from hascheduler.shards.gateways import peer_key
from hascheduler.shards.turns import keeps_to_parts
from tests.contract.test_tenants import HOLD, TENANT
from tests.factories import make_replica

pytestmark = pytest.mark.real


@pytest.fixture
def databases(pymongo_client: Client, ready_databases: Sequence[str]) -> list[Database]:
    """The home, the database of a shard, and another one."""
    return [open_database(pymongo_client, name) for name in ready_databases[:3]]


async def test_the_home_remembers_the_first_database_of_a_shard_and_takes_no_other(
    databases: Sequence[Database],
) -> None:
    home, own, other = databases
    for new in ("a", "b", "c"):
        await require_own_database(home, own, "0001", new)
    with pytest.raises(
        InvalidInput, match=r"HASCHEDULER_SHARD_MONGODB_URIS: .* is not the one that shard 0001 has used"
    ):
        await require_own_database(home, other, "0001", "d")
    assert await other["identities"].count_documents({}) == 0, "nothing is written into a stranger's database"
    await require_own_database(home, other, "0002", "e")
    with pytest.raises(InvalidInput, match="shard 0002"):
        await require_own_database(home, own, "0002", "f")


async def test_all_replicas_have_the_key_of_the_first(databases: Sequence[Database]) -> None:
    home, another, _ = databases
    assert set(await asyncio.gather(*(peer_key(home, new) for new in ("a", "a", "a")))) == {b"a"}
    assert await peer_key(home, "b") == b"a"
    assert await peer_key(another, "b") == b"b"


async def test_a_replica_that_was_killed_between_the_two_writes_is_followed_by_one_that_makes_the_second(
    databases: Sequence[Database],
) -> None:
    home, own, _ = databases
    await own["identities"].insert_one({"_id": "own", "identity": "a"})
    await require_own_database(home, own, "0001", "b")
    assert await home["identities"].find_one({"_id": "0001"}) == {"_id": "0001", "identity": "a"}


async def test_who_has_no_right_to_write_compares_and_waits_until_a_replica_has_recorded_it(
    databases: Sequence[Database],
) -> None:
    home, own, other = databases
    with pytest.raises(StoreUnavailable, match="no replica has reached the database of shard 0001 yet"):
        await require_known_database(home, own, "0001")
    await require_known_database(home, own, "0001", new=True)
    assert not any([await each["identities"].count_documents({}) for each in databases])
    await require_own_database(home, own, "0001", "a")
    await require_known_database(home, own, "0001")
    for new in (False, True):
        with pytest.raises(InvalidInput, match="is not the one that shard 0001"):
            await require_known_database(home, other, "0001", new=new)
    assert await other["identities"].count_documents({}) == 0


@pytest.mark.real
async def test_they_are_those_that_said_so_last(pymongo_client: Client, ready_databases: Sequence[str]) -> None:
    database = open_database(pymongo_client, ready_databases[0])
    board = MongoReplicaBoard(database)
    for status in (make_replica("r1"), make_replica("r2", ready=False), make_replica("r3"), make_replica("r4")):
        await board.beat(status)
    await board.beat(make_replica("r3", beat=2, ready=False))
    await board.remove("r4")
    assert await ready_replicas(database) == {"r1"}


CAPPED = {"report": Definition(name="report", max_concurrency=5), "load": Definition(name="load", tier=4)}


@pytest.mark.parametrize(
    ("running", "max_concurrency", "keeps"),
    [
        ({}, None, True),
        ({"other": 9}, None, True),
        ({"other": 9}, 18, True),
        ({"other": 10}, 18, False),
        ({"report": 3}, None, True),
        ({"report": 4}, None, False),
        ({"load": 2}, None, True),
        ({"load": 3}, None, False),
        ({"report": 3, "load": 2, "other": 1}, 11, True),
        ({"report": 3, "load": 2, "other": 1}, 10, False),
        ({"other": 1}, 1, True),
    ],
)
async def test_a_shard_that_runs_more_than_its_part_holds_up_new_ones(
    pymongo_client: Client,
    ready_databases: Sequence[str],
    running: dict[str, int],
    max_concurrency: int | None,
    *,
    keeps: bool,
) -> None:
    """Of five the first shard has three; a cap of one goes round, and is no part."""
    home, new = [open_database(pymongo_client, name) for name in ready_databases[:2]]
    jobs = [
        {"_id": f"{name}{number}", "state": ("dispatched", "running")[number % 2], "definition": name}
        for name, count in running.items()
        for number in range(count)
    ]
    await home["jobs"].insert_many([*jobs, {"_id": "waits", "state": "pending", "definition": "report"}])
    assert await keeps_to_parts([home, new], CAPPED, max_concurrency) is keeps
    if not keeps:
        await home["jobs"].update_many({"state": "running"}, {"$set": {"state": "succeeded"}})
        assert await keeps_to_parts([home, new], CAPPED, max_concurrency)


TICK = Key("schedules", "tick")


@pytest.fixture
async def database(pymongo_client: Client, ready_database: str) -> Database:
    database = open_database(pymongo_client, ready_database)
    await database["holds"].insert_one(encode_hold(HOLD))
    return database


async def put_in_the_end(store: MongoTenantStore) -> Collection[Key]:
    """By the next mover, which tries again as `PartitionMover` does."""
    while True:
        try:
            return await store.put(HOLD, {TICK: {"_id": "tick", "rev": 2, "job": {"tenant": TENANT}}}, mark=7)
        except StoreUnavailable:
            await asyncio.sleep(0.05)


async def test_one_that_a_mover_left_open_is_ended_and_its_owner_writes_nothing(database: Database) -> None:
    store = MongoTenantStore(database, 600_000)
    async with transaction(database) as left:
        await database["holds"].update_one({"_id": HOLD.key}, {"$inc": {"demanded": 1}}, session=left)
        await database["schedules"].insert_one({"_id": "late", "job": {"tenant": TENANT}}, session=left)
        with pytest.raises(StoreUnavailable, match="WriteConflict"):
            await store.take(HOLD, {})
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(OrphanedTransactions([database], lambda: True, SystemClock()).run())
            assert await put_in_the_end(store) == set()
            running.cancel()
        with pytest.raises(OperationFailure, match="aborted"):
            await left.commit_transaction()
    assert await database["schedules"].distinct("_id") == ["tick"]
