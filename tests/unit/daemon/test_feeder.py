"""How soon a replica reads the stream, and how long decisions take; inputs and requests that wait."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest

from hascheduler.clock import SystemClock
from hascheduler.daemon.loop import feeder as feeder_module
from hascheduler.daemon.loop import inbox as inboxes
from hascheduler.daemon.loop.batch_delay import PER_CHANGE_MS, BatchDelay
from hascheduler.daemon.loop.feeder import Feeder
from hascheduler.daemon.loop.inbox import INPUTS_MAX, Inbox
from hascheduler.daemon.loop.stepper import DecisionLag
from hascheduler.daemon.outbound.waiters import WAITERS_MAX, Waiters
from hascheduler.dispatch.inputs import TrustLost
from hascheduler.errors import Overloaded
from hascheduler.mirror.changes import Change, JobGone, JobSeen, Operation
from hascheduler.mirror.mirror import Folded
from hascheduler.model.collection import Collection
from hascheduler.model.values.instants import MonoMs
from hascheduler.ports import Batch
from tests.unit.daemon.doubles import running
from tests.unit.dispatch.nouns import running as running_job

LIMIT_S = 10
LONG_S = 3_600


class BusyStream:
    """There is always something to tell; the first ``full`` times as much as a batch holds."""

    def __init__(self, full: int = 0) -> None:
        self.full = full
        self.reads = 0
        self.was_read = asyncio.Event()

    async def open(self, _: Any) -> "BusyStream":
        return self

    async def snapshot(self) -> AsyncIterator[Sequence[Change]]:
        yield []

    async def next_batch(self, _: int) -> Batch:
        self.reads += 1
        self.was_read.set()
        changes = [Change(Collection.META, Operation.DELETE, f"{self.reads}", {})]
        return Batch(changes, self.reads, str(self.reads), is_full=self.reads <= self.full)

    async def fetch(self, _: Collection, __: Sequence[str]) -> Sequence[Change]:
        return []

    async def close(self) -> None:
        pass

    async def next_read(self) -> None:
        """Until the stream has been read once more."""
        async with asyncio.timeout(LIMIT_S):
            await self.was_read.wait()
        self.was_read.clear()


class NoHeartbeat:
    def barrier(self) -> int:
        return 1

    def echoed(self, _: int) -> bool:
        return True


class Sink:
    def __init__(self, *, latency_sensitive: bool, complete: Callable[[], object] = lambda: None) -> None:
        self._latency_sensitive = latency_sensitive
        self._complete = complete

    async def take(self, folded: Folded) -> None:
        pass

    async def restarted(self) -> None:
        pass

    def completed(self) -> None:
        self._complete()

    def latency_sensitive(self) -> bool:
        return self._latency_sensitive


def feeder_of(stream: Any) -> Feeder:
    heartbeat: Any = NoHeartbeat()
    return Feeder(stream, heartbeat, SystemClock(), BatchDelay(PER_CHANGE_MS, max_ms=20))


async def test_a_follower_that_is_behind_rests_once_it_has_caught_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeder_module, "_FOLLOWER_DELAY_S", LONG_S)
    stream = BusyStream(full=5)
    async with running(feeder_of(stream).run(Sink(latency_sensitive=False))):
        while stream.reads < 6:
            await stream.next_read()
        await asyncio.sleep(0.1)
        assert stream.reads == 6


@pytest.mark.parametrize(("waited_for", "expects_lease"), [(True, False), (False, True), (False, False)])
async def test_a_follower_rests_until_it_is_waited_for_or_about_to_lead(
    monkeypatch: pytest.MonkeyPatch, *, waited_for: bool, expects_lease: bool
) -> None:
    monkeypatch.setattr(feeder_module, "_FOLLOWER_DELAY_S", LONG_S)
    stream = BusyStream()
    feeder = feeder_of(stream)
    feeder.expects_lease = expects_lease
    async with running(feeder.run(Sink(latency_sensitive=waited_for))):
        await stream.next_read()
        if waited_for or expects_lease:
            await stream.next_read()
            return
        await asyncio.sleep(0.1)
        assert stream.reads == 1
        feeder.hurry()
        await stream.next_read()
        await asyncio.sleep(0.1)
        assert stream.reads == 2


def test_a_lag_is_the_mean_of_about_a_second() -> None:
    lag = DecisionLag()
    for at_ms in range(0, 3_000, 10):
        lag.observe(400, MonoMs(at_ms))
    assert lag.mean_ms(MonoMs(3_000)) == 400
    lag.observe(0, MonoMs(3_000))
    assert 390 < (lag.mean_ms(MonoMs(3_000)) or 0) < 400
    for at_ms in range(3_000, 8_000, 10):
        lag.observe(20, MonoMs(at_ms))
    assert 20 <= (lag.mean_ms(MonoMs(8_000)) or 0) < 25


STARTED = JobSeen(running_job("a", "p"))
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
    with pytest.raises(Overloaded, match="shutting down"), waiters.waiting("a"):
        pass
