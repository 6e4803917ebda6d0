"""Check that live jobs are in motion, or wait for something that will come: not stuck, orphaned, stranded or overdue.

The leader, the processor and the API each have a time within which they must act. A rule reports a job only after that
time and a grace, by every clock involved.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from hascheduler.check.finding import CheckConfig, Finding, FindingKind, instant_or_ms
from hascheduler.dispatch.config import DispatchConfig
from hascheduler.model.job import OCCUPYING, JobRef, JobState
from hascheduler.model.leadership import LeaseRecord
from hascheduler.model.processor import ProcessorRef
from hascheduler.model.resources import NO_RESOURCES
from hascheduler.schema.calendar import Calendar
from hascheduler.schema.definition import Definition
from hascheduler.schema.pause import EVERYTHING, StandingPause, drain_id
from hascheduler.schema.replica import ReplicaStatus

_TIMEOUT_GRACE_MS = DispatchConfig().timeout_grace_ms


@dataclass(frozen=True, slots=True)
class RegisteredProcessor:
    """A processor and its last heartbeat, by the database's clock; None if its record has no ``expire_at``."""

    processor: ProcessorRef
    heartbeat_at_ms: int | None


@dataclass(frozen=True, slots=True)
class EndedJob:
    """The end of a job that another one waits for, and when it ended; for a batch, the end of its job ``job``."""

    state: JobState
    at_ms: int | None = None
    job: str | None = None


@dataclass
class CheckContext:
    """The state of the deployment against which documents are checked; each pass of the scan fills it anew."""

    now: int
    config: CheckConfig
    max_concurrency: int | None = None
    processors: dict[str, RegisteredProcessor] = field(default_factory=dict)
    """All processors that have a record."""
    definitions: dict[str, Definition] = field(default_factory=dict)
    calendars: dict[str, Calendar] = field(default_factory=dict)
    leases: dict[str, LeaseRecord] = field(default_factory=dict)
    pauses: dict[str, StandingPause] = field(default_factory=dict)
    max_running: dict[str, int] = field(default_factory=dict)
    """By tenant, for those that have such a cap."""
    replicas: dict[str, ReplicaStatus] = field(default_factory=dict)
    """By id, those with a recent heartbeat by the database's clock."""
    held: set[int] = field(default_factory=set)
    """Partitions whose documents may be on their way to or from another database."""

    def definition(self, name: str) -> Definition:
        return self.definitions.get(name) or Definition(name=name)

    def silent_for_ms(self, processor_id: str | None) -> int | None:
        """Return how long that processor has been silent; None if it, or its last heartbeat, is unknown."""
        registered = self.processors.get(processor_id or "")
        if registered is None or registered.heartbeat_at_ms is None:
            return None
        return self.now - registered.heartbeat_at_ms


def check_job(job: JobRef, context: CheckContext) -> Finding | None:
    """Return at most one finding: the first rule that applies explains the later ones."""
    for rule in (_orphaned, _not_started, _cancel_ignored, _overtime, _expired):
        if (found := rule(job, context)) is not None:
            return found
    return None


def check_dependent(job: JobRef, ended: Mapping[str, EndedJob], context: CheckContext) -> Finding | None:
    """Return a finding for a pending job with a dependency that can't succeed any more.

    ``ended`` holds its dependencies that ended, and for each batch a job that did not succeed.
    """
    if job.state is not JobState.PENDING or job.ignores_failures:
        return None
    for id in job.waits_for:
        end = ended.get(id)
        if end is None or end.state not in (JobState.FAILED, JobState.CANCELLED):
            continue
        since_ms = end.at_ms if end.at_ms is not None else job.submitted_at_ms
        if context.now - since_ms > context.config.motion_ms:
            dependency, named = (id, id) if end.job is None else (end.job, f"{id} (job {end.job})")
            return _finding(
                FindingKind.DEPENDENT_STRANDED,
                job,
                f"it waits for {named}, which {'was cancelled' if end.state is JobState.CANCELLED else 'failed'}"
                f" {_ago(context, since_ms)}",
                f"hascheduler why {job.id}; then cancel it, or retry {dependency} (hascheduler job retry)",
                since_ms,
            )
    return None


