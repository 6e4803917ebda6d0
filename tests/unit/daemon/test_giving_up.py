"""A leader that hands over, and one that knows when the store of leases no longer answers it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import pytest

from hascheduler.daemon.leadership.failover import FailoverReporter
from hascheduler.daemon.leadership.leader import Leader
from hascheduler.daemon.loop.inbox import Inbox
from hascheduler.election.elector import Elector
from hascheduler.errors import StoreUnavailable
from hascheduler.model.leadership import LeaseRecord
from hascheduler.telemetry.metrics_replica import ReplicaMetrics
from tests.factories import make_lease
from tests.unit.daemon.doubles import CONFIG, AnsweringClaims, HandClock, RecordingPublisher, running

RETRY_MS, SILENT_MS = 10, 5_000


class Leases:
    """Compares and sets, until it is cut off; counts its answers and the writes that got none.

    While ``answers`` is clear, a write is carried out, and its answer waits.
    """

    def __init__(self) -> None:
        self.stored: LeaseRecord | None = None
        self.is_cut = False
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
        if self.is_cut:
            self.unanswered += 1
            raise StoreUnavailable("cut off")
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


class Room:
    def __init__(self) -> None:
        self.clock, self.leases = HandClock(), Leases()
        config = replace(
            CONFIG,
            retry_period_ms=RETRY_MS,
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
        async with asyncio.timeout(10):
            while not condition():
                self.leases.changed.clear()
                await self.leases.changed.wait()
        await asyncio.sleep(0)  # the leader takes the answer

    async def renews(self, after_ms: int = RETRY_MS) -> None:
        """One more renewal that long after; it is answered or it is not."""
        self.clock.now += after_ms
        tried = self.leases.answered + self.leases.unanswered
        await self.until(lambda: self.leases.answered + self.leases.unanswered > tried)


@pytest.fixture
async def room() -> AsyncIterator[Room]:
    """From its first renewal on."""
    one = Room()
    async with running(one.leader.run(lambda: True)):
        await one.until(lambda: one.leases.answered > 0)
        yield one


async def test_a_renewal_under_way_does_not_keep_a_lease_that_is_handed_over(room: Room) -> None:
    room.leases.answers.clear()
    room.clock.now += RETRY_MS
    room.leases.changed.clear()
    await room.leases.changed.wait()
    handing_over = asyncio.create_task(room.leader.hand_over())
    await asyncio.sleep(0)
    room.leases.answers.set()
    await handing_over
    assert room.leases.stored is not None
    assert room.leases.stored.holder == ""
    assert not room.leader.in_term


async def test_one_that_is_cancelled_while_it_hands_over_keeps_no_term_in_which_nothing_decides(room: Room) -> None:
    handing_over = asyncio.create_task(room.leader.hand_over())
    await asyncio.sleep(0)
    handing_over.cancel()
    await room.until(lambda: room.leases.stored is not None and room.leases.stored.holder == "")


async def test_who_resigned_does_not_lead_again(room: Room) -> None:
    await room.leader.resign()
    answered = room.leases.answered
    room.clock.now += 100 * RETRY_MS
    await asyncio.sleep(5 * RETRY_MS / 1_000)
    assert room.leases.answered == answered


async def test_renewals_without_an_answer_for_as_long_as_a_leader_may_be_silent_put_it_out_of_touch(room: Room) -> None:
    room.leases.is_cut = True
    await room.renews()
    assert not room.leader.is_out_of_touch()
    await room.renews(SILENT_MS)
    assert room.leader.is_out_of_touch()


async def test_a_replica_that_came_to_no_renewal_for_a_while_is_not_out_of_touch(room: Room) -> None:
    await room.renews()
    room.clock.now += 10 * SILENT_MS
    assert not room.leader.is_out_of_touch()


async def test_who_knows_that_another_leads_is_not_out_of_touch(room: Room) -> None:
    room.leases.is_cut = True
    await room.renews(SILENT_MS)
    room.leader.lease_seen(make_lease("r2", term=9, renewals=9))
    assert not room.leader.is_out_of_touch()
