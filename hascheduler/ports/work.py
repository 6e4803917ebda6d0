"""What a processor may ask and write, and how messages about dispatched attempts reach it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from hascheduler.errors import InvalidInput
from hascheduler.model.job import OCCUPYING, AttemptEnd, JobState
from hascheduler.model.message import Message
from hascheduler.model.processor import ProcessorRef
from hascheduler.model.trace import TraceContext, trace_context
from hascheduler.model.values.instants import WallMs
from hascheduler.ports.resources import StoredDocument
from hascheduler.schema.definition import Definition
from hascheduler.schema.noun import read_document


@dataclass(frozen=True, slots=True)
class StartedJob:
    """What a handler needs, read in the same operation that started the attempt."""

    id: str
    attempt: int
    definition: str
    target: str
    payload: Any
    tenant: str
    labels: Mapping[str, str]
    schedule: str | None
    nominal_ms: WallMs | None
    submitted_at_ms: WallMs
    started_at_ms: WallMs
    first_started_at_ms: WallMs
    failures: int
    """How many attempts failed before this one."""
    rules: Definition
    """As its definition was a moment ago, at most: its timeouts and retries."""
    losses: int = 0
    """How many attempts were lost while they ran."""
    trace: TraceContext | None = None
    """The trace its attempts belong to, if its submit or its fire named one."""

    @classmethod
    def of(cls, job: StoredDocument, payload: Any, rules: Definition, at_ms: WallMs) -> "StartedJob":
        """Return the stored ``job``, as it was read before or after its start at ``at_ms``."""
        nominal_ms = job.get("nominal_ms")
        first_started_at_ms, started_at_ms = job.get("first_started_at_ms"), job.get("started_at_ms")
        return cls(
            id=job["_id"],
            attempt=job["attempt"],
            definition=job["definition"],
            target=job["target"],
            payload=payload,
            tenant=job["tenant"],
            labels=dict(job.get("labels") or {}),
            schedule=job.get("schedule"),
            nominal_ms=None if nominal_ms is None else WallMs(int(nominal_ms)),
            submitted_at_ms=WallMs(int(job["submitted_at_ms"])),
            started_at_ms=at_ms if started_at_ms is None else WallMs(int(started_at_ms)),
            first_started_at_ms=at_ms if first_started_at_ms is None else WallMs(int(first_started_at_ms)),
            failures=job.get("failures") or 0,
            losses=job.get("losses") or 0,
            rules=rules,
            trace=trace_context(job.get("trace")),
        )


def rules_of(name: str, stored: StoredDocument | None) -> Definition:
    """Return the ``stored`` definition by that name; the defaults if there is none, or it can't be read."""
    with suppress(InvalidInput):
        if stored is not None:
            return read_document(Definition, name, stored)
    return Definition(name=name)


@dataclass(frozen=True, slots=True)
class AttemptOutcome:
    """How an attempt ended: succeeded (result), failed (error) or cancelled (after a request).

    A failed one with ``retry_at_ms`` is not the end of the job: it is pending again, and waits until then. The job
    fails although its attempt was only ``lost`` where it was lost too often. ``traceback`` is redacted and bounded by
    then (`hascheduler.model.values.redaction`); the newest `TRACEBACKS_KEPT_MAX` attempts of a job keep theirs.
    """

    state: JobState
    result: Any = None
    error: str | None = None
    retry_at_ms: WallMs | None = None
    lost: bool = False
    traceback: str | None = field(default=None, compare=False)

    @property
    def attempt_end(self) -> str:
        """How the attempt ended, which is not always how its job did."""
        return AttemptEnd.LOST.value if self.lost else self.state.value


@dataclass(frozen=True, slots=True)
class HandlerProgress:
    """How far an attempt has come, as its handler says."""

    percent: float | None
    """0 to 100."""
    text: str
    at_ms: WallMs


def encode_progress(progress: HandlerProgress) -> dict[str, Any]:
    """Its stored form."""
    return {"percent": progress.percent, "text": progress.text, "at_ms": progress.at_ms}


class FinishAnswer(StrEnum):
    DONE = "done"
    LATE = "late"
    """The attempt is no longer this one's to finish; the result is kept beside the job and changes nothing."""


@dataclass(frozen=True, slots=True)
class StopRequests:
    """Attempts that a processor runs and must stop: ``cancelled`` on request, ``revoked`` as no longer its own."""

    cancelled: frozenset[tuple[str, int]]
    revoked: frozenset[tuple[str, int]]

    @classmethod
    def of(
        cls, running: Sequence[tuple[str, int]], jobs: Mapping[str, StoredDocument], processor_id: str
    ) -> "StopRequests":
        """Return which of the ``running`` attempts must stop; ``jobs`` are those of them that are stored, by id."""
        cancelled, revoked = set(), set()
        for job_id, attempt in running:
            job = jobs.get(job_id, {})
            held = (job.get("attempt"), job.get("processor")) == (attempt, processor_id)
            if not held or str(job.get("state")) not in OCCUPYING:
                revoked.add((job_id, attempt))
            elif job.get("cancel_requested_at_ms") is not None:
                cancelled.add((job_id, attempt))
        return cls(frozenset(cancelled), frozenset(revoked))


