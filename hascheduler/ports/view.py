"""What the API may ask of the replica it runs in: what it sees of the whole, and its gauges, cheap at any time."""

from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from hascheduler.dispatch.explanation import Explanation
from hascheduler.dispatch.recording import RecordedStep, RecordingEnd, RecordingHeading
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
    """How this replica sees the whole now. The mappings are its own: read at once, and left as they are.

    Times are in milliseconds, None where there is nothing to tell.
    """

    leading: bool
    ready: bool
    term: int | None
    stream_lag_ms: int | None
    loop_age_ms: int
    """Since the loop that decides last came round."""
    quarantined: int
    broker_accepting: bool
    jobs: Mapping[str, int]
    """Live jobs by state; the next three by name, then by state, without names that have none."""
    jobs_of_definition: Mapping[str, Mapping[str, int]]
    jobs_of_lane: Mapping[str, Mapping[str, int]]
    jobs_of_tenant: Mapping[str, Mapping[str, int]]
    definitions: Collection[str]
    """The defined ones; jobs may name others. So too the next two."""
    lanes: Collection[str]
    tenants: Collection[str]
    unschedulable: int
    waited_ms: Mapping[str, int]
    """By lane, how long the job has waited that is due the longest."""
    wait_bound_ms: int | None
    """A job that waits longer is overtaken by none that comes after it; None: there is no such bound."""
    schedules: Mapping[str, int]
    """By state: active, paused."""
    processors: Mapping[str, int]
    """By state: live, draining, lost."""
    slots: Mapping[str, int]
    """Slots of the processors that live: occupied, free."""
    decision_lag_ms: int | None = None
    """How long this leader's decisions take to be carried out; None where it decides nothing."""
    findings: Mapping[str, int] | None = None
    """By kind, what the last look through the database found; None where this replica does not lead, or has not looked.
    """
    unable: Mapping[str, int] = field(default_factory=dict)
    """Processors that live and are not given the jobs that they could run, by reason: not_consuming, resting."""
    dependencies: int = 0
    """How many jobs and batches all jobs together have yet to wait for."""
    mirrors_differ: int = 0
    """Replicas whose mirrors differ from this one's, or did a moment ago."""
    pause: StandingPause | None = None
    """That of everything."""


@dataclass(frozen=True, slots=True)
class LeaderLag:
    """How long the leader's decisions take to be carried out, as it said last, and the least of the last minutes.

    Where it decides nothing, or is of an earlier release, it is how far its stream is behind; 0 where nothing is known.
    ``busy`` is the part of the processors' slots in which jobs run, over some seconds: what is left of it waits for the
    scheduler. 1 where nothing is known of processors.
    """

    now_ms: int = 0
    least_ms: int = 0
    busy: float = 1.0


@dataclass(frozen=True, slots=True)
class Cluster:
    """What this replica sees of the whole: all of it from its mirror, nothing read from the database."""

    replica_id: str
    lease: LeaseRecord | None
    journal: JournalHead | None
    leading: bool
    ready: bool
    replicas: Sequence[ReplicaStatus]
    processors: Sequence[tuple[ProcessorRef, int, bool]]
    """Each with its occupied slots, and whether its heartbeat still changes."""
    counts: Mapping[str, int]
    """Live jobs by state, schedules, definitions."""
    quarantine: Sequence[tuple[str, str, str]]
    """(collection, id, reason), the newest first, at most a hundred."""
    quarantined: int
    """How many there are in all."""
    stream_lag_ms: int | None
    position: str
    digest: str
    schema_version: int = UNSTATED_VERSION
    """The database's."""
    last_check: LastCheck | None = None
    """What the leader's last look through the database found."""
    silent: Collection[str] = ()
    """The ids of replicas whose beats have stopped: what they said last is of no use."""
    differing: Sequence[str] = ()
    """The ids of replicas whose mirrors differ from this one's, or did a moment ago."""
    pause: StandingPause | None = None
    """That of everything."""
    drains: Mapping[str, StandingPause] = field(default_factory=dict)
    """By the name of the processors that are drained."""
    rests: Mapping[str, Rest] = field(default_factory=dict)
    """By the id of the processors that did not take up the last jobs that they were given."""


