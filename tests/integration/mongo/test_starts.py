"""Starts without an answer raise an error, and leave their task uncancelled, so that it can retry."""

import asyncio

from hascheduler.errors import StoreUnavailable
from hascheduler.model.values.instants import WallMs
from hascheduler.mongo.connection import Database
from hascheduler.mongo.work.store import MongoWorkStore


async def test_each_start_without_an_answer_raises_that_the_store_is_unavailable(database: Database) -> None:
    work = MongoWorkStore(database, 600_000)
    await database.client.close()
    starts = (work.start(f"j{number}", 1, "p", WallMs(1)) for number in range(3))
    answers = await asyncio.gather(*starts, return_exceptions=True)
    assert [type(answer) for answer in answers] == [StoreUnavailable] * 3
    task = asyncio.current_task()
    assert task is not None
    assert not task.cancelling()