class WorkStore(Protocol):
    """What a processor may write. Every write names the attempt, and is acknowledged by a majority."""

    async def register(self, processor: ProcessorRef) -> None:
        """Insert or replace the registration."""

    async def beat(self, processor_id: str, beat: int, *, draining: bool, consuming: bool = True, parked: int) -> bool:
        """Write one heartbeat for all its jobs; False when the registration is gone (register again)."""

    async def touch(self, processor_id: str, *, draining: bool | None = None) -> bool:
        """One heartbeat more than there were, for a processor whose beats come in by several replicas: the store counts
        them, so that each is later than all before it. ``draining`` None: as it was. False as for
        `beat`."""

    async def deregister(self, processor_id: str) -> None: ...

    async def start(self, job_id: str, attempt: int, processor_id: str, at_ms: WallMs) -> StartedJob | None:
        """Dispatched → running for that attempt and processor, or None: a duplicate, or not its own any more.

        A repeat after an unknown answer returns the job again: only one start per attempt may come from a processor,
        and the caller sees to that.
        """

    async def finish(
        self, job_id: str, attempt: int, processor_id: str, outcome: AttemptOutcome, at_ms: WallMs
    ) -> FinishAnswer:
        """Running → the outcome's state for that attempt, or LATE. A repeat of a finish that happened is DONE.

        A failed attempt that is to be tried again is cancelled instead where its cancellation was requested.
        """

    async def give_back(
        self, job_id: str, attempt: int, processor_id: str, reason: str, at_ms: WallMs, *, lost: bool = False
    ) -> bool:
        """Dispatched or running → pending, keeping the attempt's record; False when it is not its own any more.

        ``lost``: it counts as a loss if it ran.
        """

    async def report(self, processor_id: str, reports: Mapping[tuple[str, int], HandlerProgress]) -> None:
        """Show how far attempts have come; attempts that it does not hold any more are passed over. No mirror
        has it."""

    async def report_overdue(self, processor_id: str, since: Mapping[tuple[str, int], WallMs]) -> None:
        """Show that running attempts timed out at those instants and that their threads go on: their processor ends
        them, the leader does not. Attempts that it does not hold any more are passed over; a repeat changes nothing."""

    async def stop_requests(self, processor_id: str, running: Sequence[tuple[str, int]]) -> StopRequests:
        """Which of the attempts that it runs must stop, and why."""


class Confirm(StrEnum):
    CONFIRMED = "confirmed"
    UNKNOWN = "unknown"
    """Returned, nacked, timed out or not sent: try again with the same message id."""


class Transport(Protocol):
    """Carries messages to processors; it outlives every outage."""

    async def run(self, turned: Callable[[], None] = ...) -> None:
        """Keep it connected until cancelled. ``turned`` is called whenever `accepting` may have become otherwise."""

    @property
    def accepting(self) -> bool:
        """Whether messages go out now: connected, and the broker does not block us."""

    async def publish(self, messages: Sequence[tuple[str, Message]]) -> list[Confirm]:
        """Send each message to its processor (by id), pipelined; one outcome each, in order. Never raises."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """One message as it arrived. Exactly one of ``ack`` and ``park`` is awaited, once."""

    body: bytes
    ack: Callable[[], Awaitable[None]]
    park: Callable[[str], Awaitable[None]]
    """Moves the message to the parking queue with the reason, and takes it from the processor's queue."""
    trace: TraceContext | None = None
    """What its headers tell, where they tell something."""


class Deliveries(Protocol):
    """The processor's own queue. ``run`` hands each delivery to ``sink`` until cancelled; it outlives every outage, and
    calls ``turned`` each time that `consuming` has become otherwise."""

    async def run(
        self, sink: Callable[[Delivery], Awaitable[None]], turned: Callable[[], None] = lambda: None
    ) -> None: ...

    @property
    def consuming(self) -> bool:
        """Whether what is sent arrives now."""

    async def delete(self) -> None:
        """Remove the queue: this processor will not come back."""


@dataclass(frozen=True, slots=True)
class TracedJob:
    """What the span of a job's message says of the job, and where it belongs."""

    definition: str
    schedule: str | None
    trace: TraceContext | None


class JobTraces(Protocol):
    """Read when a batch is published, by a leader that traces; never otherwise.

    A mirror does not have them: of a million jobs that wait it would carry a million, for the few that go out now, and
    the job of a fire goes out before its echo comes in.
    """

    async def of(self, job_ids: Sequence[str]) -> Mapping[str, TracedJob]:
        """The jobs of ``job_ids`` that are there, as this process wrote them; answers soon or not at all."""
