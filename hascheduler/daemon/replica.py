"""The whole replica on one screen: what there is, what flows where, one task a loop."""

import asyncio
from collections.abc import Callable, Sequence

import structlog

from hascheduler import __version__
from hascheduler.daemon.config import ReplicaConfig
from hascheduler.daemon.leadership.failover_reporter import FailoverReporter
from hascheduler.daemon.leadership.failover_tracker import FailoverTracker
from hascheduler.daemon.leadership.leader import Leader
from hascheduler.daemon.leadership.lease_poller import LeasePoller
from hascheduler.daemon.leadership.liveness import LeaderProbe, LivenessServer, WaitForDeath
from hascheduler.daemon.leadership.trusted_clock import TrustedClock
from hascheduler.daemon.loop.attempt_metrics import AttemptMetrics
from hascheduler.daemon.loop.cost_checkpoint import CostCheckpoint
from hascheduler.daemon.loop.digest_check import DigestCheck
from hascheduler.daemon.loop.feeder import Feeder
from hascheduler.daemon.loop.inbox import Inbox
from hascheduler.daemon.loop.invariant_checker import InvariantChecker
from hascheduler.daemon.loop.recorder import Recorder
from hascheduler.daemon.loop.replica_heartbeat import ReplicaHeartbeat
from hascheduler.daemon.loop.stepper import Stepper
from hascheduler.daemon.outbound.event_log import EventLog
from hascheduler.daemon.outbound.event_publisher import EventPublisher
from hascheduler.daemon.outbound.event_tail import EventTail
from hascheduler.daemon.outbound.message_spans import MessageSpans
from hascheduler.daemon.outbound.publisher import Publisher
from hascheduler.daemon.outbound.waiters import Waiters
from hascheduler.daemon.readiness import outgrown_because
from hascheduler.daemon.view import ReplicaView
from hascheduler.dispatch.capacity.heartbeats import Heartbeats
from hascheduler.dispatch.decisions import Fire
from hascheduler.dispatch.dispatcher import Dispatcher
from hascheduler.dispatch.inputs import AccountsRestored, Input, Resynced
from hascheduler.election.config import ElectionConfig
from hascheduler.election.elector import Elector
from hascheduler.mirror.changes import (
    JobGone,
    JobSeen,
    JournalSeen,
    LeaseGone,
    LeaseSeen,
    Quarantined,
    ReplicaGone,
    ReplicaSeen,
    SchemaGone,
    SchemaSeen,
    TokenGone,
    TokenSeen,
)
from hascheduler.mirror.mirror import Folded
from hascheduler.model.collection import Collection
from hascheduler.model.instants import MonoMs
from hascheduler.model.job import JobRef, JobState
from hascheduler.model.lease import LeaseRecord
from hascheduler.model.replica import ReplicaStatus
from hascheduler.model.schedule import ScheduleRef
from hascheduler.model.schema_version import NEWEST_VERSION
from hascheduler.ports import (
    AccountStore,
    ChangeSource,
    ClaimStore,
    Clock,
    EventExchange,
    FailoverStore,
    JobTraces,
    Journal,
    LeaseStore,
    ReplicaBoard,
    Transport,
)
from hascheduler.ports.invariant_scan import InvariantScan
from hascheduler.telemetry.metrics_replica import ReplicaMetrics
from hascheduler.telemetry.tracing import NO_TRACING, Tracer
from hascheduler.triggers import due_ms

log = structlog.get_logger(__name__)