def _orphaned(job: JobRef, context: CheckContext) -> Finding | None:
    if job.state not in OCCUPYING:
        return None
    since_ms = job.dispatched_at_ms or job.submitted_at_ms
    hint = "a leader should reclaim it within seconds: check that one leads (hascheduler cluster), and its log"
    if job.processor not in context.processors:
        if context.now - since_ms <= context.config.motion_ms:
            return None
        who = f"at processor {job.processor}, which is not registered" if job.processor else "without a processor"
        what = f"attempt {job.attempt} is {job.state} {who}"
        return _finding(FindingKind.ORPHAN_ATTEMPT, job, what, hint, since_ms)
    silent_ms = context.silent_for_ms(job.processor)
    if silent_ms is None or silent_ms <= context.config.heartbeat_timeout_ms + context.config.motion_ms:
        return None
    what = f"attempt {job.attempt} is {job.state} at {job.processor}, which has been silent for {silent_ms // 1_000} s"
    return _finding(FindingKind.ORPHAN_ATTEMPT, job, what, hint, context.now - silent_ms)


def _not_started(job: JobRef, context: CheckContext) -> Finding | None:
    since_ms = job.dispatched_at_ms
    if job.state is not JobState.DISPATCHED or since_ms is None:
        return None
    if context.now - since_ms <= 3 * context.config.start_timeout_ms + context.config.patience_ms:
        return None
    return _finding(
        FindingKind.NOT_STARTED,
        job,
        f"attempt {job.attempt} was dispatched to {job.processor} {_ago(context, since_ms)} and has not started",
        "check that the broker accepts messages, and the log of that processor; the leader requeues the job",
        since_ms,
    )


def _cancel_ignored(job: JobRef, context: CheckContext) -> Finding | None:
    since_ms = job.cancel_requested_at_ms
    if since_ms is None or context.now - since_ms <= context.config.patience_ms:
        return None
    return _finding(
        FindingKind.CANCEL_IGNORED,
        job,
        f"its cancellation was requested {_ago(context, since_ms)}, and it is still {job.state} at {job.processor}",
        "its handler ignores the request to stop: fix the handler, or end that processor",
        since_ms,
    )


def _overtime(job: JobRef, context: CheckContext) -> Finding | None:
    if job.is_overdue:
        since_ms = job.overdue_since_ms or context.now
        if context.now - since_ms <= _TIMEOUT_GRACE_MS + context.config.motion_ms:
            return None
        what = f"attempt {job.attempt} timed out {_ago(context, since_ms)}; its thread at {job.processor} still runs"
        return _finding(FindingKind.OVERTIME, job, what, _THREAD_HINT, since_ms)
    definition, grace_ms = context.definition(job.definition), _TIMEOUT_GRACE_MS + context.config.motion_ms
    in_all_ms = definition.end_of(job.first_started_at_ms)
    if in_all_ms is not None and job.state is not JobState.DISPATCHED and context.now - in_all_ms > grace_ms:
        what = f"its total timeout ({(definition.total_timeout_ms or 0) // 1_000} s) passed"
        return _finding(FindingKind.OVERTIME, job, f"{what} {_ago(context, in_all_ms)}", _OVERTIME_HINT, in_all_ms)
    if job.state is not JobState.RUNNING or definition.timeout_ms is None:
        return None
    end_ms = max(job.started_at_ms or 0, job.dispatched_at_ms or 0) + definition.timeout_ms
    if context.now - end_ms <= grace_ms:
        return None
    what = f"the timeout of attempt {job.attempt} ({definition.timeout_ms // 1_000} s) passed {_ago(context, end_ms)}"
    return _finding(FindingKind.OVERTIME, job, what, _OVERTIME_HINT, end_ms)


