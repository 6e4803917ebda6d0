"""The life of a job, as one table.

A job is *pending* until the leader promises it to one processor, which raises its attempt number; then it is
*dispatched*, and becomes *running* when that processor starts that attempt. It ends *succeeded*, *failed* or
*cancelled*. A lost, given-back or failed attempt returns it to *pending*, the last only while tries are left. The
attempt number is the fencing token: each start, heartbeat and finish names it, and an old number changes nothing. The
API can *revive* a job that failed or was cancelled: it then has a new attempt number, so earlier decisions no longer
concern it. No attempt runs under that number: the next claim raises it again, and `tries` counts what was claimed.

`TRANSITIONS` is the only statement of what may follow what: the stores build the filters of their compare-and-set
writes from it, the checkers their rule.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from hascheduler.model.limit_keys import LimitKeys, UniqueKey
from hascheduler.model.resources import Resources
from hascheduler.model.trace import TraceContext
from hascheduler.model.values.frozen import compact
from hascheduler.model.values.instants import WallMs


class JobState(StrEnum):
    __hash__ = str.__hash__  # the hash of enumerations is slow Python, and each job is counted by it

    PENDING = "pending"
    """It waits to be dispatched."""
    DISPATCHED = "dispatched"
    """It is assigned to a processor and has not started."""
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    """It failed for good: no further attempt follows."""
    CANCELLED = "cancelled"


class Move(StrEnum):
    """The moves of a job from one state to the next; each is one kind of compare-and-set write."""

    CLAIM = "claim"
    """Dispatch the job to a processor."""
    START = "start"
    """Start the attempt."""
    FINISH = "finish"
    """End the job with a result or an error."""
    GIVE_BACK = "give_back"
    """Return the job for another processor to run."""
    REQUEUE = "requeue"
    """Return the job of a lost processor."""
    RECALL = "recall"
    """Return a job that its processor did not start."""
    FAIL = "fail"
    """Fail the job without another attempt."""
    CANCEL = "cancel"
    """Cancel a job that is not running."""
    STOP = "stop"
    """End a running job that was asked to stop."""
    RETRY = "retry"
    """Return the job after a failed attempt."""
    REVIVE = "revive"
    """Return an ended job on a client's request."""


@dataclass(frozen=True, slots=True)
class Transition:
    """One row: ``who`` makes ``move`` from any of ``sources`` to one of ``targets``; ``guard`` protects the write."""

    move: Move
    sources: frozenset[JobState]
    targets: frozenset[JobState]
    who: str
    guard: str


_P, _D, _R = JobState.PENDING, JobState.DISPATCHED, JobState.RUNNING
_S, _F, _C = JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED

TRANSITIONS: dict[Move, Transition] = {
    row.move: row
    for row in (
        Transition(Move.CLAIM, frozenset({_P}), frozenset({_D}), "leader", "journal; attempt before it"),
        Transition(Move.START, frozenset({_D}), frozenset({_R}), "processor", "attempt, processor"),
        Transition(Move.FINISH, frozenset({_R}), frozenset({_S, _F}), "processor", "attempt"),
        Transition(Move.GIVE_BACK, frozenset({_D, _R}), frozenset({_P}), "processor", "attempt"),
        Transition(Move.REQUEUE, frozenset({_D, _R}), frozenset({_P}), "leader", "journal; attempt"),
        Transition(Move.RECALL, frozenset({_D}), frozenset({_P}), "leader, before the start", "journal; attempt"),
        Transition(Move.FAIL, frozenset({_P, _D, _R}), frozenset({_F}), "leader", "journal; attempt"),
        Transition(Move.CANCEL, frozenset({_P, _D}), frozenset({_C}), "API", "state"),
        Transition(Move.STOP, frozenset({_R}), frozenset({_C}), "processor, after a cancel request", "attempt"),
        Transition(Move.RETRY, frozenset({_R}), frozenset({_P}), "processor, with backoff", "attempt"),
        Transition(Move.REVIVE, frozenset({_F, _C}), frozenset({_P}), "API", "state; attempt := attempt + 1"),
    )
}


class AttemptEnd(StrEnum):
    """The end of an attempt, besides the terminal states. A lost or given-back attempt has not failed."""

    LOST = "lost"
    """Its processor died, was cut off, or could not prove in time that it was alive."""
    GIVEN_BACK = "given_back"
    """Its processor returned it for another one to run."""


ATTEMPTS_KEPT_MAX = 200
"""The most attempts on record. Given-back ones do not count against a definition's limit, so this is another one."""

UNSTARTED_MAX = 20
"""A job fails after this many attempts that no processor started: each cost it some 15 s, whatever the cause."""

