"""How the API writes and reads jobs, and the token buckets that it takes from before a write.

Changes of many jobs go in slices: each call does a bounded part of the work, and the caller repeats it until nothing is
left. No job is in two slices, as a changed job no longer matches.
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
    """The job was inserted."""
    KNOWN = "known"
    """The job exists, by its id or its idempotency key: nothing was written."""
    OTHER = "other"
    """Something else was submitted under that idempotency key: nothing was written."""
    DUPLICATE = "duplicate"
    """Another job holds its unique key and keeps it: nothing was written."""


@dataclass(frozen=True, slots=True)
class Submission:
    """``document`` is the stored job: the new one, or the one found."""

    answer: SubmitAnswer
    document: StoredDocument


class CancelAnswer(StrEnum):
    CANCELLED = "cancelled"
    """The job was cancelled before it ran."""
    ALREADY_RUNNING = "already_running"
    """The running attempt was asked to stop; if it finishes first, its result counts."""
    ALREADY_DONE = "already_done"
    """The job has ended."""


class ReprioritizeAnswer(StrEnum):
    OK = "ok"
    """The priority was changed."""
    ALREADY_RUNNING = "already_running"
    """A processor has it: its priority no longer matters."""
    ALREADY_DONE = "already_done"
    """The job has ended."""


class RetryAnswer(StrEnum):
    OK = "ok"
    """The job waits again."""
    NOT_ENDED = "not_ended"
    """The job still waits or runs."""
    NOT_FAILED = "not_failed"
    """It succeeded."""


@dataclass(frozen=True, slots=True)
class RetryKey:
    """The idempotency key of a retry: ``digest`` is the key's digest, ``request_hash`` that of the request.

    It is valid for `IDEMPOTENCY_MS` (of `model.documents.job`), for the job that was revived under it.
    """

    digest: str
    request_hash: str


@dataclass(frozen=True, slots=True)
class KeyedRetry:
    """``met`` is KNOWN if the job was revived under that key before, OTHER if that was another request."""

    answer: RetryAnswer
    met: SubmitAnswer = SubmitAnswer.NEW


def stored_retry_key(key: RetryKey | None, at_ms: WallMs) -> dict[str, Any] | None:
    """Return the entry for ``key`` in the ``retry_keys`` of a revived job."""
    return None if key is None else {"key": key.digest, "request": key.request_hash, "at_ms": at_ms}


def keyed_retry(before: StoredDocument, key: RetryKey | None, at_ms: WallMs) -> KeyedRetry:
    """Return the answer to a retry that found the job as ``before``."""
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
    """The jobs that a filter selects, with what the API and the core add; ``unschedulable`` is ignored."""

    made_by: Annotated[ScheduleId | None, _AsItIs] = None
    """Tells schedules of one name apart"""
    ids: Annotated[Collection[str] | None, _AsItIs] = None
    """Only jobs with these ids"""
    not_of: Annotated[Collection[str], _AsItIs] = ()
    """Tenants whose jobs are left out, if no ``tenant`` is given"""
    not_made_by: Annotated[Collection[str], _AsItIs] = ()
    """Schedules whose jobs are left out"""
    kept_after_ms: WallMs | None = None
    """Only jobs that are not deleted by this instant"""

    def to_delete(self, at_ms: WallMs) -> "JobSelection":
        """Return those of the jobs that `JobStore.delete_some` would delete at that time."""
        return self.model_copy(update={"kept_after_ms": WallMs(at_ms + DELETED_IN_MS)})


DELETED_IN_MS = 600_000
"""How long a deleted job is still kept, as each ended job is at least.

