"""What the API may ask the replica it runs in: its view of the cluster and its gauges, cheap at any time."""

from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from hascheduler.dispatch.explanation import Explanation
from hascheduler.dispatch.recording import RecordedStep, RecordingEnd, RecordingHeading
from hascheduler.mirror.history import JobHistory
from hascheduler.model.leadership import JournalHead, LeaseRecord
from hascheduler.model.processor import ProcessorRef, Rest
from hascheduler.model.schema_version import UNSTATED_VERSION
from hascheduler.schema.calendar import Calendar
from hascheduler.schema.definition import Definition
from hascheduler.schema.lane import Lane
from hascheduler.schema.pause import StandingPause
from hascheduler.schema.replica import LastCheck, ReplicaStatus
from hascheduler.schema.schedule import ScheduleRef
from hascheduler.schema.tenant import Tenant
from hascheduler.schema.token import Token


@dataclass(frozen=True, slots=True)
class Gauges:
    """How this replica sees the cluster now. The mappings are its own: read them at once and do not change them.

    Times are in milliseconds, None if there is nothing to measure.
    """

    leading: bool
    ready: bool
    term: int | None
    stream_lag_ms: int | None
    loop_age_ms: int
    """Time since the dispatch loop last ran."""
    quarantined: int
    broker_accepting: bool
    jobs: Mapping[str, int]
    """Live jobs by state; the next three are by name, then by state, without names that have none."""
    jobs_of_definition: Mapping[str, Mapping[str, int]]
    jobs_of_lane: Mapping[str, Mapping[str, int]]
    jobs_of_tenant: Mapping[str, Mapping[str, int]]
    definitions: Collection[str]
    """Names that are defined; jobs may name others. The next two likewise."""
    lanes: Collection[str]
    tenants: Collection[str]
    unschedulable: int
    waited_ms: Mapping[str, int]
    """By lane, how long the oldest due job has waited."""
    wait_bound_ms: int | None
    """A job that waits longer is not overtaken by later ones; None if there is no such bound."""
    schedules: Mapping[str, int]
    """By state: active, paused."""
    processors: Mapping[str, int]
    """By state: live, draining, lost."""
    slots: Mapping[str, int]
    """Slots of live processors: occupied, free."""
    decision_lag_ms: int | None = None
    """How long this leader's decisions take to be applied; None if it decides nothing."""
    findings: Mapping[str, int] | None = None
    """What the last check of the database found, by kind; None if this replica does not lead or has not checked."""
    unable: Mapping[str, int] = field(default_factory=dict)
    """Live processors that get no jobs although they could run some, by reason: not_consuming, resting."""
    dependencies: int = 0
    """How many jobs and batches all jobs together still wait for."""
    mirrors_differ: int = 0
    """Replicas whose mirrors differ from this one's, now or within the last minute."""
    pause: StandingPause | None = None
    """The pause of everything, if there is one."""


@dataclass(frozen=True, slots=True)
class LeaderLag:
    """How long the leader's decisions take to be applied, as it reported last, and the least of the last minutes.

    If it decides nothing, or is of an earlier release, this is how far its stream is behind; 0 if nothing is known.
    ``busy`` is the part of the processors' slots in which jobs run, over some seconds; the rest waits for the
    scheduler. It is 1 if no processor is known.
    """

    now_ms: int = 0
    least_ms: int = 0
    busy: float = 1.0


@dataclass(frozen=True, slots=True)
class Cluster:
    """What this replica sees of the cluster, from its mirror alone."""

    replica_id: str
    lease: LeaseRecord | None
    journal: JournalHead | None
    leading: bool
    ready: bool
    replicas: Sequence[ReplicaStatus]
    processors: Sequence[tuple[ProcessorRef, int, bool]]
    """Each with its occupied slots, and True if its heartbeat still changes."""
    counts: Mapping[str, int]
    """Live jobs by state, schedules, definitions."""
    quarantine: Sequence[tuple[str, str, str]]
    """(collection, id, reason), newest first, at most a hundred."""
    quarantined: int
    """How many documents are quarantined in all."""
    stream_lag_ms: int | None
    position: str
    digest: str
    schema_version: int = UNSTATED_VERSION
    """The version of the database's schema."""
    last_check: LastCheck | None = None
    """What the leader's last check of the database found."""
    silent: Collection[str] = ()
    """The ids of replicas whose heartbeats have stopped: their last report is out of date."""
    differing: Sequence[str] = ()
    """The ids of replicas whose mirrors differ from this one's, now or within the last minute."""
    pause: StandingPause | None = None
    """The pause of everything, if there is one."""
    drains: Mapping[str, StandingPause] = field(default_factory=dict)
    """By the name of the drained processors."""
    rests: Mapping[str, Rest] = field(default_factory=dict)
    """By the id of processors that did not start the last jobs sent to them."""


