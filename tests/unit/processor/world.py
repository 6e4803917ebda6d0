"""A small world for one processor: a database of jobs, a queue and a clock, all in the hands of the test."""

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from hascheduler.errors import StoreUnavailable
from hascheduler.model.job import JobState
from hascheduler.model.message import Message, MessageKind, encode_message
from hascheduler.model.processor import ProcessorRef
from hascheduler.model.values.instants import MonoMs, WallMs
from hascheduler.ports import AttemptOutcome, Delivery, FinishAnswer, HandlerProgress, StartedJob, StopRequests
from hascheduler.processor import Handlers, JobContext, Processor, ProcessorConfig
from hascheduler.processor.handler_loop import HandlerLoop
from hascheduler.schema.definition import Definition
from hascheduler.telemetry.tracing import NO_TRACING, Tracer

LIMIT_S = 20
ME = "p.1"


class HandClock:
    def __init__(self) -> None:
        self.now_ms = 1_000_000

    def wall_ms(self) -> WallMs:
        return WallMs(self.now_ms)

    def mono_ms(self) -> MonoMs:
        return MonoMs(self.now_ms)


@dataclass
class Job:
    definition: str
    payload: Any = None
    state: JobState = JobState.DISPATCHED
    attempt: int = 1
    processor: str | None = ME
    cancel_requested: bool = False
    outcome: AttemptOutcome | None = None
    rules: Definition = field(default_factory=lambda: Definition(name="any"))
    failures: int = 0
    losses: int = 0
    first_started_at_ms: WallMs | None = None
    progress: list[HandlerProgress] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    overdue_since_ms: WallMs | None = None

    async def ended(self) -> AttemptOutcome:
        await until(lambda: self.outcome is not None)
        assert self.outcome is not None
        return self.outcome


class World:
    """`WorkStore` and `Deliveries` at once. ``down`` refuses, ``vague`` carries out and does not say so."""

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}
        self.registered: ProcessorRef | None = None
        self.beats = 0
        self.draining = False
        self.able: bool | None = None
        self.turned: Callable[[], None] | None = None
        self.consuming = True
        self.down = False
        self.vague: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self.acknowledged: list[bytes] = []
        self.parked: list[tuple[bytes, str]] = []
        self.queue: asyncio.Queue[bytes] = asyncio.Queue()
        self.queue_deleted = False

    # What the leader and the API do

    def dispatch(self, job_id: str, definition: str, payload: Any = None, **more: Any) -> Job:
        job = self.jobs[job_id] = Job(definition, payload, **more)
        self.tell(MessageKind.RUN, job_id)
        return job

    def tell(self, kind: MessageKind, job_id: str, attempt: int = 1) -> None:
        self.queue.put_nowait(encode_message(Message(kind, job_id, attempt)))

    # WorkStore

    async def register(self, processor: ProcessorRef) -> None:
        async with self._exchange("register"):
            self.registered = processor
            self.draining, self.able = processor.draining, processor.consuming

    async def beat(self, processor_id: str, beat: int, *, draining: bool, consuming: bool = True, parked: int) -> bool:
        async with self._exchange("beat"):
            if self.registered is None:
                return False
            self.beats += 1
            self.draining = draining
            self.able = consuming
            return True

    async def touch(self, processor_id: str, *, draining: bool | None = None) -> bool:
        raise NotImplementedError("for processors that speak HTTP")

    async def deregister(self, processor_id: str) -> None:
        async with self._exchange("deregister"):
            self.registered = None

    async def start(self, job_id: str, attempt: int, processor_id: str, at_ms: WallMs) -> StartedJob | None:
        async with self._exchange("start"):
            job = self._held(job_id, attempt, processor_id)
            if job is None:
                return None
            job.state = JobState.RUNNING
            return StartedJob(
                id=job_id,
                attempt=attempt,
                definition=job.definition,
                target="t",
                payload=job.payload,
                tenant="default",
                labels={},
                schedule=None,
                nominal_ms=None,
                submitted_at_ms=WallMs(0),
                started_at_ms=at_ms,
                first_started_at_ms=job.first_started_at_ms or at_ms,
                failures=job.failures,
                losses=job.losses,
                rules=job.rules,
            )

    async def finish(
        self, job_id: str, attempt: int, processor_id: str, outcome: AttemptOutcome, at_ms: WallMs
    ) -> FinishAnswer:
        async with self._exchange("finish"):
            job = self.jobs[job_id]
            if job.outcome == outcome:
                return FinishAnswer.DONE
            if self._held(job_id, attempt, processor_id) is None:
                return FinishAnswer.LATE
            job.state, job.outcome = outcome.state, outcome
            return FinishAnswer.DONE

    async def give_back(
        self, job_id: str, attempt: int, processor_id: str, reason: str, at_ms: WallMs, *, lost: bool = False
    ) -> bool:
        async with self._exchange("give_back"):
            job = self._held(job_id, attempt, processor_id)
            if job is None:
                return False
            job.state, job.processor = JobState.PENDING, None
            job.reasons.append(reason)
            job.losses += lost
            return True

    async def report(self, processor_id: str, reports: Mapping[tuple[str, int], HandlerProgress]) -> None:
        async with self._exchange("report"):
            for (job_id, _), progress in reports.items():
                self.jobs[job_id].progress.append(progress)

    async def report_overdue(self, processor_id: str, since: Mapping[tuple[str, int], WallMs]) -> None:
        async with self._exchange("report_overdue"):
            for (job_id, attempt), at_ms in since.items():
                if self._held(job_id, attempt, processor_id) is not None:
                    self.jobs[job_id].overdue_since_ms = at_ms

    async def stop_requests(self, processor_id: str, running: Sequence[tuple[str, int]]) -> StopRequests:
        async with self._exchange("stop_requests"):
            ours = {key: self._held(*key, processor_id) for key in running}
            return StopRequests(
                cancelled=frozenset(key for key, job in ours.items() if job and job.cancel_requested),
                revoked=frozenset(key for key, job in ours.items() if job is None),
            )

    # Deliveries

    async def run(self, sink: Callable[[Delivery], Awaitable[None]], turned: Callable[[], None] = lambda: None) -> None:
        self.turned = turned
        while True:
            await sink(self._delivery(await self.queue.get()))

    def turn(self, *, consuming: bool) -> None:
        self.consuming = consuming
        assert self.turned is not None
        self.turned()

    async def delete(self) -> None:
        self.queue_deleted = True

    def _delivery(self, body: bytes) -> Delivery:
        async def ack() -> None:
            self.acknowledged.append(body)

        async def park(reason: str) -> None:
            self.parked.append((body, reason))

        return Delivery(body, ack, park)

    @asynccontextmanager
    async def _exchange(self, name: str) -> AsyncIterator[None]:
        self.calls[name] += 1
        await asyncio.sleep(0)
        if self.down:
            raise StoreUnavailable(f"{name}: down")
        yield
        if self.vague[name]:
            self.vague[name] -= 1
            raise StoreUnavailable(f"{name}: unknown")

    def _held(self, job_id: str, attempt: int, processor_id: str) -> Job | None:
        job = self.jobs.get(job_id)
        if job is None or (job.attempt, job.processor) != (attempt, processor_id):
            return None
        return job if job.state in (JobState.DISPATCHED, JobState.RUNNING) else None


