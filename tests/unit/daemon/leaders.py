"""A leader on leases in hand, in a term that never gets to decide."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

from hascheduler.daemon.leadership.failover import FailoverReporter
from hascheduler.daemon.leadership.leader import Leader
from hascheduler.daemon.loop.inbox import Inbox
from hascheduler.election.elector import Elector
from hascheduler.errors import StoreUnavailable
from hascheduler.model.leadership import LeaseRecord
from hascheduler.telemetry.metrics_replica import ReplicaMetrics
from tests.unit.daemon.doubles import CONFIG, AnsweringClaims, HandClock, RecordingPublisher

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
    def __init__(self, *, silent_ms: int = SILENT_MS) -> None:
        self.clock, self.leases = HandClock(), Leases()
        config = replace(
            CONFIG,
            retry_period_ms=RETRY_MS,
            renew_deadline_ms=1_000_000,
            lease_duration_ms=2_000_000,
            standstill_after_ms=silent_ms,
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


@asynccontextmanager
async def running(room: Room) -> AsyncIterator[Room]:
    """From its first renewal on."""
    task = asyncio.create_task(room.leader.run(lambda: True))
    await room.until(lambda: room.leases.answered > 0)
    yield room
    task.cancel()
    await asyncio.wait({task})