Recording = tuple[RecordingHeading, AsyncIterator[RecordedStep | RecordingEnd]]
"""The leader's inputs and decisions from now on; it ends with a reason if the reader is too slow."""


class Waiter(Protocol):
    """Lets a caller await one kind of news; one wake-up covers everything that happened before it."""

    async def wait(self) -> bool:
        """Return True once there is news since the last call, or False if this replica stops.

        The caller sets the time limit.
        """


class ClusterView(Protocol):
    """What the API may ask the replica it runs in: reads by name or id, as far as the stream has delivered."""

    def job_end_waiter(self, job_id: str) -> AbstractContextManager[Waiter]:
        """Return a waiter for the end of that job in the stream; raise `Overloaded` if too many wait already."""

    def dispatched_attempts(self, processor_id: str) -> Sequence[tuple[str, int]]:
        """Return the attempts dispatched to that processor that it has not started."""

    def dispatch_waiter(self, processor_id: str) -> AbstractContextManager[Waiter]:
        """Return a waiter for attempts dispatched to that processor; raise `Overloaded` if too many wait already."""

    def pending(self, tenant: str | None = None) -> int:
        """Return how many jobs wait, of that tenant or in all."""

    def dependencies(self) -> int:
        """Return how many jobs and batches all jobs together still wait for."""

    def runnable(self) -> int:
        """Return how many pending jobs need only a slot: due, waiting for no job, and taken by some processor."""

    def tenant(self, name: str) -> Tenant | None:
        """Return the tenant, or None if it has no limits."""

    def lanes(self) -> Mapping[str, Lane]: ...

    def definitions(self) -> Mapping[str, Definition]: ...

    def calendars(self) -> Mapping[str, Calendar]: ...

    def schedules(self) -> Mapping[str, ScheduleRef]:
        """Return all schedules by name; to be read before the next await."""

    def live_jobs(self, *, definition: str | None = None, tenant: str | None = None) -> Mapping[str, int]:
        """Return the number of live jobs by state, of that definition, or of that tenant, or in all; not of both."""

    def copied_partitions(self) -> Collection[int]:
        """Return the partitions whose documents here are copies: they are counted where they come from."""

    def overdue_schedules(self, before_ms: int) -> Sequence[ScheduleRef]:
        """Return schedules that may be late, among them all with an undecided time that was due before then.

        The work is bounded: if there are thousands, some are left out.
        """

    def schedules_on(self, calendar: str) -> list[str]:
        """Return the schedules that use the calendar of that name."""

    def processor(self, id: str) -> ProcessorRef | None: ...

    def occupied(self, processor_id: str) -> int:
        """Return how many slots of the processor are held by dispatched or running jobs."""

    def processors(self) -> Iterable[ProcessorRef]:
        """Return all registrations, including dead ones that are not deleted yet."""

    def token(self, digest: str) -> Token | None:
        """Return the token whose secret hashes to that; it may have expired."""

    def cluster(self) -> Cluster: ...

    def history(self) -> JobHistory:
        """Return the last hour of the jobs of all tenants, up to now; call this at least once a minute."""

    def gauges(self) -> Gauges: ...

    def explain(self, job_id: str, only: str | None = None) -> Explanation | None:
        """Return why that job waits, or who has it; None if no live job of that id is known here.

        With ``only``, jobs of other tenants are not named.
        """

    def unschedulable(self) -> Collection[str]:
        """Return the ids of pending jobs that no live processor could ever run.

        As of a second ago, and not all if there are thousands.
        """

    def learned_cost_ms(self, definition: str, target: str) -> int | None:
        """Return how long jobs of that definition took on that target recently; None if none has ended yet."""

    def record(self, for_ms: int) -> Recording | None:
        """Start a recording; None if this replica does not lead, or too many record it already."""

    @property
    def ready(self) -> bool:
        """Return True if the mirror is complete and fresh."""

    @property
    def unready_reason(self) -> str: ...

    @property
    def leader_lag(self) -> LeaderLag: ...

    @property
    def leading(self) -> bool:
        """Return True while this replica decides."""

    @property
    def stopping(self) -> bool:
        """Return True if it is about to stop: it still answers, but callers should go to others."""

    @property
    def alive(self) -> bool:
        """Return True while the loops turn; False only for a stuck process."""
