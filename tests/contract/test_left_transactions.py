"""A mover that was killed, or stands still, in the middle of a transaction, and one that goes on with its slot."""

import asyncio
from collections.abc import Sequence

import pytest
from pymongo.errors import OperationFailure

from hascheduler.clock import SystemClock
from hascheduler.errors import StoreUnavailable
from hascheduler.model.documents.hold import encode_hold
from hascheduler.mongo.connection import Client, Database, open_database, transaction
from hascheduler.mongo.left_transactions import LeftTransactions
from hascheduler.mongo.slots import MongoSlotStore
from hascheduler.mongo.slots.transactions import is_still
from hascheduler.ports.sharding import MovedDocuments
from tests.contract.test_moved_parcels import AT, CLOSED, FIRST, TENANT, UNOPENED

pytestmark = pytest.mark.real


@pytest.fixture
async def databases(pymongo_client: Client, ready_databases: Sequence[str]) -> Sequence[Database]:
    """With a schedule in the first."""
    here, there = [open_database(pymongo_client, name) for name in ready_databases[:2]]
    await here["holds"].insert_one(encode_hold(CLOSED))
    await there["holds"].insert_one(encode_hold(UNOPENED))
    await here["schedules"].insert_one({"_id": "tick", "rev": 2, "job": {"tenant": TENANT}})
    return [here, there]


async def moved_in_the_end(databases: Sequence[Database]) -> MovedDocuments:
    """By the next mover, which tries again as `SlotMover` does."""
    store = MongoSlotStore(databases, 600_000)
    while True:
        try:
            return await store.move_first(FIRST, 10, AT)
        except StoreUnavailable:
            await asyncio.sleep(0.05)


async def test_one_that_a_mover_left_open_is_ended_and_its_owner_moves_nothing(databases: Sequence[Database]) -> None:
    here = databases[0]
    async with transaction(here) as left:
        assert await is_still(here, CLOSED, left)
        await here["schedules"].delete_many({}, session=left)
        with pytest.raises(StoreUnavailable, match="WriteConflict"):
            await MongoSlotStore(databases, 600_000).move_first(FIRST, 10, AT)
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(LeftTransactions(databases, lambda: True, SystemClock()).run())
            assert await moved_in_the_end(databases) == MovedDocuments(1, 1)
            running.cancel()
        with pytest.raises(OperationFailure, match="aborted"):
            await left.commit_transaction()
    assert await databases[1]["schedules"].distinct("_id") == ["tick"]