A new leader may again apply the decision that inserted it, and the jobs that wait for it have to learn how it ended.
"""


def revived_states(which: JobSelection) -> tuple[JobState, ...]:
    """Return the states from which `JobStore.retry_some` revives jobs: failed, or cancelled if ``which`` says so."""
    return (JobState.CANCELLED,) if which.states == (JobState.CANCELLED,) else (JobState.FAILED,)


@dataclass(frozen=True, slots=True)
class JobPage:
    """A page and where the next one begins, None after the last. A page may be empty and have a next one."""

    documents: Sequence[StoredDocument]
    next: ListPosition | None


@dataclass(frozen=True, slots=True)
class JobCounts:
    """How many jobs match, by each requested state; in the states of ``at_least`` there may be more."""

    by_state: Mapping[JobState, int]
    at_least: frozenset[JobState] = frozenset()


@dataclass(frozen=True, slots=True)
class FailedJob:
    """A failed job with the first `ERROR_BEGINNING_MAX` characters of its ``error`` (`model.values.error_patterns`).

    ``at_ms`` is when it failed, or was submitted if that is not known.
    """

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
    """Some failed jobs; all of them if ``complete``."""

    jobs: Sequence[FailedJob]
    complete: bool


FAILED_FIELDS = ("definition", "tenant", "target", "schedule", "batch", "finished_at_ms", "submitted_at_ms")
"""The fields that `failed_job_of` reads besides the id and the beginning of the error."""
_ATTRIBUTE_LENGTH_MAX = 256


def failed_job_of(job: StoredDocument, error: str) -> FailedJob:
    """Return the failed job, whatever is stored: a field broken by hand is shown as text, a broken time as 0."""
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
    """How many were cancelled, and how many running ones were ``asked`` to stop; if both are 0, none are left."""

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
    """A job that depends on others, as it was at ``rev``.

    ``failed_of_dependency``: it never ran, because one of them failed or was cancelled.
    """

    id: str
    rev: int
    state: JobState
    depends_on: tuple[str, ...]
    ignores_failures: bool
    failed_of_dependency: bool
    retried_under: frozenset[str] = frozenset()
    """The digests of the latest keys under which it was revived."""
    batch: str | None = None


DEPENDENT_FIELDS = ("rev", "state", "depends_on", "ignores_failures", "error", "retry_keys", "batch")
"""The fields that `dependent_of` reads besides the id."""


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
        """Insert the job, acknowledged by a majority, unless it exists: of equal submits at once, one inserts.

        A job with an idempotency key is kept for at least `IDEMPOTENCY_MS` (of `model.documents.job`); then the key is
        free again. If the job has a ``unique`` key too, the idempotency key comes first.
        `model.documents.job.fate_of` decides about the job that holds the unique key. A replaced job gives up
        its key before the new one is inserted, and is cancelled after that: a failure in between lets both run, never
        neither.
        """

    async def submit_many(self, jobs: Sequence[NewJob]) -> Sequence[Submission]:
        """Submit each job as `submit` does, with one answer each.

        They appear in the stream in this order, except that jobs which may replace others appear, in their order, at
        any place.
        """

    async def submit_all(self, jobs: Sequence[NewJob]) -> Sequence[Submission] | None:
        """Insert all jobs, each NEW, or none, in one atomic write. They appear in the stream in this order.

        If some idempotency keys are held already, write nothing and return KNOWN for each if the same jobs hold all of
        them, else None. Raise `InvalidInput` if one job can't be stored. No job here has a ``unique`` key.
        """

    async def get(self, job_id: str) -> StoredDocument | None: ...

    async def list(self, which: JobSelection, after: ListPosition | None, limit: int) -> JobPage:
        """Return at most ``limit`` jobs, newest submission first, then by descending id.

        They lack payload, result and attempts. The work for a page is bounded: if few jobs match, the page ends before
        it is full. New jobs shift no page: they come before the first.
        """

    async def known(self, ids: Sequence[str]) -> Sequence[KnownJob]:
        """Return the existing jobs of ``ids``, in no order.

        The id of a batch gives one row for each tenant and state of its jobs, with that id.
        """

    async def batch(self, batch: str, limit: int) -> Sequence[KnownJob]:
        """Return at most ``limit`` jobs of that batch."""

    async def count(self, which: JobSelection, states: Sequence[JobState], limit: int) -> int:
        """Return how many match and are in one of ``states``, at most ``limit``."""

    async def counts(self, which: JobSelection, limit: int) -> JobCounts:
        """Return how many match in each state that ``which`` names (all, if none), each at most ``limit``.

        The work is bounded: if it ends early, the newest submissions are counted, and the states are in ``at_least``.
        """

    async def failed(self, which: JobSelection, limit: int) -> FailedJobs:
        """Return at most ``limit`` failed jobs that match, newest submission first.

        The states of ``which`` are ignored. The work is bounded: if few jobs match, it ends before there are ``limit``.
        """

    async def cancel(self, job_id: str, at_ms: WallMs) -> CancelAnswer | None:
        """Cancel a pending or dispatched job, or ask a running one to stop; None if there is no such job."""

    async def reprioritize(self, job_id: str, priority: int) -> ReprioritizeAnswer | None:
        """Change the priority of a pending job; None if there is no such job."""

    async def retry(self, job_id: str, at_ms: WallMs, key: RetryKey | None = None) -> KeyedRetry | None:
        """Make a failed or cancelled job pending again, with all its tries and a new attempt number.

        The same write remembers ``key``, so that it revives the job only once. None if there is no such job.
        """

    async def of_key(self, tenant: str, key: str, at_ms: WallMs) -> StoredDocument | None:
        """Return the job that holds that idempotency key at that time; it is safe with a majority."""

    async def dependents(
        self, ids: Sequence[str], tenant: str | None, known: Sequence[str], limit: int
    ) -> Sequence[Dependent]:
        """Return at most ``limit`` jobs that depend on some of ``ids`` (jobs or batches), by id.

        Leave out those that are ``known``, and if a ``tenant`` is given, those of others.
        """

    async def retry_dependent(
        self, job: Dependent, waits_for: Sequence[str], at_ms: WallMs, key: RetryKey | None = None
    ) -> bool:
        """Retry the job as `retry` does, but let it wait for these jobs; False if it has another ``rev`` by now."""

    async def unreported(
        self,
        definitions: Collection[str],
        since_ms: WallMs,
        limit: int,
        ids: Collection[str] | None = None,
        *,
        not_of: Collection[str] = (),
    ) -> Sequence[StoredDocument]:
        """Return at most ``limit`` jobs that failed since then, and whose failure is to be reported and is not yet.

        Their ``on_failure`` names a definition; or it is absent, theirs is one of ``definitions``, and they did run or
        expire: a job that failed with its dependency is not reported, and neither is one that reports another. They
        lack payload, result and attempts. With ``ids``, only those; without, the newest submissions are
        examined. None is of a tenant in ``not_of``.
        """

    async def reported(self, job_id: str, attempt: int, report: str) -> None:
        """Store the id of the job that reports the failure of that attempt, unless the job was revived."""

    async def cancel_some(self, which: JobSelection, at_ms: WallMs, limit: int) -> CancelledSome:
        """Cancel a slice of the jobs that have not ended and were not asked to stop."""

    async def reprioritize_some(self, which: JobSelection, priority: int, limit: int) -> int:
        """Change a slice of the pending jobs that have another priority, and return how many."""

    async def retry_some(self, which: JobSelection, at_ms: WallMs, limit: int) -> int:
        """Retry a slice of the failed jobs that ended by ``at_ms``, or of cancelled ones if ``which`` says so.

        Return how many.
        """

    async def schedules_of(self, which: JobSelection) -> Collection[str]:
        """Return the names of all schedules that made jobs that match."""

    async def delete_some(self, which: JobSelection, at_ms: WallMs, limit: int) -> int:
        """Let a slice of the ended jobs that would be kept for longer expire `DELETED_IN_MS` after ``at_ms``.

        Return how many. A job that is retried until then is kept.
        """


class BucketStore(Protocol):
    """Token buckets, one a tenant, shared by all replicas."""

    async def take(self, tenant: str, limit: RateLimit, tokens: int) -> int:
        """Take tokens and return 0, or take none and return in how many milliseconds the bucket holds enough.

        A bucket starts full, and is full again when its limit changes. ``tokens`` is at most ``limit.count``. After an
        unknown answer the tokens may be gone.
        """
