"""The whole replica on one screen: what there is, what flows where, one task a loop."""

import asyncio
from collections.abc import Callable, Sequence

from hascheduler.daemon.announcer import Announcer
from hascheduler.daemon.bells import Bells
from hascheduler.daemon.bookkeeper import Bookkeeper
from hascheduler.daemon.config import ReplicaConfig
from hascheduler.daemon.events import EventLog
from hascheduler.daemon.feeder import Feeder
from hascheduler.daemon.inbox import Inbox
from hascheduler.daemon.leader import Leader
from hascheduler.daemon.liveness import Liveness
from hascheduler.daemon.presence import Presence
from hascheduler.daemon.publisher import Publisher
from hascheduler.daemon.recorder import Recorder
from hascheduler.daemon.stepper import Stepper
from hascheduler.daemon.view import ReplicaView
from hascheduler.daemon.vigil import Vigil
from hascheduler.daemon.witness import Witness
from hascheduler.dispatch.dispatcher import Dispatcher
from hascheduler.dispatch.heartbeats import Heartbeats
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
    Seen,
    TokenGone,
    TokenSeen,
)
from hascheduler.model.job import JobRef, JobState
from hascheduler.model.replica import ReplicaStatus
from hascheduler.ports import (
    AccountStore,
    ChangeSource,
    ClaimStore,
    Clock,
    EventExchange,
    Journal,
    LeaseStore,
    ReplicaBoard,
    Transport,
)


class Replica:
    """One scheduler process but for its HTTP side, which reads `view`. `run` ends after `stop`.

    ``liveness`` is bound already; ``http_endpoint`` may be set until `run`. With ``exchange`` the leader publishes the
    events of jobs; `events` tells them to the HTTP side. ``arrived`` is told of each new job once the core counts it.
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
        liveness: Liveness,
        clock: Clock,
        exchange: EventExchange | None = None,
        arrived: Callable[[JobRef], None] = lambda _: None,
    ) -> None:
        self._config = config
        self._clock = clock
        self._arrived = arrived
        self._stopping = asyncio.Event()
        self.http_endpoint = ""
        self._inbox = Inbox()
        self._ended = Bells()
        self._promised = Bells()
        self._liveness = liveness
        self._presence = Presence(config, board, clock, self._describe)
        self._feeder = Feeder(
            source, self._presence, tell=self._route, restarted=self._restarted, hurried=lambda: self._leader.in_term
        )
        self._publisher = Publisher(transport, self._inbox)
        self._leader = Leader(
            config,
            Elector(_election(config), clock.mono_ms()),
            leases=leases,
            journal=journal,
            claims=claims,
            inbox=self._inbox,
            publisher=self._publisher,
            clock=clock,
            fit=lambda: self._feeder.complete and self._presence.fresh,
            progressing=self._progressing,
        )
        core = Dispatcher(config.dispatch)
        self._bookkeeper = Bookkeeper(core, accounts, clock, shard=config.shard, term=self._leader.deciding_term)
        recorder = Recorder(core, clock, term=self._leader.deciding_term)
        self._stepper = Stepper(
            core,
            heartbeats=Heartbeats(config.heartbeat_timeout_ms),
            inbox=self._inbox,
            publisher=self._publisher,
            recorder=recorder,
            clock=clock,
            office=self._leader.office,
            listening=lambda: self._presence.fresh,
            want=self._feeder.want,
            told=self._told,
        )
        self._vigil = Vigil(config.replica_id, self._leader.holder_died)
        self.events = EventLog()
        self._witness = Witness(self.events, self._feeder, source)
        self._announcer = Announcer(self.events, exchange, lambda: self._leader.leading)
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
            ]
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

    async def _route(self, facts: Sequence[Seen]) -> None:
        """The core's facts to the inbox, in order; the few others to those who wait for them."""
        self._witness.look()
        for_core: list[Input] = []
        for fact in facts:
            match fact:
                case LeaseSeen(lease) if lease.shard == self._config.shard:
                    self._leader.lease_seen(lease)
                    self._vigil.watch(lease)
                    if lease.holder not in ("", self._config.replica_id):
                        self._announcer.other_leads()
                case LeaseGone(shard) if shard == self._config.shard:
                    self._leader.lease_seen(None)
                    self._vigil.watch(None)
                case ReplicaSeen(replica):
                    self._presence.seen(replica)
                case LeaseSeen() | LeaseGone() | ReplicaGone() | JournalSeen() | Quarantined():
                    pass
                case TokenSeen() | TokenGone():
                    pass  # whoever asks looks into the mirror
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
        for fact in facts:
            if isinstance(fact, JournalSeen) and fact.head.shard == self._config.shard:
                self._leader.journal_seen(fact.head)

    def _told(self, inputs: Sequence[Input]) -> None:
        """The core has taken those in."""
        for told in inputs:
            if isinstance(told, JobSeen) and told.job.rev == 1:
                self._arrived(told.job)

    async def _restarted(self) -> None:
        self._leader.restarted()
        self._witness.restarted()
        self._ended.ring_all()
        self._inbox.put_now(Resynced())
        # Before the jobs, so that a dispatch that is in the accounts is not charged again.
        self._inbox.put_now(AccountsRestored(await self._bookkeeper.load()))

    def _progressing(self) -> bool:
        return self._clock.mono_ms() - self._stepper.turned_at_ms < self._config.renew_deadline_ms

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
