"""The whole replica on one screen: its parts, their connections, one task a loop."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from hascheduler import __version__
from hascheduler.daemon.config import ReplicaConfig, ReplicaPorts
from hascheduler.daemon.leadership.failover import FailoverReporter
from hascheduler.daemon.leadership.leader import Leader
from hascheduler.daemon.leadership.lease_poller import LeasePoller
from hascheduler.daemon.leadership.liveness import LeaderProbe
from hascheduler.daemon.leadership.standstill import StandstillWatch
from hascheduler.daemon.leadership.trusted_clock import TrustedClock
from hascheduler.daemon.loop.attempt_metrics import AttemptMetrics
from hascheduler.daemon.loop.batch_delay import PER_CHANGE_MS, PER_DECISION_MS, BatchDelay
from hascheduler.daemon.loop.checks import DigestCheck, InvariantChecker
from hascheduler.daemon.loop.cost_checkpoint import CostCheckpoint
from hascheduler.daemon.loop.feeder import Feeder
from hascheduler.daemon.loop.inbox import Inbox
from hascheduler.daemon.loop.processor_probe import ProcessorProbe
from hascheduler.daemon.loop.recorder import Recorder
from hascheduler.daemon.loop.replica_heartbeat import ReplicaHeartbeat
from hascheduler.daemon.loop.stepper import Stepper
from hascheduler.daemon.outbound.event_log import EventLog, EventPublisher, EventTail
from hascheduler.daemon.outbound.failure_reports import FailureReports
from hascheduler.daemon.outbound.publisher import MessageSpans, Publisher
from hascheduler.daemon.outbound.waiters import Waiters
from hascheduler.daemon.readiness import Readiness
from hascheduler.daemon.router import FactRouter
from hascheduler.daemon.view import ReplicaView
from hascheduler.dispatch.capacity.heartbeats import Heartbeats
from hascheduler.dispatch.dispatcher import Dispatcher
from hascheduler.dispatch.inputs import Input
from hascheduler.election.elector import Elector
from hascheduler.mirror.changes import JobSeen
from hascheduler.model.collection import Collection
from hascheduler.model.job import JobRef
from hascheduler.model.schema_version import NEWEST_VERSION
from hascheduler.model.values.zone_data import ZONE_DATA_VERSION
from hascheduler.schema.replica import ReplicaStatus


class Replica:
    """A replica without its HTTP side, which reads `view` and follows `events`. `run` ends after `stop`.

    The process runs the liveness endpoint. ``http_endpoint`` may be set and listeners to the arrival of jobs added
    until `run`.
    """

    def __init__(self, config: ReplicaConfig, ports: ReplicaPorts) -> None:
        self._config = config
        self.scheduler = config.scheduler
        self._stopping = asyncio.Event()
        self._arrival_listeners: list[Callable[[JobRef], None]] = []
        self.http_endpoint = ""
        batch_delay = partial(BatchDelay, max_ms=config.batch_delay_max_ms, neighbours=config.dispatch.part[1] - 1)
        clock = TrustedClock.over(ports.clock, config.clock_skew_max_ms)
        self._clock, metrics = clock, ports.metrics

        # In: the stream fills the mirror and the core's inbox.
        self._heartbeat = ReplicaHeartbeat(config, ports.board, clock)
        self.feeder = Feeder(ports.source, self._heartbeat, clock, batch_delay(PER_CHANGE_MS))
        self._inbox = Inbox()
        readiness = Readiness(self.feeder, self._heartbeat, clock)

        # Leading: the lease, the term, and the reports on both.
        spans = MessageSpans(ports.tracer, ports.traces)
        self._publisher = Publisher(ports.transport, self._inbox, spans, metrics, ports.fallback)
        self._failovers = FailoverReporter(config.scheduler, config.replica_id, clock, metrics, ports.failovers)
        self.leader = Leader(
            config,
            Elector(config.election, clock.mono_ms()),
            leases=ports.leases,
            journal=ports.journal,
            claims=ports.claims,
            inbox=self._inbox,
            publisher=self._publisher,
            clock=clock,
            can_lead=readiness.can_lead,
            clock_trusted=clock.is_trusted,
            hurry=self.feeder.hurry,
            due_ms=self.feeder.due_ms,
            metrics=metrics,
            observer=self._failovers,
        )
        ports.liveness.silence_while(self.is_out_of_touch)
        self._probe = LeaderProbe(config.replica_id, self.leader.holder_died, ports.wait_for_death)
        self._standstill = StandstillWatch(
            config,
            self.leader,
            clock,
            greets_in_time=ports.greets_in_time,
            beat_now=self._heartbeat.barrier,
            rounds=lambda: self.stepper.rounds,
            metrics=metrics,
        )
        self._processor_probe = ProcessorProbe(self._inbox.put_now, ports.wait_for_death)

        # Out: events of jobs, and requests that wait for them.
        self.events = EventLog()
        self._event_tail = EventTail(self.events, self.feeder, ports.source)
        self._event_publisher = EventPublisher(self.events, ports.exchange, self.leader.leads)
        self._ended, self._dispatched = Waiters(), Waiters()

        # The core, the loop that turns it, and the records of it.
        core = self._core = Dispatcher(config.dispatch)
        self._failure_reports = FailureReports(
            jobs=ports.jobs,
            events=self.events,
            nouns=self.nouns,
            pending=core.pending,
            leading=self.leader.leads,
            clock=clock,
            metrics=metrics,
            shards=config.dispatch.part[1],
        )
        recorder = Recorder(core, clock, term=self.leader.deciding_term)
        self._checkpoint = CostCheckpoint(
            core, ports.accounts, clock, name=config.scheduler, term=self.leader.deciding_term
        )
        self._digests = DigestCheck(config.replica_id, __version__, clock, self.feeder, lambda: self.lease_holder)
        self._router = FactRouter(
            scheduler=config.scheduler,
            replica_id=config.replica_id,
            feeder=self.feeder,
            heartbeat=self._heartbeat,
            inbox=self._inbox,
            leader=self.leader,
            probe=self._probe,
            standstill=self._standstill,
            checkpoint=self._checkpoint,
            digests=self._digests,
            events=self.events,
            event_tail=self._event_tail,
            event_publisher=self._event_publisher,
            ended=self._ended,
            dispatched=self._dispatched,
            leases_streamed=ports.leases_streamed,
        )
        self._attempts = AttemptMetrics(metrics, self.leader.leads)
        self.stepper = Stepper(
            core=core,
            heartbeats=Heartbeats(config.heartbeat_timeout_ms, config.retry_period_ms),
            inbox=self._inbox,
            publisher=self._publisher,
            recorder=recorder,
            clock=clock,
            active_committer=self.leader.active_committer,
            own_heartbeat=self._heartbeat,
            seen_through_ms=lambda: self._router.seen_through_ms,
            want=self.feeder.want,
            seen=self._core_has_seen,
            decided=self._attempts.decided,
            metrics=metrics,
            batch_delay=batch_delay(PER_DECISION_MS),
        )

        # Besides: checks of the lease and the database, and the view for people.
        self._lease_poller = (
            None
            if ports.leases_streamed
            else LeasePoller(
                ports.leases,
                self.leader,
                name=config.scheduler,
                retry_period_ms=config.retry_period_ms,
                seen=self._router.lease_seen,
            )
        )
        self._invariants = InvariantChecker(ports.scan, config.audit_interval_ms, leading=self.leader.leads)
        self.view = ReplicaView(
            config=config,
            feeder=self.feeder,
            heartbeat=self._heartbeat,
            readiness=readiness,
            leader=self.leader,
            stepper=self.stepper,
            core=core,
            recorder=recorder,
            publisher=self._publisher,
            invariants=self._invariants,
            digests=self._digests,
            events=self.events,
            ended=self._ended,
            dispatched=self._dispatched,
            clock=clock,
            is_stopping=self._stopping.is_set,
        )

    def on_job_arrival(self, listener: Callable[[JobRef], None]) -> None:
        """Call ``listener`` with each new job once the core counts it."""
        self._arrival_listeners.append(listener)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as loops:
            running = [
                loops.create_task(self.feeder.run(self._router), name="feeder"),
                loops.create_task(self._heartbeat.run(self._status), name="heartbeat"),
                loops.create_task(self._publisher.run(self.leader.deciding_term), name="publisher"),
                loops.create_task(self.stepper.run(), name="stepper"),
                loops.create_task(self.leader.run(self._progressing), name="leader"),
                loops.create_task(self._checkpoint.run(), name="cost-checkpoint"),
                loops.create_task(self._probe.run(), name="leader-probe"),
                loops.create_task(self._standstill.run(), name="standstill"),
                loops.create_task(self._processor_probe.run(), name="processor-probe"),
                loops.create_task(self._event_tail.run(), name="event-tail"),
                loops.create_task(self._event_publisher.run(), name="event-publisher"),
                loops.create_task(self._failure_reports.run(), name="failure-reports"),
                loops.create_task(self._failovers.run(), name="failovers"),
                loops.create_task(self._invariants.run(), name="invariants"),
            ]
            if self._lease_poller is not None:
                running.append(loops.create_task(self._lease_poller.run(), name="lease-poller"))
            await self._stopping.wait()
            self.events.close()
            self._ended.close()
            self._dispatched.close()
            await self._checkpoint.save()
            await self.leader.resign()
            for task in running:
                task.cancel()
        await self._heartbeat.leave()

    def is_out_of_touch(self) -> bool:
        """Return `Leader.is_out_of_touch`: this process then greets no connection."""
        return self.leader.is_out_of_touch()

    def nouns(self, collection: Collection) -> Mapping[str, Any]:
        """Return what the mirror has of that collection, by name; read it before the next await."""
        return self.feeder.mirror.nouns(collection)

    def short_of(self) -> frozenset[str]:
        """Return `Dispatcher.short_of`, even if this replica does not lead."""
        return self._core.short_of(self._clock.wall_ms())

    def live_replicas(self) -> Sequence[ReplicaStatus]:
        """Return the replicas whose beats still come, including this one."""
        replicas: Mapping[str, ReplicaStatus] = self.feeder.mirror.nouns(Collection.REPLICAS)
        return [status for id, status in replicas.items() if not self._heartbeat.is_silent(id)]

    @property
    def lease_holder(self) -> str:
        """Return the id of the replica that holds the lease, as far as is known here; "" if none does."""
        return "" if self.leader.lease is None else self.leader.lease.holder

    def forget(self) -> None:
        """Drop what takes memory, once `run` has ended in a process that goes on.

        The parts of a replica refer to each other, so they stay until the garbage collection, which may leave them out
        (`hascheduler.gc_tuning.without_collecting`).
        """
        self.feeder.forget()
        self._core.forget()
        self.events.forget()

    def stop(self) -> None:
        """Begin to end in good order: hand the lease over first."""
        self._stopping.set()

    def _core_has_seen(self, inputs: Sequence[Input]) -> None:
        self._attempts.seen(inputs)
        self._processor_probe.seen(inputs)
        for seen in inputs:
            if isinstance(seen, JobSeen) and seen.job.rev == 1:
                for listener in self._arrival_listeners:
                    listener(seen.job)

    def _progressing(self) -> bool:
        is_turning = self._clock.mono_ms() - self.stepper.turned_at_ms < self._config.renew_deadline_ms
        return is_turning and not self._standstill.own_loop_hangs

    def _status(self, beat: int) -> ReplicaStatus:
        self.view.observe_leader()
        self.view.history()  # so that it has no gap while nobody asks
        return ReplicaStatus(
            id=self._config.replica_id,
            name=self._config.name,
            beat=beat,
            started_at_ms=self._config.started_at_ms,
            http_endpoint=self.http_endpoint,
            liveness_endpoint=self._config.liveness_endpoint,
            ready=self.view.ready,
            stream_lag_ms=self._heartbeat.lag_ms,
            position=self.feeder.position,
            digest=self.feeder.mirror.digest,
            quarantined=len(self.feeder.mirror.quarantine),
            version=__version__,
            reads=NEWEST_VERSION,
            marks=self._digests.published,
            last_check=self._invariants.last_check,
            decision_lag_ms=self.stepper.decision_lag_ms,
            broker_accepting=self._publisher.transport.accepting,
            zone_data=ZONE_DATA_VERSION,
        )