@dataclass(frozen=True)
class Stage:
    world: World
    clock: HandClock
    processor: Processor
    task: asyncio.Task[None]

    async def drained(self) -> None:
        self.processor.drain()
        async with asyncio.timeout(LIMIT_S):
            await self.task


@asynccontextmanager
async def staged(
    handlers: Handlers,
    *,
    slots: int = 4,
    drain_grace_ms: int = 5_000,
    interval_ms: int = 20,
    deadline_ms: int = 400,
    handler_loop: HandlerLoop | None = None,
    consuming: bool = True,
    waits: bool = True,
    world: World | None = None,
    tracer: Tracer = NO_TRACING,
) -> AsyncIterator[Stage]:
    world, clock = world or World(), HandClock()
    world.consuming = consuming
    config = ProcessorConfig(
        id=ME,
        name="p",
        scheduler="default",
        slots=slots,
        heartbeat_interval_ms=interval_ms,
        heartbeat_deadline_ms=deadline_ms,
        drain_grace_ms=drain_grace_ms,
    )
    processor = Processor(handlers, world, world, clock, config, handler_loop=handler_loop, tracer=tracer)
    task = asyncio.create_task(processor.run())
    stage = Stage(world, clock, processor, task)
    try:
        if waits:
            await until(lambda: world.registered is not None)
        yield stage
    finally:
        task.cancel()
        await asyncio.wait({task})


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what will come about by itself; the limit is far beyond any delay that is to be expected."""
    async with asyncio.timeout(LIMIT_S):
        while not condition():  # noqa: ASYNC110  # what changes knows nothing of those who wait
            await asyncio.sleep(0.002)


def handling(**functions: Callable[[JobContext], Any]) -> Handlers:
    handlers = Handlers()
    for definition, function in functions.items():
        handlers.handler(definition)(function)
    return handlers


class Work:
    """Handlers that the test controls: ``hold`` waits, ``echo`` returns, ``fail`` raises, ``stubborn`` goes on."""

    def __init__(self) -> None:
        self.handlers = handling(
            hold=self.hold, echo=self.echo, fail=self.fail, stubborn=self.stubborn, thread=self.thread, deaf=self.deaf
        )
        self.began: list[tuple[str, int]] = []
        self.stopped: list[str] = []
        self.contexts: dict[str, JobContext] = {}
        self.release = asyncio.Event()
        self.thread_release = threading.Event()

    async def hold(self, job: JobContext) -> Any:
        self.began.append((job.id, job.attempt))
        self.contexts[job.id] = job
        try:
            await self.release.wait()
        except asyncio.CancelledError:
            self.stopped.append(job.id)
            raise
        return "held"

    async def echo(self, job: JobContext) -> Any:
        self.began.append((job.id, job.attempt))
        return job.payload

    async def fail(self, job: JobContext) -> Any:
        raise ValueError("no good")

    async def stubborn(self, job: JobContext) -> Any:
        self.began.append((job.id, job.attempt))
        try:
            await self.release.wait()
        except asyncio.CancelledError:
            self.stopped.append(job.id)
        return "done all the same"

    def thread(self, job: JobContext) -> Any:
        self.began.append((job.id, job.attempt))
        self.contexts[job.id] = job
        while not self.thread_release.wait(0.002):
            if job.stop_requested:
                raise RuntimeError("stopped")
        return "threaded"

    def deaf(self, job: JobContext) -> str:
        self.began.append((job.id, job.attempt))
        self.thread_release.wait(LIMIT_S)
        return "late"


@asynccontextmanager
async def at_work(**options: Any) -> AsyncIterator[tuple[Work, Stage]]:
    work = Work()
    async with staged(work.handlers, **options) as stage:
        try:
            yield work, stage
        finally:
            work.thread_release.set()


@asynccontextmanager
async def running(definition: str = "hold", **options: Any) -> AsyncIterator[tuple[Work, Stage, Job]]:
    """A processor with one job at work: ``a`` of that definition."""
    async with at_work(**options) as (work, stage):
        job = stage.world.dispatch("a", definition)
        await until(lambda: work.began == [("a", 1)])
        yield work, stage, job
