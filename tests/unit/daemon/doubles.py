"""What stands in for the world in the tests of the loops: each does one thing, and is driven by hand."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from hascheduler.daemon.config import ReplicaConfig
from hascheduler.daemon.loop.inbox import Inbox
from hascheduler.daemon.outbound.publisher import Publisher
from hascheduler.dispatch.decisions import Decision, Send, Settlement
from hascheduler.model.values.instants import MonoMs, WallMs
from hascheduler.testing.memory.messages import MemoryBroker, MemoryTransport

LIMIT_S = 10
CONFIG = ReplicaConfig(
    scheduler="default",
    replica_id="r1",
    name="one",
    started_at_ms=WallMs(0),
    liveness_endpoint="127.0.0.1:1",
    lease_duration_ms=10_000,
    renew_deadline_ms=6_000,
    retry_period_ms=1_000,
    heartbeat_timeout_ms=5_000,
    journal_retention_ms=600_000,
)


@asynccontextmanager
async def running(*loops: Coroutine[Any, Any, object]) -> AsyncIterator[None]:
    """Run them beside the block, and end them with it."""
    tasks = {asyncio.create_task(loop) for loop in loops}
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def comes(event: asyncio.Event) -> None:
    """Wait until it is set, once more."""
    async with asyncio.timeout(LIMIT_S):
        await event.wait()
    event.clear()


async def until(condition: Callable[[], bool], changed: asyncio.Event) -> None:
    """Wait until it holds; whatever it depends on sets ``changed``."""
    async with asyncio.timeout(LIMIT_S):
        while not condition():
            changed.clear()
            await changed.wait()


class HandClock:
    """`hascheduler.ports.Clock` that moves only by hand."""

    def __init__(self, now: int = 1_700_000_000_000) -> None:
        self.now = now

    def wall_ms(self) -> WallMs:
        return WallMs(self.now)

    def mono_ms(self) -> MonoMs:
        return MonoMs(self.now)


class RecordingPublisher(Publisher):
    def __init__(self) -> None:
        super().__init__(MemoryTransport(MemoryBroker()), Inbox())
        self.offered: list[Send] = []

    def offer(self, sends: Iterable[Send]) -> None:
        self.offered += sends


class AnsweringClaims:
    """`hascheduler.ports.ClaimStore` that carries nothing out and answers each decision as the test says."""

    def __init__(self, answer: Callable[[Decision], Settlement] = lambda _: Settlement.DONE) -> None:
        self.answer = answer
        self.applied: list[tuple[tuple[Decision, ...], bool]] = []

    async def apply(self, decisions: Sequence[Decision], at_ms: WallMs, *, majority: bool) -> list[Settlement]:
        self.applied.append((tuple(decisions), majority))
        return [self.answer(decision) for decision in decisions]
