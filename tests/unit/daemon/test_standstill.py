"""A standby that watches the leader, and a leader that watches its own loop; tests of the judgement are in election."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import pytest

from hascheduler.clock import SystemClock
from hascheduler.daemon.leadership import standstill
from hascheduler.daemon.leadership.liveness import greets_in_time
from hascheduler.daemon.leadership.standstill import StandstillWatch
from hascheduler.telemetry.metrics_replica import ReplicaMetrics
from hascheduler.telemetry.registry import new_registry
from tests.factories import make_lease
from tests.unit.daemon.doubles import CONFIG, running
from tests.unit.daemon.test_leader_probe import HOST, process
from tests.unit.telemetry.scraping import Scrape, scrape

RETRY_MS, AFTER_MS = 100, 200


class Room:
    """A watch that runs, beside a leader that keeps what it hears, and a stream that brings back each beat at once."""

    def __init__(self, *, after_ms: int = AFTER_MS) -> None:
        self.registry = new_registry()
        self.clock = SystemClock()
        self.in_term = False
        self.suspected: list[str] = []
        self.hangs = 0
        self.questions = 0
        self.answers = True
        self.turns = 0
        self.is_turning = True
        self.changed = asyncio.Event()
        self.watch = StandstillWatch(
            replace(CONFIG, retry_period_ms=RETRY_MS, standstill_after_ms=after_ms),
            self,  # type: ignore[arg-type]  # what it asks of a leader is here
            self.clock,
            greets_in_time=self._greets,
            beat_now=self._beat,
            rounds=self._rounds,
            metrics=ReplicaMetrics(self.registry),
        )
        self.watch.stream_seen(self.clock.mono_ms())

    # The leader

    def holder_stalled(self, holder: str) -> None:
        self.suspected.append(holder)
        self.changed.set()

    def loop_hangs(self) -> None:
        self.hangs += 1
        self.changed.set()

    # The world

    async def _greets(self, holder: str, endpoint: str, limit_s: float) -> bool:
        assert (holder, endpoint) == ("other", "host:1")
        self.questions += 1
        self.changed.set()
        if not self.answers:
            await asyncio.sleep(limit_s)
        return self.answers

    def _beat(self) -> int:
        asyncio.get_running_loop().call_soon(lambda: self.watch.stream_seen(self.clock.mono_ms()))
        return 1

    async def beats(self) -> None:
        """Its own, all the time, as its heartbeat writes them."""
        while True:
            self._beat()
            await asyncio.sleep(RETRY_MS / 4_000)

    def _rounds(self) -> int:
        self.turns += self.is_turning
        self.changed.set()
        return self.turns

    def follows(self) -> None:
        """A leader is there that has beaten some times."""
        self.watch.lease_seen(make_lease("other", endpoint="host:1"))
        for _ in range(4):
            self.watch.sign_seen("other")

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not condition():
                self.changed.clear()
                await self.changed.wait()

    def scraped(self) -> Scrape:
        return scrape(self.registry)


@pytest.fixture
async def room() -> AsyncIterator[Room]:
    one = Room()
    async with running(one.watch.run(), one.beats()):
        yield one


async def test_a_leader_that_is_silent_and_answers_no_connection_is_suspected_and_counted_once(room: Room) -> None:
    room.follows()
    await room.until(lambda: room.questions > 0)
    room.answers = False
    await room.until(lambda: len(room.suspected) > 1)
    assert set(room.suspected) == {"other"}
    assert room.scraped().of("hascheduler_leader_suspicions_total", outcome="suspected") == 1


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standstill, "_HANG_MIN_MS", 8)


@pytest.mark.usefixtures("soon")
async def test_a_loop_that_does_not_come_round_is_reported_until_it_does(room: Room) -> None:
    await room.until(lambda: room.turns > 2)
    assert (room.hangs, room.watch.own_loop_hangs) == (0, False)
    room.is_turning = False
    await room.until(lambda: room.hangs > 1)
    assert room.watch.own_loop_hangs
    room.is_turning = True
    turns = room.turns
    await room.until(lambda: room.turns > turns + 1)
    assert not room.watch.own_loop_hangs


async def test_a_process_that_is_silenced_does_not_greet_until_it_may_again() -> None:
    async with process("leader") as one:
        where = f"{HOST}:{one.port}"
        silenced = True
        one.silence_while(lambda: False)
        one.silence_while(lambda: silenced)
        assert not await greets_in_time("leader", where, 10)
        silenced = False
        assert await greets_in_time("leader", where, 10)
