"""How soon a replica looks again at the stream, how far apart exchanges are, and how long decisions take."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest

from hascheduler.clock import SystemClock
from hascheduler.daemon.loop import feeder as feeder_module
from hascheduler.daemon.loop.batch_delay import PER_CHANGE_MS, BatchDelay
from hascheduler.daemon.loop.feeder import Feeder
from hascheduler.mirror.changes import Change, Operation
from hascheduler.mirror.mirror import Folded
from hascheduler.model.collection import Collection
from hascheduler.model.values.instants import MonoMs
from hascheduler.ports import Batch
from tests.unit.daemon.doubles import running

LIMIT_S = 10
LONG_S = 3_600


class BusyStream:
    """There is always something to tell; the first ``full`` times as much as a batch holds."""

    def __init__(self, full: int = 0) -> None:
        self.full = full
        self.looks = 0
        self.looked = asyncio.Event()

    async def open(self, _: Any) -> "BusyStream":
        return self

    async def snapshot(self) -> AsyncIterator[Sequence[Change]]:
        yield []

    async def next_batch(self, _: int) -> Batch:
        self.looks += 1
        self.looked.set()
        changes = [Change(Collection.META, Operation.DELETE, f"{self.looks}", {})]
        return Batch(changes, self.looks, str(self.looks), is_full=self.looks <= self.full)

    async def fetch(self, _: Collection, __: Sequence[str]) -> Sequence[Change]:
        return []

    async def close(self) -> None:
        pass

    async def look(self) -> None:
        """Until it was looked at once more."""
        async with asyncio.timeout(LIMIT_S):
            await self.looked.wait()
        self.looked.clear()


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
        while stream.looks < 6:
            await stream.look()
        await asyncio.sleep(0.1)
        assert stream.looks == 6


@pytest.mark.parametrize(("waited_for", "expects_lease"), [(True, False), (False, True), (False, False)])
async def test_a_follower_rests_until_it_is_waited_for_or_about_to_lead(
    monkeypatch: pytest.MonkeyPatch, *, waited_for: bool, expects_lease: bool
) -> None:
    monkeypatch.setattr(feeder_module, "_FOLLOWER_DELAY_S", LONG_S)
    stream = BusyStream()
    feeder = feeder_of(stream)
    feeder.expects_lease = expects_lease
    async with running(feeder.run(Sink(latency_sensitive=waited_for))):
        await stream.look()
        if waited_for or expects_lease:
            await stream.look()
            return
        await asyncio.sleep(0.1)
        assert stream.looks == 1
        feeder.hurry()
        await stream.look()
        await asyncio.sleep(0.1)
        assert stream.looks == 2


def after(per_s: int, seconds: int = 5, every_ms: int = 10, neighbours: int = 0) -> tuple[BatchDelay, MonoMs]:
    """A pace that events have passed at that rate."""
    pace, now = BatchDelay(per_event_ms=0.01, max_ms=20, neighbours=neighbours), 0
    for now in range(0, seconds * 1_000, every_ms):
        pace.passed(per_s * every_ms // 1_000, MonoMs(now))
    return pace, MonoMs(now)


@pytest.mark.parametrize(("per_s", "spacing_ms"), [(0, 0), (100, 1), (200, 2), (1_000, 10), (2_000, 20), (9_000, 20)])
def test_the_spacing_grows_with_the_rate_up_to_its_most(per_s: int, spacing_ms: float) -> None:
    pace, now = after(per_s)
    assert pace.spacing_ms(now) == pytest.approx(spacing_ms, rel=0.02)
