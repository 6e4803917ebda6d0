"""This replica's view of the whole, for the API: read from its mirror and its core, never from the database."""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Collection as SomeOf
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from hascheduler.daemon.config import ReplicaConfig
from hascheduler.daemon.leadership.leader import Leader
from hascheduler.daemon.loop.checks import DigestCheck, InvariantChecker
from hascheduler.daemon.loop.feeder import Feeder
from hascheduler.daemon.loop.recorder import Recorder
from hascheduler.daemon.loop.replica_heartbeat import ReplicaHeartbeat
from hascheduler.daemon.loop.stepper import Stepper
from hascheduler.daemon.outbound.event_log import EventLog
from hascheduler.daemon.outbound.publisher import Publisher
from hascheduler.daemon.outbound.waiters import StreamWaiter, Waiters
from hascheduler.daemon.readiness import Readiness, stored_version
from hascheduler.dispatch.dispatcher import Dispatcher
from hascheduler.dispatch.explanation import Block, BlockReason, Explanation
from hascheduler.dispatch.queue.criteria import overtaken_for_ms
from hascheduler.dispatch.recording import RecordingHeading
from hascheduler.mirror.history import JobHistory
from hascheduler.mirror.mirror import Mirror
from hascheduler.model.collection import Collection
from hascheduler.model.job import JobState
from hascheduler.model.processor import ProcessorRef
from hascheduler.ports import Clock, Cluster, Gauges, LeaderLag, Recording
from hascheduler.schema.calendar import Calendar
from hascheduler.schema.definition import Definition
from hascheduler.schema.lane import Lane
from hascheduler.schema.pause import EVERYTHING, drains
from hascheduler.schema.replica import LastCheck, ReplicaStatus
from hascheduler.schema.schedule import ScheduleRef
from hascheduler.schema.tenant import Tenant
from hascheduler.schema.token import Token

_QUARANTINE_SHOWN_MAX = 100
_WEDGED_AFTER_MS = 60_000
_RECHECK_MS = 1_000
_LEAST_LAG_MINUTES = 5
_BUSY_WEIGHT = 0.3
"""The weight of the newest sample: with few slots, the number that run jobs varies with each."""
_LEADERLESS = Block(BlockReason.NOT_LEADING, "no replica leads at the moment", "when one takes the lease")