class Replica:
    """One scheduler process but for its HTTP side, which reads `view`. `run` ends after `stop`.

    ``liveness`` is bound already; ``outlive`` is how others' is watched; ``http_endpoint`` may be set until `run`. With
    ``exchange`` the leader publishes the events of jobs; `events` tells them to the HTTP side. ``arrived`` is told of
    each new job once the core counts it. ``leases_streamed``: every write to ``leases`` comes by in the stream. Without
    ``failovers`` changes of leadership are told to the log alone. The leader looks through the database with ``scan``
    every ``audit_interval_ms``, where there are both.
    """

    def __init__(
        self,
        config: ReplicaConfig,
        *,
        source: ChangeSource,
        leases: LeaseStore,
        journal: Journal,
        claims: ClaimStore,
        accounts: AccountStore,
        board: ReplicaBoard,
        transport: Transport,
        liveness: LivenessServer,
        clock: Clock,
        outlive: WaitForDeath | None = None,
        exchange: EventExchange | None = None,
        tracer: Tracer = NO_TRACING,
        traces: JobTraces | None = None,
        failovers: FailoverStore | None = None,
        arrived: Callable[[JobRef], None] = lambda _: None,
        metrics: ReplicaMetrics | None = None,
        leases_streamed: bool = True,
        scan: InvariantScan | None = None,
        audit_interval_ms: int | None = None,
    ) -> None:
        if not isinstance(clock, TrustedClock):
            clock = TrustedClock(clock, config.clock_skew_max_ms)
        self._config = config
        self._clock = clock
        self._arrived = arrived
        self._stopping = asyncio.Event()
        self.http_endpoint = ""
        self._inbox = Inbox()
        self._ended = Waiters()
        self._promised = Waiters()
        self._liveness = liveness
        self._heard_ms: MonoMs | None = None
        """Whatever was written before then is in the inbox, or was."""
        self._presence = ReplicaHeartbeat(config, board, clock, self._describe)
        self._feeder = Feeder(
            source,
            self._presence,
            tell=self._route,
            restarted=self._restarted,
            hurried=self._is_hurried,
            clock=clock,
        )
        spans = MessageSpans(tracer, traces, lambda: self._leader.deciding_term())  # noqa: PLW0108  # made after it
        metrics = metrics or ReplicaMetrics()
        self._publisher = Publisher(transport, self._inbox, spans, metrics)
        account = FailoverTracker(
            config.shard,
            config.replica_id,
            clock,
            lambda failover: self._failovers.tell(failover),  # noqa: PLW0108  # made after it
            self._due_ms,
        )
        self._failovers = FailoverReporter(
            config.shard, journal=journal, store=failovers, look=account.look, metrics=metrics
        )
        self._leader = Leader(
            config,
            Elector(_election(config), clock.mono_ms()),
            leases=leases,
            journal=journal,
            claims=claims,
            inbox=self._inbox,
            publisher=self._publisher,
            clock=clock,
            fit=self._fit,
            timely=lambda: not clock.wrong_because,
            progressing=self._progressing,
            metrics=metrics,
            due_ms=self._due_ms,
            failovers=account,
            hurry=self._feeder.hurry,
        )
        self._attempt_watch = AttemptMetrics(metrics, lambda: self._leader.leading)
        core = Dispatcher(config.dispatch)
        self._bookkeeper = CostCheckpoint(core, accounts, clock, shard=config.shard, term=self._leader.deciding_term)
        recorder = Recorder(core, clock, term=self._leader.deciding_term)
        self._stepper = Stepper(
            core,
            heartbeats=Heartbeats(config.heartbeat_timeout_ms, config.retry_period_ms),
            inbox=self._inbox,
            publisher=self._publisher,
            recorder=recorder,
            clock=clock,
            office=self._leader.office,
            listening=lambda: self._presence.fresh,
            heard=lambda: self._heard_ms,
            want=self._feeder.want,
            told=self._told,
            decided=self._attempt_watch.decided,
            stepped=account.stepped,
            metrics=metrics,
        )
        self._lease_watch = (
            None
            if leases_streamed
            else LeasePoller(
                leases,
                self._leader,
                shard=config.shard,
                retry_period_ms=config.retry_period_ms,
                tell=self._lease_told,
            )
        )
        self._vigil = LeaderProbe(config.replica_id, self._leader.holder_died, outlive)
        self.events = EventLog()
        self._witness = EventTail(self.events, self._feeder, source)
        self._announcer = EventPublisher(self.events, exchange, lambda: self._leader.leading)
        self._auditor = InvariantChecker(scan, audit_interval_ms, leading=lambda: self._leader.leading)
        self._concord = DigestCheck(
            config,
            __version__,
            clock,
            heard_ms=lambda: self._presence.heard_ms,
            complete=lambda: self._feeder.complete,
            leading=lambda: self._leader.leading,
            start_over=self._feeder.start_over,
        )
        self.view = ReplicaView(
            config,
            feeder=self._feeder,
            presence=self._presence,
            leader=self._leader,
            stepper=self._stepper,
            core=core,
            recorder=recorder,
            ended=self._ended,
            promised=self._promised,
            clock=clock,
            stopping=self._stopping.is_set,
            accepting=lambda: self._publisher.accepting,
            time_unknown_because=lambda: clock.wrong_because,
            failover=lambda: self._failovers.newest,
            audited=lambda: self._auditor.audited,
            differing=lambda: self._concord.differing,
        )

    async def run(self) -> None:
        async with asyncio.TaskGroup() as loops:
            running = [
                loops.create_task(self._feeder.run(), name="feeder"),
                loops.create_task(self._presence.run(), name="presence"),
                loops.create_task(self._publisher.run(), name="publisher"),
                loops.create_task(self._stepper.run(), name="stepper"),
                loops.create_task(self._leader.run(), name="leader"),
                loops.create_task(self._bookkeeper.run(), name="bookkeeper"),
                loops.create_task(self._liveness.run(), name="liveness"),
                loops.create_task(self._vigil.run(), name="vigil"),
                loops.create_task(self._witness.run(), name="witness"),
                loops.create_task(self._announcer.run(), name="announcer"),
                loops.create_task(self._failovers.run(), name="failovers"),
                loops.create_task(self._auditor.run(), name="auditor"),
            ]
            if self._lease_watch is not None:
                running.append(loops.create_task(self._lease_watch.run(), name="lease-watch"))
            await self._stopping.wait()
            self.events.close()
            self._ended.close()
            self._promised.close()
            await self._bookkeeper.save()
            await self._leader.resign()
            for task in running:
                task.cancel()
        await self._presence.leave()

    def stop(self) -> None:
        """Begin to end in good order: hand the lease over first."""
        self._stopping.set()

    # Where the facts go

    async def _route(self, folded: Folded) -> None:
        """The core's facts to the inbox, in order; the few others to those who wait for them."""
        self._witness.look(folded.events)
        self._concord.folded(self._feeder.mirror, folded.marks)
        for_core: list[Input] = []
        for fact in folded.facts:
            match fact:
                case LeaseSeen() | LeaseGone() if self._lease_watch is not None:
                    pass  # one that was left in the database by replicas with other settings
                case LeaseSeen(lease) if lease.shard == self._config.shard:
                    self._lease_told(lease)
                case LeaseGone(shard) if shard == self._config.shard:
                    self._lease_told(None)
                case ReplicaSeen(replica):
                    self._presence.seen(replica)
                    self._concord.seen(replica)
                case ReplicaGone(replica_id):
                    self._concord.gone(replica_id)
                case LeaseSeen() | LeaseGone() | JournalSeen() | Quarantined():
                    pass
                case TokenSeen() | TokenGone():
                    pass  # whoever asks looks into the mirror
                case SchemaSeen() | SchemaGone():
                    self._tell_if_outgrown()
                case JobGone(job_id):
                    self._ended.ring(job_id)
                    for_core.append(fact)
                case JobSeen(job):
                    if job.state is JobState.DISPATCHED and job.processor is not None:
                        self._promised.ring(job.processor)
                    for_core.append(fact)
                case _:
                    for_core.append(fact)
        # The core's facts go first: a term may begin only after everything before its entry has been told.
        await self._inbox.put(for_core)
        self._heard_ms = self._presence.heard_ms
        for fact in folded.facts:
            if isinstance(fact, JournalSeen) and fact.head.shard == self._config.shard:
                self._leader.journal_seen(fact.head)
                self._failovers.journal_seen(fact.head)

    def _is_hurried(self) -> bool:
        """Whether somebody waits for what the stream brings."""
        waited_for = self._ended.names or self._promised.names or self.events.followers
        return self._leader.in_term or bool(waited_for)

    def _lease_told(self, lease: LeaseRecord | None) -> None:
        self._leader.lease_seen(lease)
        self._vigil.watch(lease)
        if lease is not None and lease.holder not in ("", self._config.replica_id):
            self._announcer.other_leads()

    def _told(self, inputs: Sequence[Input]) -> None:
        """The core has taken those in."""
        self._attempt_watch.told(inputs)
        for told in inputs:
            if isinstance(told, JobSeen) and told.job.rev == 1:
                self._arrived(told.job)

    def _due_ms(self, fire: Fire) -> int:
        schedule: ScheduleRef | None = self._feeder.mirror.nouns(Collection.SCHEDULES).get(fire.schedule)
        return fire.nominal_ms if schedule is None else due_ms(fire.schedule, schedule.trigger, fire.nominal_ms)

    async def _restarted(self) -> None:
        self._leader.restarted()
        self._witness.restarted()
        self._concord.restarted()
        self._ended.ring_all()
        self._inbox.put_now(Resynced())
        # Before the jobs, so that a dispatch that is in the accounts is not charged again.
        self._inbox.put_now(AccountsRestored(await self._bookkeeper.load()))

    def _fit(self) -> bool:
        return (
            self._feeder.complete
            and self._presence.fresh
            and not self._clock.wrong_because
            and not outgrown_because(self._feeder.mirror)
        )

    def _progressing(self) -> bool:
        return self._clock.mono_ms() - self._stepper.turned_at_ms < self._config.renew_deadline_ms

    def _tell_if_outgrown(self) -> None:
        reason = outgrown_because(self._feeder.mirror)
        if reason:
            log.error("database_outgrown", reason=reason)

    def _describe(self, beat: int) -> ReplicaStatus:
        return ReplicaStatus(
            id=self._config.replica_id,
            name=self._config.name,
            beat=beat,
            started_at_ms=self._config.started_at_ms,
            http_endpoint=self.http_endpoint,
            liveness_endpoint=self._config.liveness_endpoint,
            ready=self.view.ready,
            stream_lag_ms=self._presence.lag_ms,
            position=self._feeder.position,
            digest=self._feeder.mirror.digest,
            quarantined=len(self._feeder.mirror.quarantine),
            version=__version__,
            reads=NEWEST_VERSION,
            marks=self._concord.published,
            audited=self._auditor.audited,
        )


def _election(config: ReplicaConfig) -> ElectionConfig:
    return ElectionConfig(
        shard=config.shard,
        candidate_id=config.replica_id,
        endpoint=config.liveness_endpoint,
        lease_duration_ms=config.lease_duration_ms,
        renew_deadline_ms=config.renew_deadline_ms,
        retry_period_ms=config.retry_period_ms,
    )
