"""Who waits for news, and is told once."""

import asyncio

import pytest

from hascheduler.daemon.outbound.waiters import WAITERS_MAX, Waiters
from hascheduler.errors import Overloaded


async def test_a_bell_rings_for_its_name_alone_and_once_for_all_that_happened() -> None:
    bells = Waiters()
    with bells.waiting("a") as one, bells.waiting("a") as other, bells.waiting("b") as stranger:
        waiting = asyncio.create_task(stranger.wait())
        bells.notify("a")
        bells.notify("a")
        assert await one.wait()
        assert await other.wait()
        again = asyncio.create_task(one.wait())
        await asyncio.sleep(0)
        assert not again.done()
        assert not waiting.done()
        bells.notify_all()
        assert await again
        assert await waiting
    assert not bells.names
    bells.notify("a")


async def test_there_is_room_for_so_many_and_again_when_one_is_gone() -> None:
    bells = Waiters()
    hung = [bells.waiting(str(number % 3)) for number in range(WAITERS_MAX)]
    for bell in hung:
        bell.__enter__()
    with pytest.raises(Overloaded), bells.waiting("a"):
        pass
    hung.pop().__exit__(None, None, None)
    with bells.waiting("a"):
        assert len(bells.names) == 4


async def test_when_the_replica_ends_nobody_waits_and_nobody_begins_to() -> None:
    bells = Waiters()
    with bells.waiting("a") as bell:
        waiting = asyncio.create_task(bell.wait())
        await asyncio.sleep(0)
        bells.close()
        assert not await waiting
    with pytest.raises(Overloaded, match="about to end"), bells.waiting("a"):
        pass