LIVE = frozenset({_P, _D, _R})
TERMINAL = frozenset({_S, _F, _C})
OCCUPYING = frozenset({_D, _R})


def tries(attempt: int, revivals: int) -> int:
    """Return how many attempts were promised to a processor: each revival takes a number that no attempt runs under."""
    return max(0, attempt - revivals)


BATCH_PREFIX = "batch:"
"""The beginning of the id of every batch, and of no job's id."""


def is_batch(id: str) -> bool:
    """Return True if a job that waits for ``id`` waits for all jobs of a batch."""
    return id.startswith(BATCH_PREFIX)


DEPENDENCY_ERROR = "its dependency "
"""The beginning of the error of every job that never ran because a dependency failed or was cancelled."""


def dependency_error(job_id: str, state: JobState) -> str:
    """Return the error of a job that never ran, because the one it waited for ended in ``state``."""
    return f"{DEPENDENCY_ERROR}{job_id} {'was cancelled' if state is JobState.CANCELLED else 'failed'}"


def is_dependency_error(error: object) -> bool:
    return isinstance(error, str) and error.startswith(DEPENDENCY_ERROR)


def replaced_error(job_id: str) -> str:
    """Return the error of a job that was cancelled because another job replaced it."""
    return f"replaced by {job_id}"


JOB_ID_TAIL_MAX = 64
"""The longest tail after the name in the ids of a schedule's jobs."""


def fire_job_id(schedule: str, nominal_ms: int) -> str:
    """Return the only id of the job for that nominal time: its insert *is* the fire, so there can be only one."""
    return f"fire:{schedule}:{nominal_ms}"


def fired_at(job_id: str) -> int | None:
    """Return the nominal time whose fire made the job with that id; None if no fire did."""
    last = job_id.rpartition(":")[2]
    return int(last) if job_id.startswith("fire:") and last.isascii() and last.isdecimal() else None


def backfill_job_id(schedule: str, nominal_ms: int, created_at_ms: int | None = None) -> str:
    """Return the id of a backfilled job: a nominal time is backfilled at most once.

    ``created_at_ms`` (of the schedule) is given if the id without it belongs to a job of an earlier schedule of that
    name.
    """
    made = "" if created_at_ms is None else f"-{created_at_ms}"
    return f"{backfill_job_ids(schedule)}{nominal_ms}{made}"


def backfill_job_ids(schedule: str) -> str:
    """Return the common beginning of the ids of a schedule's backfilled jobs."""
    return f"backfill:{schedule}:"


def trigger_job_id(schedule: str, token: str) -> str:
    """Return the id of a job requested outside the nominal times; ``token`` is unique and has no colon."""
    return f"trigger:{schedule}:{token}"


def graph_job_id(last_id: str, ref: str) -> str:
    """Return the id of a job that comes before ``last_id`` in the graph of its schedule. Refs have no colon."""
    return f"{last_id}.{ref}"


def is_before_last(job_id: str) -> bool:
    """Return True if the job with that id belongs to a schedule's graph, and is not its last."""
    return "." in job_id.rpartition(":")[2] and schedule_of(job_id) is not None


def last_job_id(job_id: str) -> str:
    """Return the id of the job that stands for the graph of that job; the id itself if it is last or in no graph."""
    return job_id.rpartition(".")[0] if is_before_last(job_id) else job_id


def schedule_of(job_id: str) -> str | None:
    """Return the schedule that made the job with that id; None for a submitted one. Names have no colon."""
    kind, _, rest = job_id.partition(":")
    if kind not in _MADE_BY_SCHEDULES:
        return None
    schedule, _, last = rest.rpartition(":")
    return schedule if schedule and last else None


_MADE_BY_SCHEDULES = frozenset({"fire", "backfill", "trigger"})


class ScheduleId(NamedTuple):
    """The identity of a schedule, even if its name is reused.

    A schedule may be deleted while its jobs live, and another tenant may create one of that name. Schedules of one name
    differ by their creation, which no edit changes. Jobs that 0.2.0 made have no creation (None); then the tenants are
    compared, so a job is never attributed to another tenant's schedule.
    """

    name: str
    tenant: str
    created_at_ms: int | None

    def is_same(self, other: "ScheduleId") -> bool:
        if self.name != other.name:
            return False
        if self.created_at_ms is None or other.created_at_ms is None:
            return self.tenant == other.tenant
        return self.created_at_ms == other.created_at_ms


