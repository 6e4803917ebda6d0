"""A new leader decides nothing until its own stream has delivered its ``term_began``; planted: one that does.

The second replica's stream is held back while the first one leads, so that its mirror is behind by everything that
the first decided. Then the first one's process "dies". What the second decides on such a mirror was decided before.
"""

import asyncio
import contextlib
import inspect
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hascheduler.clock import SystemClock
from hascheduler.daemon.leadership.leader import Leader
from hascheduler.daemon.replica import Replica
from hascheduler.dispatch.decisions import Fire
from hascheduler.mirror.changes import Change
from hascheduler.model.documents.schedule import NewSchedule, new_schedule_document
from hascheduler.model.leadership import EntryKind
from hascheduler.model.message import Message
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import Batch, ChangeStream, Confirm, JournalEntry
from hascheduler.schema.schedule import JobTemplate
from hascheduler.schema.trigger import Interval, Once, Trigger
from hascheduler.testing.memory.database import MemoryConnection, MemoryDatabase
from hascheduler.testing.memory.leadership import MemoryJournal
from hascheduler.testing.memory.resources import MemoryScheduleStore
from hascheduler.testing.memory.stream import MemoryChangeSource
from tests.unit.daemon.in_memory import replica_in_memory

EVERY_MS = 40
_LIMIT_S = 20
_LOOK_S = 0.005


class HeldSource(MemoryChangeSource):
    """A stream that tells nothing while it is held."""

    def __init__(self, connection: MemoryConnection) -> None:
        super().__init__(connection)
        self.flowing = asyncio.Event()
        self.flowing.set()

    async def open(self, resume: Any | None) -> ChangeStream:  # type: ignore[override]  # wraps what it opens
        return _HeldStream(await super().open(resume), self.flowing)


class _HeldStream:
    def __init__(self, stream: ChangeStream, flowing: asyncio.Event) -> None:
        self._stream = stream
        self._flowing = flowing

    async def next_batch(self, wait_ms: int) -> Batch:
        await self._flowing.wait()
        # Short, so that a hold takes effect before the next event.
        return await self._stream.next_batch(min(wait_ms, 5))

    def snapshot(self) -> AsyncIterator[Sequence[Change]]:
        return self._stream.snapshot()

    async def close(self) -> None:
        await self._stream.close()


class SilentTransport:
    """Takes every message and tells nobody."""

    accepting = True

    async def run(self, turned: Callable[[], None] = lambda: None) -> None:
        await asyncio.Event().wait()

    async def publish(self, messages: Sequence[tuple[str, Message]]) -> list[Confirm]:
        return [Confirm.CONFIRMED] * len(messages)


@asynccontextmanager
async def running(database: MemoryDatabase, name: str) -> AsyncIterator[tuple[Replica, HeldSource]]:
    """A replica on the memory database; leaving the context is its death: nothing is handed over."""
    connection = MemoryConnection(database)
    source = HeldSource(connection)
    async with replica_in_memory(name, connection, source=source, transport=SilentTransport()) as (replica, _):
        yield replica, source


async def until(condition: Callable[[], Any], what: str) -> None:
    """Wait for ``condition``, which may be a coroutine function, looking again every few milliseconds."""
    for _ in range(int(_LIMIT_S / _LOOK_S)):
        found = condition()
        if await found if inspect.isawaitable(found) else found:
            return
        await asyncio.sleep(_LOOK_S)
    raise AssertionError(f"not within {_LIMIT_S} s: {what}")


async def check_takeover_with_a_late_stream(database: MemoryDatabase) -> None:
    """Kill a leader while the only standby's stream is held; no decision may stand twice in the journal."""
    connection = MemoryConnection(database)
    journal = MemoryJournal(connection)

    async def entries() -> list[JournalEntry]:
        tail = await journal.tail("default")
        return await journal.read("default", 0, tail.seq + 1) if tail else []

    def decided(of: Replica) -> int:
        cluster = of.view.cluster()
        return cluster.journal.seq if cluster.journal and cluster.leading else 0

    async with contextlib.AsyncExitStack() as first_life, contextlib.AsyncExitStack() as second_life:
        first, _ = await first_life.enter_async_context(running(database, "first"))
        await until(lambda: first.view.cluster().leading, "the first one leads")
        second, second_source = await second_life.enter_async_context(running(database, "second"))
        await until(lambda: second.view.ready, "the second one is ready")
        now = SystemClock().wall_ms()
        template = JobTemplate("log", "t", "default", "default", "", 5, "queued")
        trigger = Trigger(Interval(EVERY_MS, now))
        schedules = MemoryScheduleStore(connection)
        await schedules.create(new_schedule_document(NewSchedule("tick", trigger, template, None, {}, now)))
        # Decided in the middle: neither the last entry, which a successor applies again, nor before the hold.
        once = Trigger(Once(WallMs(now + 10 * EVERY_MS)))
        await schedules.create(new_schedule_document(NewSchedule("once", once, template, None, {}, now)))
        await until(lambda: second.view.cluster().counts["schedules"] == 2, "the second one knows the schedules")
        second_source.flowing.clear()
        held_at = decided(first)
        await until(lambda: decided(first) >= held_at + 20, "the first one has decided many entries more")
        await first_life.aclose()
        before = len(await entries())

        async def second_term_began() -> bool:
            return [entry.head.kind for entry in await entries()].count(EntryKind.TERM_BEGAN) == 2

        async def decided_on() -> bool:
            return len(await entries()) >= before + 10

        # The second one has won the lease and begun its term; its stream still tells nothing of all that.
        await until(second_term_began, "the second one has begun its term")
        for _ in range(40):  # turns of the loop in which a hasty leader would decide
            await asyncio.sleep(_LOOK_S)
        second_source.flowing.set()
        await until(decided_on, "the second one decides")
        counted = Counter(decision for entry in await entries() for decision in entry.decisions)
    twice = [decision for decision, count in counted.items() if count > 1]
    assert not twice, f"decided twice: {twice[:5]}"
    fires = [decision for decision in counted if isinstance(decision, Fire)]
    fired = sorted(fire.nominal_ms for fire in fires if fire.schedule == "tick")
    assert fired == list(range(now + EVERY_MS, fired[-1] + 1, EVERY_MS)), "a nominal time was passed over"


class HastyLeader(Leader):
    async def _delivered(self, seq: int) -> None:
        return


async def test_a_leader_waits_for_its_own_term_to_come_by() -> None:
    await check_takeover_with_a_late_stream(MemoryDatabase())


async def test_a_leader_that_does_not_wait_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hascheduler.daemon.replica.Leader", HastyLeader)
    with pytest.raises(AssertionError, match="decided twice"):
        await check_takeover_with_a_late_stream(MemoryDatabase())
