"""Route the facts of the stream: the core's to the inbox, in order; the few others to the parts that follow them."""

from dataclasses import dataclass, field

import structlog

from hascheduler.daemon.leadership.leader import Leader
from hascheduler.daemon.leadership.liveness import LeaderProbe
from hascheduler.daemon.leadership.standstill import StandstillWatch
from hascheduler.daemon.loop.checks import DigestCheck
from hascheduler.daemon.loop.cost_checkpoint import CostCheckpoint
from hascheduler.daemon.loop.feeder import Feeder
from hascheduler.daemon.loop.inbox import Inbox
from hascheduler.daemon.loop.replica_heartbeat import ReplicaHeartbeat
from hascheduler.daemon.outbound.event_log import EventLog, EventPublisher, EventTail
from hascheduler.daemon.outbound.waiters import Waiters
from hascheduler.daemon.readiness import outgrown_because
from hascheduler.dispatch.inputs import AccountsRestored, Input, Resynced
from hascheduler.mirror.changes import JobGone, JobSeen, JournalSeen, NounSeen, Quarantined, ScheduleSeen
from hascheduler.mirror.mirror import Folded
from hascheduler.model.collection import Collection
from hascheduler.model.job import JobState
from hascheduler.model.leadership import JournalHead, LeaseRecord
from hascheduler.model.values.instants import MonoMs

log = structlog.get_logger(__name__)


@dataclass(kw_only=True)
class FactRouter:
    """`loop.feeder.FactSink`. Owner of how far the inbox has everything written.

    ``ended`` wakes requests that wait for the end of a job, ``dispatched`` those that wait for work of a processor. If
    ``leases_streamed`` is False, replicas with other settings left the leases in the stream, and they are ignored.
    """

    scheduler: str
    replica_id: str
    feeder: Feeder
    heartbeat: ReplicaHeartbeat
    inbox: Inbox
    leader: Leader
    probe: LeaderProbe
    standstill: StandstillWatch
    checkpoint: CostCheckpoint
    digests: DigestCheck
    events: EventLog
    event_tail: EventTail
    event_publisher: EventPublisher
    ended: Waiters
    dispatched: Waiters
    leases_streamed: bool
    seen_through_ms: MonoMs | None = field(default=None, init=False)

    def latency_sensitive(self) -> bool:
        waited_for = self.ended.by_name or self.dispatched.by_name or self.events.followers
        return self.leader.in_term or bool(waited_for)

    async def take(self, folded: Folded) -> None:
        self.event_tail.take(folded.events)
        self.digests.folded(self.feeder.mirror, folded.marks)
        for_core: list[Input] = []
        heads: list[JournalHead] = []
        for fact in folded.facts:
            match fact:
                # Jobs first: nearly all facts are about them.
                case JobSeen(job):
                    if job.state is JobState.DISPATCHED and job.processor is not None:
                        self.dispatched.notify(job.processor)
                    for_core.append(fact)
                case ScheduleSeen():  # at a start there may be a million
                    for_core.append(fact)
                case JobGone(job_id):
                    self.ended.notify(job_id)
                    for_core.append(fact)
                case JournalSeen(head):
                    if head.name == self.scheduler:
                        heads.append(head)
                case NounSeen(Collection.LEASES, name, lease):
                    if self.leases_streamed and name == self.scheduler:
                        self.lease_seen(lease)
                case NounSeen(Collection.REPLICAS, replica_id, None):
                    self.heartbeat.gone(replica_id)
                    self.standstill.suspicion.gone(replica_id)
                case NounSeen(Collection.REPLICAS, replica_id, replica):
                    self.heartbeat.seen(replica)
                    self.standstill.sign_seen(replica_id)
                    self.digests.seen(replica)
                case Quarantined() | NounSeen(Collection.TOKENS):
                    pass  # the API reads tokens from the mirror
                case NounSeen(Collection.META):
                    self._warn_if_outgrown()
                case _:
                    for_core.append(fact)
        # The core's facts go first: a term may begin only once the inbox has all facts before its entry.
        await self.inbox.put(for_core)
        self.seen_through_ms = self.heartbeat.seen_through_ms
        for head in heads:
            self.leader.journal_seen(head)
            self.standstill.sign_seen(head.holder)
        self.standstill.stream_seen(self.seen_through_ms)

    async def restarted(self) -> None:
        self.leader.restarted()
        self.standstill.suspicion.restarted()
        self.event_tail.restarted()
        self.digests.restarted()
        self.ended.notify_all()
        self.inbox.put_now(Resynced())
        # Before the jobs, so that a dispatch that is in the accounts is not charged again.
        self.inbox.put_now(AccountsRestored(await self.checkpoint.load()))

    def completed(self) -> None:
        # Otherwise a client that follows events once this replica is ready would have to list all jobs again.
        self.event_tail.take([])

    def lease_seen(self, lease: LeaseRecord | None) -> None:
        """Take the lease from the stream or a poll."""
        self.leader.lease_seen(lease)
        self.probe.watch(lease)
        self.standstill.lease_seen(lease)
        if lease is not None and lease.holder not in ("", self.replica_id):
            self.event_publisher.other_leads()

    def _warn_if_outgrown(self) -> None:
        reason = outgrown_because(self.feeder.mirror)
        if reason:
            log.error("database_version_newer", reason=reason)
