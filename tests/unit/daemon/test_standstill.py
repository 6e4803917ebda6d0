"""A standby that watches the leader; a leader that watches its own loop and its lease, and one that hands over."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import pytest

from hascheduler.clock import SystemClock
from hascheduler.daemon.leadership import standstill
from hascheduler.daemon.leadership.failover import FailoverReporter
from hascheduler.daemon.leadership.leader import Leader
from hascheduler.daemon.leadership.liveness import greets_in_time
from hascheduler.daemon.leadership.standstill import StandstillWatch
from hascheduler.daemon.loop.inbox import Inbox
from hascheduler.election.elector import Elector
from hascheduler.errors import StoreOverloaded, StoreUnavailable
from hascheduler.model.leadership import LeaseRecord
from hascheduler.telemetry.metrics_replica import ReplicaMetrics
from hascheduler.telemetry.registry import new_registry
from tests.factories import make_lease
from tests.unit.daemon.doubles import CONFIG, AnsweringClaims, HandClock, RecordingPublisher, running, until
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

    def scraped(self) -> Scrape:
        return scrape(self.registry)


@pytest.fixture
async def room() -> AsyncIterator[Room]:
    one = Room()
    async with running(one.watch.run(), one.beats()):
        yield one


async def test_a_leader_that_is_silent_and_answers_no_connection_is_suspected_and_counted_once(room: Room) -> None:
    room.follows()
    await until(lambda: room.questions > 0, room.changed)
    room.answers = False
    await until(lambda: len(room.suspected) > 1, room.changed)
    assert set(room.suspected) == {"other"}
    assert room.scraped().of("hascheduler_leader_suspicions_total", outcome="suspected") == 1


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standstill, "_HANG_MIN_MS", 8)


@pytest.mark.usefixtures("soon")
async def test_a_loop_that_does_not_come_round_is_reported_until_it_does(room: Room) -> None:
    await until(lambda: room.turns > 2, room.changed)
    assert (room.hangs, room.watch.own_loop_hangs) == (0, False)
    room.is_turning = False
    await until(lambda: room.hangs > 1, room.changed)
    assert room.watch.own_loop_hangs
    room.is_turning = True
    turns = room.turns
    await until(lambda: room.turns > turns + 1, room.changed)
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


RENEWAL_MS, SILENT_MS = 10, 5_000


class Leases:
    """Compares and sets, until it is cut off; counts its answers and the writes that got none.

    While ``answers`` is clear, a write is carried out, and its answer waits.
    """

    def __init__(self) -> None:
        self.stored: LeaseRecord | None = None
        self.fault: StoreUnavailable | None = None
        self.answers = asyncio.Event()
        self.answers.set()
        self.answered = self.unanswered = 0
        self.changed = asyncio.Event()

    async def get(self, shard: str) -> LeaseRecord | None:
        return self.stored

    async def create(self, record: LeaseRecord) -> bool:
        return await self._swap(None, record)

    async def update(self, expected: LeaseRecord, proposed: LeaseRecord) -> bool:
        return await self._swap(expected, proposed)

    async def _swap(self, expected: LeaseRecord | None, proposed: LeaseRecord) -> bool:
        self.changed.set()
        if self.fault is not None:
            self.unanswered += 1
            raise self.fault
        is_expected = self.stored == expected
        if is_expected:
            self.stored = proposed
        await self.answers.wait()
        self.answered += 1
        return is_expected


class UnansweringJournal:
    """The term never gets to decide."""

    async def tail(self, shard: str) -> None:
        await asyncio.Event().wait()


class Reign:
    def __init__(self) -> None:
        self.clock, self.leases = HandClock(), Leases()
        config = replace(
            CONFIG,
            retry_period_ms=RENEWAL_MS,
            renew_deadline_ms=1_000_000,
            lease_duration_ms=2_000_000,
            standstill_after_ms=SILENT_MS,
        )
        self.leader = Leader(
            config,
            Elector(config.election, self.clock.mono_ms()),
            leases=self.leases,
            journal=UnansweringJournal(),  # type: ignore[arg-type]
            claims=AnsweringClaims(),
            inbox=Inbox(),
            publisher=RecordingPublisher(),
            clock=self.clock,
            can_lead=lambda: True,
            clock_trusted=lambda: True,
            hurry=lambda: None,
            due_ms=lambda fire: fire.nominal_ms,
            metrics=ReplicaMetrics(),
            observer=FailoverReporter(config.scheduler, config.replica_id, self.clock, ReplicaMetrics()),
        )

    async def until(self, condition: Callable[[], bool]) -> None:
        await until(condition, self.leases.changed)
        await asyncio.sleep(0)  # the leader takes the answer

    async def renews(self, after_ms: int = RENEWAL_MS) -> None:
        """One more renewal that long after; it is answered or it is not."""
        self.clock.now += after_ms
        tried = self.leases.answered + self.leases.unanswered
        await self.until(lambda: self.leases.answered + self.leases.unanswered > tried)


@pytest.fixture
async def reign() -> AsyncIterator[Reign]:
    """From its first renewal on."""
    one = Reign()
    async with running(one.leader.run(lambda: True)):
        await one.until(lambda: one.leases.answered > 0)
        yield one


async def test_a_renewal_under_way_does_not_keep_a_lease_that_is_handed_over(reign: Reign) -> None:
    reign.leases.answers.clear()
    reign.clock.now += RENEWAL_MS
    reign.leases.changed.clear()
    await reign.leases.changed.wait()
    handing_over = asyncio.create_task(reign.leader.hand_over())
    await asyncio.sleep(0)
    reign.leases.answers.set()
    await handing_over
    assert reign.leases.stored is not None
    assert reign.leases.stored.holder == ""
    assert not reign.leader.in_term


async def test_one_that_is_cancelled_while_it_hands_over_keeps_no_term_in_which_nothing_decides(
    reign: Reign,
) -> None:
    handing_over = asyncio.create_task(reign.leader.hand_over())
    await asyncio.sleep(0)
    handing_over.cancel()
    await reign.until(lambda: reign.leases.stored is not None and reign.leases.stored.holder == "")


async def test_who_resigned_does_not_lead_again(reign: Reign) -> None:
    await reign.leader.resign()
    answered = reign.leases.answered
    reign.clock.now += 100 * RENEWAL_MS
    await asyncio.sleep(5 * RENEWAL_MS / 1_000)
    assert reign.leases.answered == answered


async def test_renewals_without_an_answer_for_as_long_as_a_leader_may_be_silent_put_it_out_of_touch(
    reign: Reign,
) -> None:
    reign.leases.fault = StoreUnavailable("cut off")
    await reign.renews()
    assert not reign.leader.is_out_of_touch()
    await reign.renews(SILENT_MS)
    assert reign.leader.is_out_of_touch()


async def test_a_leader_whose_renewals_an_overloaded_database_refuses_is_not_out_of_touch(reign: Reign) -> None:
    reign.leases.fault = StoreOverloaded("refused")
    await reign.renews()
    await reign.renews(SILENT_MS)
    assert reign.leader.in_term
    assert not reign.leader.is_out_of_touch()


async def test_a_replica_that_came_to_no_renewal_for_a_while_is_not_out_of_touch(reign: Reign) -> None:
    await reign.renews()
    reign.clock.now += 10 * SILENT_MS
    assert not reign.leader.is_out_of_touch()


async def test_who_knows_that_another_leads_is_not_out_of_touch(reign: Reign) -> None:
    reign.leases.fault = StoreUnavailable("cut off")
    await reign.renews(SILENT_MS)
    reign.leader.lease_seen(make_lease("r2", term=9, renewals=9))
    assert not reign.leader.is_out_of_touch()