_THREAD_HINT = "its handler ignores job.stop_requested: fix it, run it in a process, or end that processor"
_OVERTIME_HINT = "the leader should end it: check that one leads (hascheduler cluster), and its log"


def _expired(job: JobRef, context: CheckContext) -> Finding | None:
    at_ms = job.expires_at_ms
    if at_ms is None or job.state is not JobState.PENDING or job.first_started_at_ms is not None:
        return None
    if context.now - at_ms <= context.config.motion_ms:
        return None
    return _finding(
        FindingKind.EXPIRED,
        job,
        f"it had to start by {instant_or_ms(at_ms)}, {_ago(context, at_ms)}, and is still pending",
        "the leader should fail it: check that one leads (hascheduler cluster), and its log",
        at_ms,
    )


def _finding(kind: FindingKind, job: JobRef, what: str, hint: str, since_ms: int) -> Finding:
    return Finding(kind, f"jobs/{job.id}", what, hint, since_ms, witness=f"{job.rev}")


def _ago(context: CheckContext, since_ms: int) -> str:
    return f"{(context.now - since_ms) // 1_000} s ago"


@dataclass
class OccupiedSlots:
    """How many jobs hold a slot, in all and by what caps them."""

    in_all: int = 0
    of_processor: Counter[str] = field(default_factory=Counter)
    of_definition: Counter[str] = field(default_factory=Counter)
    of_tenant: Counter[str] = field(default_factory=Counter)

    def add(self, job: JobRef) -> None:
        self.in_all += 1
        self.of_processor[job.processor or ""] += 1
        self.of_definition[job.definition] += 1
        self.of_tenant[job.tenant] += 1


def check_wait(job: JobRef, context: CheckContext, occupied: OccupiedSlots) -> Finding | None:
    """Return a finding for a job that is long due and free to run while a live processor has a free slot.

    Only the core knows everything that may hold a job back (lanes, tiers, learned costs, rates). So this rule covers
    only jobs without such limits, and only a wait that no order of the queue explains: there is room for all.
    """
    if job.state is not JobState.PENDING or job.serial or job.waits_for or job.cancel_requested_at_ms is not None:
        return None
    everything = context.pauses.get(EVERYTHING)
    if everything is not None and not everything.schedules_only:
        return None
    since_ms = max(job.submitted_at_ms, job.not_before_ms or 0, job.retry_at_ms or 0)
    waited_ms = context.now - since_ms
    if waited_ms <= context.config.patience_ms or _is_capped(job, context, occupied):
        return None
    for id, registered in context.processors.items():
        processor, silent_ms = registered.processor, context.silent_for_ms(id)
        is_live = silent_ms is not None and silent_ms <= context.config.heartbeat_timeout_ms
        free = processor.slots - occupied.of_processor[id]
        is_draining = processor.draining or drain_id(processor.name) in context.pauses
        if is_live and not is_draining and free > 0 and processor.supports(job.definition):
            retry = f" (its retry was due at {instant_or_ms(job.retry_at_ms)})" if job.retry_at_ms else ""
            return _finding(
                FindingKind.WAITING_IN_VAIN,
                job,
                f"it has been due for {waited_ms // 1_000} s, and {id} has {free} of {processor.slots} slots"
                f" free{retry}",
                f"hascheduler why {job.id}; if nothing holds it back, restart the leader",
                since_ms,
            )
    return None


def _is_capped(job: JobRef, context: CheckContext, occupied: OccupiedSlots) -> bool:
    definition = context.definition(job.definition)
    if definition.tier is not None or definition.rate_limit is not None or definition.may_exclude:
        return True
    if definition.needs(job.resources) != NO_RESOURCES:
        return True
    capped = (
        (context.max_concurrency, occupied.in_all),
        (definition.max_concurrency, occupied.of_definition[job.definition]),
        (context.max_running.get(job.tenant), occupied.of_tenant[job.tenant]),
    )
    return any(cap is not None and running >= cap for cap, running in capped)
