"""What pools of the driver wait with survives that a caller is cancelled twice, as when its term ends in an outage."""

import asyncio

import pytest
from pymongo.lock import _async_cond_wait, _async_create_condition, _async_create_lock

import hascheduler.mongo.connection  # what every process connects with


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.mark.parametrize("between", range(6))
async def test_a_wait_that_is_cancelled_twice_leaves_the_lock_free(between: int) -> None:
    lock = _async_create_lock()
    condition = _async_create_condition(lock)

    async def wait() -> None:
        async with condition:
            await _async_cond_wait(condition, 30)

    waiting = asyncio.create_task(wait())
    await turns(3)
    await lock.acquire()  # another exchange has it when the first cancellation comes
    waiting.cancel()
    await turns(between)
    waiting.cancel()
    lock.release()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    async with asyncio.timeout(30):
        await lock.acquire()


async def test_a_wait_in_this_task_ends_in_time() -> None:
    with pytest.raises(TimeoutError):
        await hascheduler.mongo.connection.wait_in_this_task(asyncio.Event().wait(), 0.01)
    assert await hascheduler.mongo.connection.wait_in_this_task(asyncio.sleep(0, "done"), None) == "done"
