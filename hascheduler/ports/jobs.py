"""Jobs as the API writes and reads them, and the token buckets that it takes from right before the write.

What concerns many jobs at once goes in slices: each call does a bounded part of the work, and the caller goes on until
there is nothing left. A slice never meets the same job twice, as what it changes no longer matches.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, Protocol

from pydantic import GetPydanticSchema
from pydantic_core import core_schema

from hascheduler.model.documents.job import IDEMPOTENCY_MS, decode_job_state
from hascheduler.model.job import TERMINAL, TRANSITIONS, JobState, Move, NewJob, ScheduleId, is_dependency_error
from hascheduler.model.values.fields import integer
from hascheduler.model.values.instants import LATEST_MS, WallMs
from hascheduler.ports.resources import ListPosition, StoredDocument
from hascheduler.schema.definition import RateLimit
from hascheduler.schema.filters import JobFilter


class SubmitAnswer(StrEnum):
    NEW = "new"
    KNOWN = "known"
    """It is there already, by its id or by its idempotency key: nothing was written."""
    OTHER = "other"
    """Something else was submitted under that idempotency key: nothing was written."""
    DUPLICATE = "duplicate"
    """Another job holds its unique key and keeps it: nothing was written."""


@dataclass(frozen=True, slots=True)
class Submission:
    """``document`` is the stored job: the new one, or the one that was met."""

    answer: SubmitAnswer
    document: StoredDocument


class CancelAnswer(StrEnum):
    CANCELLED = "cancelled"
    ALREADY_RUNNING = "already_running"
    """The running attempt was asked to stop; a result that arrives first wins."""
    ALREADY_DONE = "already_done"


class ReprioritizeAnswer(StrEnum):
    OK = "ok"
    ALREADY_RUNNING = "already_running"
    """It is with a processor: its priority is of no more consequence."""
    ALREADY_DONE = "already_done"


class RetryAnswer(StrEnum):
    OK = "ok"
    NOT_ENDED = "not_ended"
    NOT_FAILED = "not_failed"
    """It succeeded."""


@dataclass(frozen=True, slots=True)
class RetryKey:
    """The idempotency key of a retry: ``digest`` is that of the key, ``request_hash`` that of what was asked for. It
    holds for `IDEMPOTENCY_MS` (of `model.documents.job`), for the job that was revived under it."""

    digest: str
    request_hash: str


@dataclass(frozen=True, slots=True)
class KeyedRetry:
    """``met``: whether the job was revived under that key before (KNOWN, or OTHER for another request)."""

    answer: RetryAnswer
    met: SubmitAnswer = SubmitAnswer.NEW


def stored_retry_key(key: RetryKey | None, at_ms: WallMs) -> dict[str, Any] | None:
    """How a job remembers, in its ``retry_keys``, that it was revived under ``key``."""
    return None if key is None else {"key": key.digest, "request": key.request_hash, "at_ms": at_ms}


def keyed_retry(before: StoredDocument, key: RetryKey | None, at_ms: WallMs) -> KeyedRetry:
    """The answer to a retry that met the job as it was ``before``."""
    for held in before.get("retry_keys") or ():
        if key is not None and held["key"] == key.digest and held["at_ms"] > at_ms - IDEMPOTENCY_MS:
            is_same = held["request"] == key.request_hash
            return KeyedRetry(RetryAnswer.OK, SubmitAnswer.KNOWN if is_same else SubmitAnswer.OTHER)
    state = decode_job_state(before)
    if state in TRANSITIONS[Move.REVIVE].sources:
        return KeyedRetry(RetryAnswer.OK)
    return KeyedRetry(RetryAnswer.NOT_FAILED if state in TERMINAL else RetryAnswer.NOT_ENDED)


_AsItIs = GetPydanticSchema(lambda *_: core_schema.any_schema())


class JobSelection(JobFilter):
    """The jobs that a filter means, with what the API and the core add; ``unschedulable`` means nothing in it."""

    made_by: Annotated[ScheduleId | None, _AsItIs] = None
    """Tells schedules of one name apart"""
    ids: Annotated[Collection[str] | None, _AsItIs] = None
    """Which are meant at all"""
    not_of: Annotated[Collection[str], _AsItIs] = ()
    """Tenants whose jobs are left out, if no ``tenant`` is given"""


def revived_states(which: JobSelection) -> tuple[JobState, ...]:
    """Return the states of which `JobStore.retry_some` revives jobs: failed, and cancelled if that is asked for."""
    return (JobState.CANCELLED,) if which.states == (JobState.CANCELLED,) else (JobState.FAILED,)


@dataclass(frozen=True, slots=True)
class JobPage:
    """``next`` is where to go on; None: this was all. A page may hold few jobs, or none, and have a next one."""

    documents: Sequence[StoredDocument]
    next: ListPosition | None


@dataclass(frozen=True, slots=True)
class JobCounts:
    """How many match, by each state that was asked for; of those in ``at_least`` there may be more."""

    by_state: Mapping[JobState, int]
    at_least: frozenset[JobState] = frozenset()


ERROR_BEGINNING_MAX = 512
"""The beginning of an error, which is enough to recognise the fault."""


@dataclass(frozen=True, slots=True)
class FailedJob:
    """``error`` is the beginning of its error, at most `ERROR_BEGINNING_MAX` characters; ``at_ms`` is when it failed,
    or was submitted where that is not known."""

    id: str
    definition: str
    tenant: str
    target: str
    schedule: str | None
    batch: str | None
    error: str
    at_ms: int
    submitted_at_ms: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class FailedJobs:
    """``complete``: there are no others."""

    jobs: Sequence[FailedJob]
    complete: bool


FAILED_FIELDS = ("definition", "tenant", "target", "schedule", "batch", "finished_at_ms", "submitted_at_ms")
"""The fields that `failed_job_of` reads beside the id and the beginning of the error."""
_ATTRIBUTE_LENGTH_MAX = 256


def failed_job_of(job: StoredDocument, error: str) -> FailedJob:
    """The failed job, whatever is stored: a field that was broken by hand is shown as a text, and its time is 0."""
    definition, tenant, target, schedule, batch = (
        None if job.get(name) is None else str(job[name])[:_ATTRIBUTE_LENGTH_MAX] for name in FAILED_FIELDS[:5]
    )
    finished_at_ms, submitted_at_ms = (
        at_ms if isinstance(at_ms, int) and 0 <= at_ms < LATEST_MS else None
        for at_ms in (job.get("finished_at_ms"), job.get("submitted_at_ms"))
    )
    return FailedJob(
        str(job["_id"]),
        definition or "",
        tenant or "",
        target or "",
        schedule,
        batch,
        error,
        (submitted_at_ms or 0) if finished_at_ms is None else finished_at_ms,
        submitted_at_ms or 0,
    )


@dataclass(frozen=True, slots=True)
class CancelledSome:
    """``asked`` were running and are asked to stop; nothing is left when both are 0."""

    cancelled: int
    asked: int


@dataclass(frozen=True, slots=True)
class KnownJob:
    id: str
    tenant: str
    state: JobState
    made_by: ScheduleId | None = None


@dataclass(frozen=True, slots=True)
class Dependent:
    """A job that depends on others, as it was at ``rev``. ``failed_of_dependency``: it never ran, as one of them failed
    or was cancelled."""

    id: str
    rev: int
    state: JobState
    depends_on: tuple[str, ...]
    ignores_failures: bool
    failed_of_dependency: bool
    retried_under: frozenset[str] = frozenset()
    """The digests of the latest keys that it was revived under."""
    batch: str | None = None


DEPENDENT_FIELDS = ("rev", "state", "depends_on", "ignores_failures", "error", "retry_keys", "batch")
"""The fields that `dependent_of` reads beside the id."""


def dependent_of(job: StoredDocument) -> Dependent:
    state = decode_job_state(job)
    return Dependent(
        str(job["_id"]),
        integer(job, "rev"),
        state,
        tuple(str(id) for id in job.get("depends_on") or ()),
        bool(job.get("ignores_failures")),
        state is JobState.FAILED and is_dependency_error(job.get("error")),
        frozenset(str(each["key"]) for each in job.get("retry_keys") or ()),
        job.get("batch"),
    )


class JobStore(Protocol):
    async def submit(self, job: NewJob) -> Submission:
        """Insert, acknowledged by a majority, unless it is there: of equal submits at once, one inserts.

        A job with an idempotency key is kept for `IDEMPOTENCY_MS` (of `model.documents.job`) at least; then the key is
        free again. Where it has a ``unique`` key too, that one comes second. What becomes of the job that holds its
        unique key, `model.documents.unique_job.fate_of` says. One that it replaces gives its key away before it is
        inserted, and is cancelled after that: what breaks off in between leaves both to run, never neither.
        """

    async def submit_many(self, jobs: Sequence[NewJob]) -> Sequence[Submission]:
        """As `submit`, one answer each; they appear in the stream in this order, but those that may replace others, in
        their order, at any place."""

    async def submit_all(self, jobs: Sequence[NewJob]) -> Sequence[Submission] | None:
        """All of them, each NEW, or none: in one write, whatever breaks off. They appear in the stream in this order.

        Where idempotency keys are held already nothing is written: each KNOWN, if all of them are held by the same
        jobs, else None. `InvalidInput` where one of them can't be stored. None of them has a ``unique`` key.
        """

    async def get(self, job_id: str) -> StoredDocument | None: ...

    async def list(self, which: JobSelection, after: ListPosition | None, limit: int) -> JobPage:
        """At most ``limit``, the newest by submission first, then by descending id; without payload, result and
        attempts. The work for a page is bounded: where few match, it ends before it is full.

        Jobs that are submitted meanwhile shift no page: they come before the first.
        """

    async def known(self, ids: Sequence[str]) -> Sequence[KnownJob]:
        """The jobs of ``ids`` that are there, in no order. The id of a batch gives one row for each tenant and state of
        its jobs, with that id."""

    async def batch(self, batch: str, limit: int) -> Sequence[KnownJob]:
        """At most ``limit`` jobs of that batch."""

    async def count(self, which: JobSelection, states: Sequence[JobState], limit: int) -> int:
        """How many match and are in one of ``states``, but no more than ``limit``."""

    async def counts(self, which: JobSelection, limit: int) -> JobCounts:
        """How many match in each of the states that ``which`` names (all, if none), each no more than ``limit``.

        The work is bounded: where it ends before all that may match was looked at, the newest by submission are
        counted, and the states are in ``at_least``.
        """

    async def failed(self, which: JobSelection, limit: int) -> FailedJobs:
        """At most ``limit`` failed jobs that match, the newest by submission first; the states of ``which`` mean
        nothing. The work is bounded: where few match, it ends before there are so many."""

    async def cancel(self, job_id: str, at_ms: WallMs) -> CancelAnswer | None:
        """Pending or dispatched → cancelled; running → asked to stop; None when there is no such job."""

    async def reprioritize(self, job_id: str, priority: int) -> ReprioritizeAnswer | None:
        """Change the priority of a pending job; None when there is no such job."""

    async def retry(self, job_id: str, at_ms: WallMs, key: RetryKey | None = None) -> KeyedRetry | None:
        """Failed or cancelled → pending, with all its tries before it and a new attempt number; None when there is no
        such job. In the same write it remembers ``key``: under it the job is revived no second time."""

    async def of_key(self, tenant: str, key: str, at_ms: WallMs) -> StoredDocument | None:
        """The job that holds that idempotency key at that time; it will not be lost."""

    async def dependents(
        self, ids: Sequence[str], tenant: str | None, known: Sequence[str], limit: int
    ) -> Sequence[Dependent]:
        """At most ``limit`` jobs (of ``tenant``, if one is given) that were said to depend on some of ``ids``, of jobs
        or batches, but for those that are ``known``; by id."""

    async def retry_dependent(
        self, job: Dependent, waits_for: Sequence[str], at_ms: WallMs, key: RetryKey | None = None
    ) -> bool:
        """As `retry`, but it waits for these jobs. False, and nothing written: ``job`` has another ``rev`` by now."""

    async def cancel_some(self, which: JobSelection, at_ms: WallMs, limit: int) -> CancelledSome:
        """A slice of those that have not ended, and were not asked to stop."""

    async def reprioritize_some(self, which: JobSelection, priority: int, limit: int) -> int:
        """A slice of the pending ones that have another priority; how many were changed."""

    async def retry_some(self, which: JobSelection, at_ms: WallMs, limit: int) -> int:
        """A slice of the failed ones, or of the cancelled ones if ``which`` says so, that ended at ``at_ms`` or before;
        how many were changed."""


class BucketStore(Protocol):
    """Token buckets, one a tenant, for all replicas together."""

    async def take(self, tenant: str, limit: RateLimit, tokens: int) -> int:
        """0: taken. Otherwise nothing was taken, and it is how many milliseconds until the bucket holds so many.

        A bucket begins full, and full again when its limit changes. ``tokens`` are at most ``limit.count``. After an
        unknown answer they may be gone.
        """
