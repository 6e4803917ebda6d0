"""What waits: inputs for the core, and requests for the stream."""

import asyncio

import pytest

from hascheduler.daemon.loop import inbox as inboxes
from hascheduler.daemon.loop.inbox import INPUTS_MAX, Inbox
from hascheduler.daemon.outbound.waiters import WAITERS_MAX, Waiters
from hascheduler.dispatch.decisions import Dispatch, Settlement
from hascheduler.dispatch.inputs import Settled, TrustLost
from hascheduler.errors import Overloaded
from hascheduler.mirror.changes import JobGone, JobSeen
from tests.unit.dispatch.nouns import dispatched, running

STARTED = JobSeen(running("a", "p"))
"""An input that can wait."""


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inputs that can wait do so for longer than a test takes."""
    monkeypatch.setattr(inboxes, "_WAITING_MAX_S", 3_600)


async def _turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_facts_wait_while_it_is_full_and_news_of_ones_own_does_not() -> None:
    inbox = Inbox()
    await inbox.put([JobGone(str(i)) for i in range(INPUTS_MAX)])
    late = asyncio.create_task(inbox.put([JobGone("late")]))
    await asyncio.wait({late}, timeout=0.01)
    assert not late.done()
    inbox.put_now(TrustLost())
    assert len(inbox.take()) == INPUTS_MAX + 1
    await late
    assert inbox.take() == [JobGone("late")]


@pytest.mark.usefixtures("patient")
async def test_what_can_wait_is_taken_along_with_what_can_not() -> None:
    inbox = Inbox()
    waiting = asyncio.create_task(inbox.wait(3_600))
    await inbox.put([JobSeen(dispatched("a", "p")), STARTED])
    inbox.put_now(Settled(Dispatch("a", 1, "p"), Settlement.DONE))
    await _turns()
    assert not waiting.done()
    await inbox.put([JobGone("a")])
    await waiting
    assert inbox.take() == [
        JobSeen(dispatched("a", "p")), STARTED, Settled(Dispatch("a", 1, "p"), Settlement.DONE), JobGone("a")
    ]  # fmt: skip


@pytest.mark.usefixtures("patient")
async def test_many_inputs_do_not_wait_for_each_other() -> None:
    inbox = Inbox()
    waiting = asyncio.create_task(inbox.wait(3_600))
    for _ in range(inboxes._GATHERED_MAX):
        await _turns()
        assert not waiting.done()
        await inbox.put([STARTED])
    await waiting
    assert len(inbox.take()) == inboxes._GATHERED_MAX


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