@compact(
    "processor", "dispatched_at_ms", "cancel_requested_at_ms", "serial", "started_at_ms", "resources", "failures",
    "first_started_at_ms", "retry_at_ms", "expires_at_ms", "waits_for", "ignores_failures", "losses",
    "overdue_attempt", "overdue_since_ms", "limit_keys", "unstarted",
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class JobRef:
    """The part of a live job that a mirror holds: ids, keys and times, never the payload.

    ``attempt`` is the number of the newest attempt, 0 before the first. ``processor`` holds that attempt while the
    job is dispatched or running. Arrival order is ``(submitted_at_ms, sequence, id)``. A ``serial`` job starts only
    if no other job of its schedule holds a slot. If ``resources`` is None, those of its definition apply.

    ``failures`` counts the attempts that failed, ``losses`` those that were lost while they ran (0.2.0 counted them as
    failures). The job waits for backoff until ``retry_at_ms``, and for the jobs in ``waits_for``, and all jobs of the
    batches in it, to succeed (to end, if it ``ignores_failures``). If it has not begun by ``expires_at_ms`` it never
    does.

    ``overdue_since_ms`` is when the attempt ``overdue_attempt`` timed out while its thread went on: as long as that
    attempt runs, only its processor ends it (`is_overdue`). If they belong to an earlier attempt they mean nothing.

    ``schedule_created_at_ms`` is when the schedule that made it was created; None for a submitted job, and for one that
    0.2.0 made. ``limit_keys`` are its values at the keys that its definition limited when it was made; None for a job
    that a fire is about to insert, until the stream shows them. ``unstarted`` counts the attempts that their processors
    did not start; 0.2.0 does not count them.
    """

    id: str
    rev: int
    state: JobState
    attempt: int
    definition: str
    target: str
    tenant: str
    lane: str
    fairness_key: str
    priority: int
    mode: str
    submitted_at_ms: WallMs
    sequence: int
    not_before_ms: WallMs | None
    processor: str | None = None
    dispatched_at_ms: WallMs | None = None
    cancel_requested_at_ms: WallMs | None = None
    serial: bool = False
    started_at_ms: WallMs | None = None
    resources: Resources | None = None
    failures: int = 0
    first_started_at_ms: WallMs | None = None
    retry_at_ms: WallMs | None = None
    expires_at_ms: WallMs | None = None
    waits_for: tuple[str, ...] = ()
    ignores_failures: bool = False
    schedule_created_at_ms: WallMs | None = None
    losses: int = 0
    overdue_attempt: int = 0
    overdue_since_ms: WallMs | None = None
    limit_keys: LimitKeys | None = ()
    unstarted: int = 0
    batch: str | None = None

    @property
    def is_overdue(self) -> bool:
        """Return True if its time is over, and its handler's thread, which can't be stopped, has not ended."""
        return self.overdue_attempt == self.attempt and self.state is JobState.RUNNING

    @property
    def made_by(self) -> ScheduleId | None:
        """Return the schedule that made it; None for a submitted one."""
        name = schedule_of(self.id)
        return None if name is None else ScheduleId(name, self.tenant, self.schedule_created_at_ms)


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job as it is submitted, with its payload; `documents.job.new_job_document` returns its stored form.

    ``depends_on`` are all the jobs and batches that it was submitted to depend on, ``waits_for`` those that had not yet
    succeeded. ``request_hash`` is the hash of the request under the ``idempotency_key``. All attempts belong to
    ``trace``; no mirror holds it, see `hascheduler.ports.JobTraces`. A ``unique`` key may let it begin later than its
    ``not_before_ms``.

    ``on_failure`` is the definition of the job that reports its failure if its schedule names one; "" for the jobs of a
    graph before the last, which reports for all of them; None: its definition says. ``failed_job`` is the job whose
    failure this one reports.
    """

    id: str
    definition: str
    target: str
    payload: Any  # not `object`, which the compiler rejects in a class
    tenant: str
    lane: str
    fairness_key: str
    priority: int
    mode: str
    labels: dict[str, str]
    submitted_at_ms: WallMs
    sequence: int = 0
    not_before_ms: WallMs | None = None
    schedule: str | None = None
    schedule_created_at_ms: WallMs | None = None
    nominal_ms: WallMs | None = None
    serial: bool = False
    resources: Resources | None = None
    expires_at_ms: WallMs | None = None
    batch: str | None = None
    depends_on: tuple[str, ...] = ()
    waits_for: tuple[str, ...] = ()
    ignores_failures: bool = False
    idempotency_key: str | None = None
    request_hash: str | None = None
    trace: TraceContext | None = None
    limit_keys: LimitKeys = ()
    unique: UniqueKey | None = None
    on_failure: str | None = None
    failed_job: str | None = None