@dataclass(kw_only=True)
class ReplicaView:
    """`hascheduler.ports.ClusterView`. ``is_stopping``: this replica is shutting down."""

    config: ReplicaConfig
    feeder: Feeder
    heartbeat: ReplicaHeartbeat
    readiness: Readiness
    leader: Leader
    stepper: Stepper
    core: Dispatcher
    recorder: Recorder
    publisher: Publisher
    invariants: InvariantChecker
    digests: DigestCheck
    events: EventLog
    ended: Waiters
    dispatched: Waiters
    clock: Clock
    is_stopping: Callable[[], bool]

    def __post_init__(self) -> None:
        self._least_lags: deque[tuple[int, int]] = deque(maxlen=_LEAST_LAG_MINUTES)
        self._busy = 1.0
        self._unschedulable: frozenset[str] = frozenset()
        self._recheck_at_ms: int = self.clock.mono_ms()
        self._history = JobHistory(self.clock.mono_ms(), self.events.totals)

    @property
    def ready(self) -> bool:
        return not self.unready_reason

    @property
    def unready_reason(self) -> str:
        return self.readiness.unready_reason()

    @property
    def leading(self) -> bool:
        return self.leader.leads()

    @property
    def leader_lag(self) -> LeaderLag:
        least_ms = min((lag_ms for _, lag_ms in self._least_lags), default=0)
        return LeaderLag(self._leader_lag_ms(), least_ms, self._busy)

    def observe_leader(self) -> None:
        """Remember the least lag of recent minutes and the load of the processors; call this once a retry period."""
        minute, lag_ms = self.clock.mono_ms() // 60_000, self._leader_lag_ms()
        if self._least_lags and self._least_lags[-1][0] == minute:
            lag_ms = min(lag_ms, self._least_lags.pop()[1])
        self._least_lags.append((minute, lag_ms))
        self._busy += _BUSY_WEIGHT * (self._busy_now() - self._busy)

    def _busy_now(self) -> float:
        mirror = self.feeder.mirror
        _, slots = processors_by_state(mirror, self.core)
        total = slots["occupied"] + slots["free"]
        return min(mirror.live_counts.jobs["running"] / total, 1.0) if total else 1.0

    def _leader_lag_ms(self) -> int:
        if self.leader.leads():
            decision_lag_ms, stream_lag_ms = self.stepper.decision_lag_ms, self.heartbeat.lag_ms
        else:
            holder = "" if self.leader.lease is None else self.leader.lease.holder
            leader: ReplicaStatus | None = self.feeder.mirror.nouns(Collection.REPLICAS).get(holder)
            if leader is None:
                return 0
            decision_lag_ms, stream_lag_ms = leader.decision_lag_ms, leader.stream_lag_ms
        return (stream_lag_ms or 0) if decision_lag_ms is None else decision_lag_ms

    @property
    def stopping(self) -> bool:
        return self.is_stopping()

    @property
    def alive(self) -> bool:
        return self.clock.mono_ms() - self.stepper.turned_at_ms < _WEDGED_AFTER_MS

    def job_end_waiter(self, job_id: str) -> AbstractContextManager[StreamWaiter]:
        return self.ended.waiting(job_id)

    def dispatch_waiter(self, processor_id: str) -> AbstractContextManager[StreamWaiter]:
        return self.dispatched.waiting(processor_id)

    def dispatched_attempts(self, processor_id: str) -> Sequence[tuple[str, int]]:
        jobs = self.feeder.mirror.nouns(Collection.JOBS)
        held = [jobs[id] for id in self.core.state.pool.occupants(processor_id) if id in jobs]
        return [
            (job.id, job.attempt) for job in held if job.state is JobState.DISPATCHED and job.processor == processor_id
        ]

    def pending(self, tenant: str | None = None) -> int:
        return self.core.pending(tenant)

    def dependencies(self) -> int:
        return self.core.state.jobs.dependencies.count

    def runnable(self) -> int:
        return self.core.runnable

    def tenant(self, name: str) -> Tenant | None:
        tenant: Tenant | None = self.feeder.mirror.nouns(Collection.TENANTS).get(name)
        return tenant

    def lanes(self) -> Mapping[str, Lane]:
        return self.feeder.mirror.nouns(Collection.LANES)

    def definitions(self) -> Mapping[str, Definition]:
        return self.feeder.mirror.nouns(Collection.DEFINITIONS)

    def calendars(self) -> Mapping[str, Calendar]:
        return self.feeder.mirror.nouns(Collection.CALENDARS)

    def schedules(self) -> Mapping[str, ScheduleRef]:
        return self.feeder.mirror.nouns(Collection.SCHEDULES)

    def live_jobs(self, *, definition: str | None = None, tenant: str | None = None) -> Mapping[str, int]:
        counts = self.feeder.mirror.live_counts
        if definition is not None:
            return counts.of_definition.get(definition, {})
        return counts.jobs if tenant is None else counts.of_tenant.get(tenant, {})

    def copied_partitions(self) -> SomeOf[int]:
        return self.feeder.mirror.silent_partitions

    def overdue_schedules(self, before_ms: int) -> Sequence[ScheduleRef]:
        return self.core.state.times.overdue(before_ms)

    def schedules_on(self, calendar: str) -> list[str]:
        return self.core.state.times.due_times.users_of(calendar)

    def processor(self, id: str) -> ProcessorRef | None:
        processor: ProcessorRef | None = self.feeder.mirror.nouns(Collection.PROCESSORS).get(id)
        return processor

    def occupied(self, processor_id: str) -> int:
        return self.core.occupied(processor_id)

    def processors(self) -> Iterable[ProcessorRef]:
        return self.feeder.mirror.nouns(Collection.PROCESSORS).values()

    def token(self, digest: str) -> Token | None:
        token: Token | None = self.feeder.mirror.nouns(Collection.TOKENS).get(digest)
        return token

    def history(self) -> JobHistory:
        mirror = self.feeder.mirror
        levels = {state: mirror.live_counts.jobs.get(state, 0) for state in ("pending", "running")}
        levels["slots"] = sum(processors_by_state(mirror, self.core)[1].values())
        levels["replicas"] = sum(not self.heartbeat.is_silent(id) for id in mirror.nouns(Collection.REPLICAS))
        self._history.sample(self.clock.mono_ms(), self.events.totals, levels)
        return self._history

    def cluster(self) -> Cluster:
        mirror = self.feeder.mirror
        states = mirror.live_counts.jobs
        processors = mirror.nouns(Collection.PROCESSORS)
        unreadable = self._unreadable()
        replicas = mirror.nouns(Collection.REPLICAS)
        return Cluster(
            replica_id=self.config.replica_id,
            lease=self.leader.lease,
            journal=mirror.journal_head(self.config.scheduler),
            leading=self.leader.leads(),
            ready=self.ready,
            replicas=[replica for _, replica in sorted(replicas.items())],
            silent=frozenset(filter(self.heartbeat.is_silent, replicas)),
            processors=[
                (processor, self.core.occupied(id), self.core.state.pool.is_live(id))
                for id, processor in sorted(processors.items())
            ],
            counts={
                "schedules": len(mirror.nouns(Collection.SCHEDULES)),
                "definitions": len(mirror.nouns(Collection.DEFINITIONS)),
                "pending": states["pending"],
                "dispatched": states["dispatched"],
                "running": states["running"],
            },
            quarantine=[
                (str(collection), id, reason)
                for (collection, id), reason in reversed(unreadable[-_QUARANTINE_SHOWN_MAX:])
            ],
            quarantined=len(unreadable),
            stream_lag_ms=self.heartbeat.lag_ms,
            position=self.feeder.position,
            digest=mirror.digest,
            schema_version=stored_version(mirror),
            last_check=self._newest_check(),
            differing=sorted(self.digests.differing),
            pause=mirror.nouns(Collection.PAUSES).get(EVERYTHING),
            drains=drains(mirror.nouns(Collection.PAUSES)),
            rests=dict(self.core.state.pool.rests),
        )

    def gauges(self) -> Gauges:
        mirror, lease = self.feeder.mirror, self.leader.lease
        processors, slots = processors_by_state(mirror, self.core)
        last_check = self.invariants.last_check
        now, paused = self.clock.wall_ms(), mirror.live_counts.schedules_paused
        return Gauges(
            leading=self.leader.leads(),
            ready=self.ready,
            term=None if lease is None else lease.term,
            stream_lag_ms=self.heartbeat.lag_ms,
            decision_lag_ms=self.stepper.decision_lag_ms,
            loop_age_ms=self.clock.mono_ms() - self.stepper.turned_at_ms,
            quarantined=len(self._unreadable()),
            broker_accepting=self.publisher.transport.accepting,
            jobs=mirror.live_counts.jobs,
            jobs_of_definition=mirror.live_counts.of_definition,
            jobs_of_lane=mirror.live_counts.of_lane,
            jobs_of_tenant=mirror.live_counts.of_tenant,
            definitions=mirror.nouns(Collection.DEFINITIONS),
            lanes=mirror.nouns(Collection.LANES),
            tenants=mirror.nouns(Collection.TENANTS),
            unschedulable=len(self.unschedulable()),
            dependencies=self.core.state.jobs.dependencies.count,
            waited_ms={lane: max(now - since_ms, 0) for lane, since_ms in self.core.state.queue.waits.oldest().items()},
            wait_bound_ms=overtaken_for_ms(self.config.dispatch.policy),
            schedules={"active": len(mirror.nouns(Collection.SCHEDULES)) - paused, "paused": paused},
            processors=processors,
            unable=_unable(mirror, self.core),
            slots=slots,
            findings=None if last_check is None else last_check.counts,
            mirrors_differ=len(self.digests.differing),
            pause=mirror.nouns(Collection.PAUSES).get(EVERYTHING),
        )

    def explain(self, job_id: str, only: str | None = None) -> Explanation | None:
        explanation = self.core.explain(job_id, self.clock.wall_ms(), only)
        if explanation is None or explanation.state != "waiting" or self._has_leader():
            return explanation
        others = [block for block in explanation.blocks if block.rule is not BlockReason.NOT_LEADING]
        return replace(explanation, blocks=(_LEADERLESS, *others))

    def unschedulable(self) -> SomeOf[str]:
        now = self.clock.mono_ms()
        if now >= self._recheck_at_ms:
            # Each check reads all pending jobs, and there may be a great many.
            self._unschedulable = frozenset(self.core.state.explainer.unschedulable())
            self._recheck_at_ms = now + _RECHECK_MS
        return self._unschedulable

    def learned_cost_ms(self, definition: str, target: str) -> int | None:
        return self.core.state.accounts.learned(definition, target)

    def record(self, for_ms: int) -> Recording | None:
        term = self.recorder.term()
        if term is None or self.recorder.is_taken:
            return None
        heading = RecordingHeading(self.clock.wall_ms(), self.config.replica_id, term, self.config.dispatch)
        return heading, self.recorder.record(for_ms)

    def _newest_check(self) -> LastCheck | None:
        """Return the leader's newest check: this replica's own, or the newest that another replica's record shows."""
        others = [replica.last_check for replica in self.feeder.mirror.nouns(Collection.REPLICAS).values()]
        found = [last_check for last_check in (self.invariants.last_check, *others) if last_check is not None]
        return max(found, key=lambda last_check: last_check.at_ms, default=None)

    def _has_leader(self) -> bool:
        """Return True if the lease is fresh, for people: only here a remote clock is trusted."""
        lease = self.leader.lease
        if self.leader.leads():
            return True
        if lease is None or not lease.holder:
            return False
        return self.clock.wall_ms() - lease.renewed_at_ms <= lease.lease_duration_ms

    def _unreadable(self) -> list[tuple[tuple[Collection, str], str]]:
        """Return the documents that the mirror quarantined, and the schedules whose times the core can't compute."""
        never_firing = self.core.state.times.due_times.unreadable.items()
        found = [((Collection.SCHEDULES, name), reason) for name, reason in never_firing]
        return [*found, *self.feeder.mirror.quarantine.items()]


def processors_by_state(mirror: Mirror, core: Dispatcher) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """Return how many processors are live, draining or lost, and how many slots of the live ones are taken.

    A draining one has no free slots: it takes nothing new.
    """
    states: Counter[str] = Counter(live=0, draining=0, lost=0)
    slots: Counter[str] = Counter(occupied=0, free=0)
    for id, processor in mirror.nouns(Collection.PROCESSORS).items():
        occupied = core.occupied(id)
        slots["occupied"] += occupied
        if not core.state.pool.is_live(id):
            states["lost"] += 1
        elif core.state.pool.is_draining(processor):
            states["draining"] += 1
        else:
            states["live"] += 1
            slots["free"] += max(processor.slots - occupied, 0)
    return states, slots


def _unable(mirror: Mirror, core: Dispatcher) -> Mapping[str, int]:
    live = [each for id, each in mirror.nouns(Collection.PROCESSORS).items() if core.state.pool.is_live(id)]
    return {
        "not_consuming": sum(not processor.consuming for processor in live),
        "resting": sum(processor.id in core.state.pool.rests for processor in live),
    }