Recording = tuple[RecordingHeading, AsyncIterator[RecordedStep | RecordingEnd]]
"""The leader's inputs and decisions from now on; for a reader that is too slow it ends, with the reason."""


class Waiter(Protocol):
    """Lets a caller await one kind of news; one wake-up stands for all that happened before it."""

    async def wait(self) -> bool:
        """Returns once there was news since the last call; False: this replica ends, and there is no more. The caller
        sets the time limit."""


class ClusterView(Protocol):
    """What the API may ask of the replica it runs in; reads only, by name or id, as far as the stream has delivered."""

    def job_end_waiter(self, job_id: str) -> AbstractContextManager[Waiter]:
        """A waiter for the end of that job, as the stream shows it; `Overloaded` where too many wait already."""

    def dispatched_attempts(self, processor_id: str) -> Sequence[tuple[str, int]]:
        """The attempts that are dispatched to that processor and that it has not started."""

    def dispatch_waiter(self, processor_id: str) -> AbstractContextManager[Waiter]:
        """A waiter for attempts dispatched to that processor; `Overloaded` where too many wait already."""

    def pending(self, tenant: str | None = None) -> int:
        """How many jobs wait, of that tenant or in all."""

    def dependencies(self) -> int:
        """How many jobs and batches all jobs together have yet to wait for."""

    def runnable(self) -> int:
        """How many of them could run by now, were there slots and nothing else in their way: they begin no later, wait
        for no other job, and some processor takes them."""

    def tenant(self, name: str) -> Tenant | None:
        """None where it has no limits."""

    def lanes(self) -> Mapping[str, Lane]: ...

    def definitions(self) -> Mapping[str, Definition]: ...

    def calendars(self) -> Mapping[str, Calendar]: ...

    def schedules(self) -> Mapping[str, ScheduleRef]:
        """To be read before the next await."""

    def live_jobs(self, *, definition: str | None = None, tenant: str | None = None) -> Mapping[str, int]:
        """How many live jobs there are by state: of that definition, or of that tenant, or in all. Not of both."""

    def copied_partitions(self) -> Collection[int]:
        """The partitions whose documents here are copies: they are counted where they come from."""

    def schedules_on(self, calendar: str) -> list[str]:
        """The schedules that use the calendar of that name."""

    def processor(self, id: str) -> ProcessorRef | None: ...

    def occupied(self, processor_id: str) -> int:
        """How many slots of the processor jobs hold, dispatched or running."""

    def processors(self) -> Iterable[ProcessorRef]:
        """All registrations; a dead one is among them until it is deleted."""

    def token(self, digest: str) -> Token | None:
        """The token whose secret hashes to that; it may have expired."""

    def cluster(self) -> Cluster: ...

    def gauges(self) -> Gauges: ...

    def explain(self, job_id: str, only: str | None = None) -> Explanation | None:
        """Why that job waits, or who has it; None when no live job of that id is known here.

        With ``only``, jobs of other tenants are not named.
        """

    def unschedulable(self) -> Collection[str]:
        """The ids of the pending jobs that no processor which lives could ever run: as of a second ago, and not all
        where there are thousands."""

    def learned_cost_ms(self, definition: str, target: str) -> int | None:
        """What a job of that definition took on that target lately; None where none has ended yet."""

    def record(self, for_ms: int) -> Recording | None:
        """None when this replica does not lead, or is being recorded by too many already."""

    @property
    def ready(self) -> bool:
        """The mirror is complete and fresh."""

    @property
    def unready_reason(self) -> str: ...

    @property
    def leader_lag(self) -> LeaderLag: ...

    @property
    def leading(self) -> bool:
        """This replica decides now."""

    @property
    def stopping(self) -> bool:
        """It is about to end: it goes on answering, and others should be asked from now on."""

    @property
    def alive(self) -> bool:
        """The loops still turn; False only for a wedged process."""
