"""One replica and its processors in this process, on memory stores and virtual time: what `VirtualScheduler` runs.

Owner of the parts and of their tasks. The replica, its API and the processors are those of production; only the ports
are replaced. Periods that keep a real cluster honest (lease, heartbeats) are stretched to hours, so that a quiet week
costs little, but a dead processor is found after the real heartbeat timeout. Nothing expires: the database keeps every
job of a test.
"""

import asyncio
import itertools
from collections.abc import Callable, Coroutine
from contextvars import Context
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, TypeVar

from fastapi import FastAPI

from hascheduler.api.admission.control import AdmissionControl
from hascheduler.api.admission.worker_registrations import WorkerRegistrations, WorkTerms
from hascheduler.api.app import create_routes, with_edge
from hascheduler.api.middleware.audit import AuditWriter
from hascheduler.api.middleware.auth import AuthConfig
from hascheduler.api.services import ApiServices
from hascheduler.daemon.config import ReplicaConfig, ReplicaPorts
from hascheduler.daemon.replica import Replica
from hascheduler.dispatch.config import DispatchConfig, PolicyConfig
from hascheduler.model.collection import Collection
from hascheduler.model.job import TERMINAL
from hascheduler.model.values.instants import MonoMs, WallMs
from hascheduler.processor import Handlers, Processor, ProcessorConfig
from hascheduler.testing.memory import access, claims, jobs, leadership, messages, resources, stream, work
from hascheduler.testing.memory.database import MemoryConnection, MemoryDatabase
from hascheduler.testing.virtual_loop import VirtualLoop

HOST = "scheduler.test"
HEARTBEAT_TIMEOUT_MS = 5_000
START_TIMEOUT_MS = 5_000
"""Both are the defaults of `hascheduler.settings`."""
_HOUR_MS = 3_600_000
_LEAP_MAX_S = 3_600.0
"""A leap is a pause of the whole process: it has to end before a heartbeat or a lease is missed."""
_QUIET_S = 0.6
"""Longer than any loop waits between two polls."""
_SETTLE_MAX_S = 5.0
_TURN_S = 0.05
_INSTANT_S = 1e-6
_RETENTION_MS = 10 * 365 * 86_400_000
_SCHEDULER = "default"
T = TypeVar("T")


class VirtualClock:
    """`hascheduler.ports.Clock` that reads the loop's clock; wall and monotonic time pass together."""

    def __init__(self, loop: VirtualLoop, epoch_ms: int) -> None:
        self._loop = loop
        self._epoch_ms = epoch_ms

    def wall_ms(self) -> WallMs:
        return WallMs(self._epoch_ms + round(self._loop.time() * 1000))

    def mono_ms(self) -> MonoMs:
        return MonoMs(round(self._loop.time() * 1000))


@dataclass(eq=False, slots=True)
class RunningProcessor:
    """One processor from its start to its end, with a connection of its own."""

    id: str
    processor: Processor
    connection: MemoryConnection
    task: asyncio.Task[None]


