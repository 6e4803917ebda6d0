"""What a processor may read and write, and how messages about dispatched attempts reach it."""

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
    """What a handler needs, read by the same operation that started the attempt."""

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
    """Its definition, at most a moment old: timeouts and retries."""
    losses: int = 0
    """How many attempts were lost while they ran."""
    trace: TraceContext | None = None
    """The trace its attempts belong to, if its submit or fire named one."""

    @classmethod
    def of(cls, job: StoredDocument, payload: Any, rules: Definition, at_ms: WallMs) -> "StartedJob":
        """Return the stored ``job``, read before or after its start at ``at_ms``."""
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
    """Return the ``stored`` definition by that name, or the defaults if there is none that can be read."""
    with suppress(InvalidInput):
        if stored is not None:
            return read_document(Definition, name, stored)
    return Definition(name=name)


@dataclass(frozen=True, slots=True)
class AttemptOutcome:
    """How an attempt ended: succeeded (result), failed (error) or cancelled (after a request).

    A failed attempt with ``retry_at_ms`` does not end the job: it is pending again, and waits until then. If attempts
    are ``lost`` too often, the job fails. ``traceback`` is already redacted and bounded
    (`hascheduler.model.values.redaction`); the newest `TRACEBACKS_KEPT_MAX` attempts of a job keep theirs.
    """

    state: JobState
    result: Any = None
    error: str | None = None
    retry_at_ms: WallMs | None = None
    lost: bool = False
    traceback: str | None = field(default=None, compare=False)

    @property
    def attempt_end(self) -> str:
        """Return how the attempt ended, which is not always how its job did."""
        return AttemptEnd.LOST.value if self.lost else self.state.value


@dataclass(frozen=True, slots=True)
class HandlerProgress:
    """How far an attempt has come, as its handler reports; stored with these fields."""

    percent: float | None
    """0 to 100."""
    text: str
    at_ms: WallMs


class FinishAnswer(StrEnum):
    DONE = "done"
    """The end of the attempt was stored."""
    LATE = "late"
    """This processor no longer holds the attempt; the result is kept beside the job and changes nothing."""


@dataclass(frozen=True, slots=True)
class StopRequests:
    """Running attempts that a processor must stop: ``cancelled`` on request, ``revoked`` because it lost them."""

    cancelled: frozenset[tuple[str, int]]
    revoked: frozenset[tuple[str, int]]

    @classmethod
    def of(
        cls, running: Sequence[tuple[str, int]], jobs: Mapping[str, StoredDocument], processor_id: str
    ) -> "StopRequests":
        """Return which of the ``running`` attempts must stop; ``jobs`` are their stored jobs, by id."""
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
        """Write one heartbeat for all its jobs; False if the registration is gone (register again)."""

    async def touch(self, processor_id: str, *, draining: bool | None = None) -> bool:
        """Write a heartbeat that the store numbers, for a processor whose heartbeats come in by several replicas.

        So each is later than all before it. ``draining`` None leaves it as it was. False as for `beat`.
        """

    async def deregister(self, processor_id: str) -> None: ...

    async def start(self, job_id: str, attempt: int, processor_id: str, at_ms: WallMs) -> StartedJob | None:
        """Move the job from dispatched to running; None if that processor does not hold the attempt, or a duplicate.

        A repeat after an unknown answer returns the job again: the caller makes sure that a processor starts each
        attempt only once.
        """

    async def finish(
        self, job_id: str, attempt: int, processor_id: str, outcome: AttemptOutcome, at_ms: WallMs
    ) -> FinishAnswer:
        """Move the job from running to the outcome's state, or return LATE; a repeat of a finish is DONE.

        If cancellation was requested, a failed attempt is not retried: the job is cancelled.
        """

    async def give_back(
        self, job_id: str, attempt: int, processor_id: str, reason: str, at_ms: WallMs, *, lost: bool = False
    ) -> bool:
        """Make a dispatched or running job pending again and keep the attempt's record.

        False if the processor no longer holds it. If ``lost``, an attempt that ran counts as a loss.
        """

    async def report(self, processor_id: str, reports: Mapping[tuple[str, int], HandlerProgress]) -> None:
        """Store how far attempts have come; skip those that it no longer holds. No mirror has this."""

    async def report_overdue(self, processor_id: str, since: Mapping[tuple[str, int], WallMs]) -> None:
        """Store when running attempts timed out whose threads go on: their processor ends them, not the leader.

        Attempts that it no longer holds are skipped; a repeat changes nothing.
        """

    async def stop_requests(self, processor_id: str, running: Sequence[tuple[str, int]]) -> StopRequests:
        """Return which of the attempts that it runs must stop, and why."""


class Confirm(StrEnum):
    CONFIRMED = "confirmed"
    """The broker holds the message."""
    UNKNOWN = "unknown"
    """Returned, nacked, timed out or not sent: publish it again with the same message id."""


class Transport(Protocol):
    """Carries messages to processors and survives every outage."""

    async def run(self, turned: Callable[[], None] = ...) -> None:
        """Keep it connected until cancelled, and call ``turned`` whenever `accepting` may have changed."""

    @property
    def accepting(self) -> bool:
        """Return True if messages go out now: connected, and not blocked by the broker."""

    async def publish(self, messages: Sequence[tuple[str, Message]]) -> list[Confirm]:
        """Send each message to its processor (by id), pipelined; return one outcome each, in order. Never raise."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """One message as it arrived; its receiver awaits exactly one of ``ack`` and ``park``, once."""

    body: bytes
    ack: Callable[[], Awaitable[None]]
    park: Callable[[str], Awaitable[None]]
    """Moves the message from the processor's queue to the parking queue, with the reason."""
    trace: TraceContext | None = None
    """The trace in its headers, if there is one."""


class Deliveries(Protocol):
    """The processor's own queue.

    ``run`` passes each delivery to ``sink`` until cancelled, survives every outage, and calls ``turned`` each time that
    `consuming` changes.
    """

    async def run(
        self, sink: Callable[[Delivery], Awaitable[None]], turned: Callable[[], None] = lambda: None
    ) -> None: ...

    @property
    def consuming(self) -> bool:
        """Return True if messages arrive now."""

    async def delete(self) -> None:
        """Remove the queue: this processor will not come back."""


@dataclass(frozen=True, slots=True)
class TracedJob:
    """What the span of a job's message says about the job, and the trace it belongs to."""

    definition: str
    schedule: str | None
    trace: TraceContext | None


class JobTraces(Protocol):
    """The traces of jobs, read only by a leader that traces, when it publishes a batch.

    A mirror does not hold them: it would carry a million for the few jobs that go out now, and the job of a fire goes
    out before the stream brings it.
    """

    async def of(self, job_ids: Sequence[str]) -> Mapping[str, TracedJob]:
        """Return the jobs of ``job_ids`` that this process can read; answer soon or not at all."""
