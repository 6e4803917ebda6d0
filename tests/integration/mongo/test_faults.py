"""Errors of the driver become ours, name the failed action, and never hold the URI."""

import asyncio
import gc
from typing import Any

import pytest

from hascheduler.errors import StoreUnavailable
from hascheduler.mongo.connection import Database
from hascheduler.mongo.faults import faults, local_faults

# The driver leaves its socket to the collector when it is interrupted while it connects.
leaves_sockets = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"
)


async def slow_query(database: Database) -> dict[str, Any]:
    """It takes the server some seconds, and finds nothing."""
    await database.jobs.insert_many([{"_id": number} for number in range(1_000)])
    summed = {"$sum": {"$map": {"input": {"$range": [0, 100_000]}, "in": "$$this"}}}
    return {"$expr": {"$eq": [summed, -1]}}


async def test_an_exchange_ends_in_time(database: Database) -> None:
    slow = await slow_query(database)
    with pytest.raises(StoreUnavailable, match=r"dawdle: .*(?i:time)"), faults("dawdle", 0.2):
        await database.jobs.find_one(slow)


@leaves_sockets
async def test_a_slice_ends_in_time(database: Database) -> None:
    slow = await slow_query(database)
    with pytest.raises(StoreUnavailable, match="dawdle: no answer in time"):
        async with local_faults("dawdle", 0.2):
            await database.jobs.find(slow).to_list(1)


@leaves_sockets
async def test_a_cancellation_is_never_lost_in_the_driver(database: Database) -> None:
    async def exchange_for_ever() -> None:
        while True:
            with faults("exchange"):
                await database.command("ping")

    for turns in range(30):
        task = asyncio.create_task(exchange_for_ever())
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=10)
        assert done
        assert task.cancelled()
    gc.collect()