class VirtualCluster:
    """The replica, its API and its processors, made and used inside the loop; call `start` first, `stop` last."""

    def __init__(self, loop: VirtualLoop, clock: VirtualClock, policy: PolicyConfig, slots: int) -> None:
        self._loop = loop
        self._clock = clock
        self._slots = slots
        self._count = itertools.count(1)
        self._tasks: set[asyncio.Task[Any]] = set()
        self.database = MemoryDatabase()
        self.connection = MemoryConnection(self.database)
        self.broker = messages.MemoryBroker()
        self.processors: list[RunningProcessor] = []
        self.replica = self._replica(policy)
        self._admission = AdmissionControl(self.replica.view, access.MemoryBucketStore(self.connection), clock, None)
        self.replica.on_job_arrival(
            lambda job: self._admission.arrived(job.tenant, own=True, dependencies=len(job.waits_for))
        )
        self._audit_writer = AuditWriter(access.MemoryAuditStore(self.connection, _RETENTION_MS), clock)
        self.app = with_edge(_routes(), self._make_services())

    async def start(self) -> None:
        """Start the replica; return when it leads."""
        self.replica_task = self._begin(self.replica.run(), "replica")
        self._begin(self._audit_writer.run(), "audit log")
        await self._until(lambda: self.replica.view.cluster().leading and self.replica.view.ready)

    async def stop(self) -> None:
        """Stop in good order as far as possible, without waiting for handlers: this ends a test."""
        for running in list(self.processors):
            self._cut_off(running)
            await asyncio.wait([running.task], timeout=60)
        self.replica.stop()
        for task in self._tasks:
            if task.get_name() != "replica":
                task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=60)

    # Processors

    async def start_processor(self, handlers: Handlers) -> RunningProcessor:
        """Start a processor; return when the leader knows it."""
        id = f"processor-{next(self._count)}"
        connection = MemoryConnection(self.database)
        config = ProcessorConfig(
            id=id,
            name="processor",
            scheduler=_SCHEDULER,
            slots=self._slots,
            heartbeat_interval_ms=_HOUR_MS,
            heartbeat_deadline_ms=8 * _HOUR_MS,
            drain_grace_ms=20_000,
        )
        processor = Processor(
            handlers,
            work.MemoryWorkStore(connection, _RETENTION_MS),
            messages.MemoryDeliveries(self.broker, id, self._slots),
            self._clock,
            config,
        )
        running = RunningProcessor(id, processor, connection, self._begin(processor.run(), id))
        self.processors.append(running)
        await self._until(lambda: self.replica.view.processor(id) is not None)
        return running

    async def renew_processor(self, handlers: Handlers) -> None:
        """Start a processor with these handlers in place of the present one, which drains."""
        before, self.processors = self.processors, []
        for running in before:
            running.processor.drain()
        if before:
            await asyncio.wait([running.task for running in before], timeout=60)
        await self.start_processor(handlers)

    def crash(self, job_id: str, handlers: Handlers) -> None:
        """Kill the processor that runs the job as SIGKILL does, and start another.

        Nothing it does from now on reaches the database, and the leader learns of it only by missed heartbeats.
        """
        document = self.database.find(Collection.JOBS, job_id)
        for running in self.processors:
            if document is not None and running.id == document["processor"]:
                self._cut_off(running)
                self._begin(self._declare_dead(running), f"death of {running.id}")
                self._begin(self.start_processor(handlers), f"successor of {running.id}")
                return

    async def _declare_dead(self, running: RunningProcessor) -> None:
        await asyncio.sleep(HEARTBEAT_TIMEOUT_MS / 1_000)
        self.database.delete(Collection.PROCESSORS, running.id)

    def _cut_off(self, running: RunningProcessor) -> None:
        running.connection.cut()
        running.task.cancel()
        self.processors.remove(running)

    # Parts

    def _begin(self, coroutine: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        # A crash may begin it inside a handler, so it gets a context of its own.
        task = self._loop.create_task(coroutine, name=name, context=Context())
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # read, so that asyncio logs none; the replica's own ends the test's call

    def _replica(self, policy: PolicyConfig) -> Replica:
        config = ReplicaConfig(
            scheduler=_SCHEDULER,
            replica_id="replica-1",
            name="replica",
            started_at_ms=self._clock.wall_ms(),
            liveness_endpoint="127.0.0.1:1",
            lease_duration_ms=24 * _HOUR_MS,
            renew_deadline_ms=12 * _HOUR_MS,
            retry_period_ms=_HOUR_MS,
            heartbeat_timeout_ms=12 * _HOUR_MS,
            journal_retention_ms=_HOUR_MS,
            dispatch=DispatchConfig(start_timeout_ms=START_TIMEOUT_MS, policy=policy),
        )
        return Replica(
            config,
            ReplicaPorts(
                source=stream.MemoryChangeSource(self.connection),
                leases=leadership.MemoryLeaseStore(self.connection),
                journal=leadership.MemoryJournal(self.connection),
                claims=claims.MemoryClaimStore(self.connection, _RETENTION_MS),
                accounts=leadership.MemoryAccountStore(self.connection),
                board=leadership.MemoryReplicaBoard(self.connection),
                transport=messages.MemoryTransport(self.broker),
                liveness=_NeverWatched(),
                clock=self._clock,
                jobs=jobs.MemoryJobStore(self.connection, _RETENTION_MS),
            ),
        )

    def _make_services(self) -> ApiServices:
        view = self.replica.view
        connection = self.connection
        ids = itertools.count(1)
        return ApiServices(
            schedules=resources.MemoryScheduleStore(connection),
            definitions=resources.MemoryResourceStore(connection, Collection.DEFINITIONS),
            calendars=resources.MemoryResourceStore(connection, Collection.CALENDARS),
            lanes=resources.MemoryResourceStore(connection, Collection.LANES),
            tenants=resources.MemoryResourceStore(connection, Collection.TENANTS),
            pauses=resources.MemoryResourceStore(connection, Collection.PAUSES),
            jobs=jobs.MemoryJobStore(connection, _RETENTION_MS),
            admission=self._admission,
            verdicts=resources.MemoryVerdictStore(connection),
            view=view,
            events=self.replica.events,
            clock=self._clock,
            new_id=lambda: f"{next(ids):06d}",
            new_job_id=lambda _: f"job:{next(ids):06d}",
            auth=AuthConfig(hosts=frozenset({HOST})),
            tokens=access.MemoryTokenStore(connection),
            audit=access.MemoryAuditStore(connection, _RETENTION_MS),
            audit_writer=self._audit_writer,
            work=work.MemoryWorkStore(connection, _RETENTION_MS),
            work_terms=WorkTerms(_SCHEDULER, 1_000, 4_000),
            registrations=WorkerRegistrations(view, self._clock),
            failovers=leadership.MemoryFailoverStore(connection),
        )

    async def _until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not is_so():  # noqa: ASYNC110  # the condition has no event
                await asyncio.sleep(0.01)


class _NeverWatched:
    def silence_while(self, silenced: Callable[[], bool]) -> None: ...


@cache
def _routes() -> FastAPI:
    """Return the application of all clusters of this process: making it takes longer than most tests."""
    return create_routes()


class PassingTime:
    """Time at the pace of the loops while anything happens, in leaps while nothing does.

    A replica and a processor poll several times a second. Running all of that for a week would take minutes. So if
    nothing runs and nothing has happened for a moment, time leaps to the next thing that is due. The loops then find
    themselves late, as after a pause of the whole process, which they are built to survive.
    """

    def __init__(self, loop: VirtualLoop, clock: VirtualClock, cluster: VirtualCluster) -> None:
        self._loop = loop
        self._clock = clock
        self._cluster = cluster
        self._reached_ms = clock.wall_ms()

    def reached(self) -> datetime:
        """Return where an advance goes on from: the end of the last one, not the moment after in which it settled."""
        now_ms = self._clock.wall_ms()
        if now_ms - self._reached_ms > _SETTLE_MAX_S * 1_000 + 1_000:
            self._reached_ms = now_ms
        return datetime.fromtimestamp(self._reached_ms / 1_000, UTC)

    async def advance_to(self, instant: datetime) -> None:
        """Pass time until ``instant``, with what is due then; handlers that still sleep then go on sleeping."""
        until_s = self._loop.time() + (instant.timestamp() * 1_000 - self._clock.wall_ms()) / 1_000
        while (left_s := until_s - self._loop.time()) > _INSTANT_S:
            await self._pass(left_s)
        for _ in range(round(_SETTLE_MAX_S / _QUIET_S)):
            if await self._nothing_happens(_QUIET_S):
                break
        self._reached_ms = max(self._reached_ms, WallMs(round(instant.timestamp() * 1_000)))

    async def drain(self, within: timedelta, job_id: str | None = None) -> list[str]:
        """Pass time until all jobs, or that one, have ended; return the ids of those still live after ``within``."""
        until_s = self._loop.time() + within.total_seconds()
        while live := self._live(job_id):
            left_s = until_s - self._loop.time()
            if left_s <= _INSTANT_S:
                return live
            await self._pass(left_s)
        return []

    async def _pass(self, left_s: float) -> None:
        until_s = self._loop.time() + left_s
        if await self._nothing_happens(min(_QUIET_S, left_s)) and self._loop.may_leap:
            leap_s = min(self._until_due_s(), until_s - self._loop.time(), _LEAP_MAX_S)
            if leap_s > 0:
                self._loop.leap(leap_s)
                await asyncio.sleep(0)

    async def _nothing_happens(self, for_s: float) -> bool:
        """Pass that time, or less if something is written; return True if nothing was."""
        history = self._cluster.database.history
        seen = history.newest
        until_s = self._loop.time() + for_s
        while (left_s := until_s - self._loop.time()) > _INSTANT_S:
            await asyncio.sleep(min(_TURN_S, left_s))
            if history.newest != seen:
                return False
        return True

    def _until_due_s(self) -> float:
        handler_s = self._loop.next_handler_timer_s() - self._loop.time()
        step_ms = self._cluster.replica.stepper.next_step_at_ms
        return handler_s if step_ms is None else min(handler_s, (step_ms - self._clock.wall_ms()) / 1_000)

    def _live(self, job_id: str | None) -> list[str]:
        jobs = self._cluster.database.documents(Collection.JOBS)
        return [str(job["_id"]) for job in jobs if job["state"] not in TERMINAL and job_id in (None, job["_id"])]
