"""A mover that was killed, or stands still, in the middle of a transaction, and one that goes on with its partition."""

import asyncio
from collections.abc import Collection

import pytest
from pymongo.errors import OperationFailure

from hascheduler.clock import SystemClock
from hascheduler.errors import StoreUnavailable
from hascheduler.model.documents.leadership import encode_hold
from hascheduler.mongo.connection import Client, Database, open_database, transaction
from hascheduler.mongo.holds import LeftTransactions
from hascheduler.mongo.tenants import MongoTenantStore
from hascheduler.ports.tenants import Key
from tests.contract.test_tenants import HOLD, TENANT

pytestmark = pytest.mark.real

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
            running = tasks.create_task(LeftTransactions([database], lambda: True, SystemClock()).run())
            assert await put_in_the_end(store) == set()
            running.cancel()
        with pytest.raises(OperationFailure, match="aborted"):
            await left.commit_transaction()
    assert await database["schedules"].distinct("_id") == ["tick"]
