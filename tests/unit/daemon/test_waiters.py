"""Requests that wait for the stream, and wake once."""

import asyncio

import pytest

from hascheduler.daemon.outbound.waiters import WAITERS_MAX, Waiters
from hascheduler.errors import Overloaded


async def test_a_waiter_wakes_for_its_name_alone_and_once_for_all_that_happened() -> None:
    waiters = Waiters()
    with waiters.waiting("a") as one, waiters.waiting("a") as other, waiters.waiting("b") as stranger:
        waiting = asyncio.create_task(stranger.wait())
        waiters.notify("a")
        waiters.notify("a")
        assert await one.wait()
        assert await other.wait()
        again = asyncio.create_task(one.wait())
        await asyncio.sleep(0)
        assert not again.done()
        assert not waiting.done()
        waiters.notify_all()
        assert await again
        assert await waiting
    assert not waiters.names
    waiters.notify("a")


async def test_there_is_room_for_so_many_and_again_when_one_is_gone() -> None:
    waiters = Waiters()
    hung = [waiters.waiting(str(number % 3)) for number in range(WAITERS_MAX)]
    for bell in hung:
        bell.__enter__()
    with pytest.raises(Overloaded), waiters.waiting("a"):
        pass
    hung.pop().__exit__(None, None, None)
    with waiters.waiting("a"):
        assert len(waiters.names) == 4


async def test_when_the_replica_ends_no_request_waits_and_none_begins_to() -> None:
    waiters = Waiters()
    with waiters.waiting("a") as bell:
        waiting = asyncio.create_task(bell.wait())
        await asyncio.sleep(0)
        waiters.close()
        assert not await waiting
    with pytest.raises(Overloaded, match="about to end"), waiters.waiting("a"):
        pass
