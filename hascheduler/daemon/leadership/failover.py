"""Report each change of leadership: its cause, how long there was no leader, and when the new leader first decided."""

import asyncio

import structlog
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_fixed

from hascheduler.errors import InvalidInput, StoreUnavailable
from hascheduler.model.leadership import JournalHead, LeaseRecord
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import FAILOVERS_MAX, Clock, FailoverStore
from hascheduler.schema.failover import Cause, Failover
from hascheduler.telemetry.metrics_replica import ReplicaMetrics

log = structlog.get_logger(__name__)

_patiently = AsyncRetrying(
    retry=retry_if_exception_type(StoreUnavailable), wait=wait_fixed(1), stop=stop_after_delay(300), reraise=True
)


class FailoverReporter:
    """Owner of what this replica saw of the leader before, and of its own reports until they are stored.

    The leader reports events here and waits for nothing. ``live``: the stream is not behind, so what it brings is new.
    """

    def __init__(
        self, name: str, replica_id: str, clock: Clock, metrics: ReplicaMetrics, store: FailoverStore | None = None
    ) -> None:
        self._name, self._replica_id = name, replica_id
        self._clock, self._metrics, self._store = clock, metrics, store
        self._to_store: asyncio.Queue[Failover] = asyncio.Queue(2 * FAILOVERS_MAX)
        self._lease: LeaseRecord | None = None
        self._newest_seq = self._term = 0
        self._dead = self._still = ""
        self._cause: Cause | None = None
        self._last_sign_ms: WallMs | None = None
        self._undecided: Failover | None = None

    def lease_known(self, record: LeaseRecord | None, *, live: bool) -> None:
        """Note the newest version of the lease, which may be the same as before."""
        before, self._lease = self._lease, record
        if record is None or record == before or record.holder == self._replica_id:
            return
        if record.holder == self._still:
            self._still = ""
        if live and before is not None:
            self._last_sign_ms = self._clock.wall_ms()

    def journal_seen(self, head: JournalHead, *, live: bool) -> None:
        """Note that the stream has delivered this entry."""
        before, self._newest_seq = self._newest_seq, max(self._newest_seq, head.seq)
        if live and 0 < before < head.seq and head.holder != self._replica_id:
            self._last_sign_ms = self._clock.wall_ms()

    def holder_died(self, holder: str) -> None:
        """Note that the leader's process is proved dead."""
        self._dead = holder
        if self._lease is not None and self._lease.holder == holder:
            self._last_sign_ms = self._clock.wall_ms()

    def holder_stalled(self, holder: str) -> None:
        """Note that the leader is suspected to have stalled, until it renews."""
        self._still = holder

    def challenged(self, expected: LeaseRecord | None) -> None:
        """Note that this replica is about to take the lease, if it still is as ``expected``."""
        holder = None if expected is None else expected.holder
        if holder == self._replica_id and self._cause is not None:
            return  # it had won without getting the answer
        causes = {self._still: Cause.STOOD_STILL, self._dead: Cause.DIED, "": Cause.RELEASED, None: Cause.DELETED}
        self._cause = causes.get(holder, Cause.LAPSED)
        if expected is not None and self._last_sign_ms is None:
            self._last_sign_ms = expected.renewed_at_ms

    def deciding(self, term: int) -> None:
        """Note that the core decides from now on."""
        cause = Cause.FIRST if self._cause is Cause.DELETED and term == 1 else self._cause or Cause.LAPSED
        now, since_ms = self._clock.wall_ms(), self._last_sign_ms
        gap_ms = None if since_ms is None else max(now - since_ms, 0)
        failover = self._undecided = Failover(
            shard=self._name, term=term, holder=self._replica_id, cause=cause, deciding_at_ms=now, gap_ms=gap_ms
        )
        self._cause, self._term = None, term
        log.info("failover", term=term, cause=cause.value, gap_ms=gap_ms)
        self._metrics.failed_over(failover)
        self._keep(failover)

    def journaled(self, term: int) -> None:
        """Note that a batch of decisions is in the journal."""
        if self._undecided is not None and self._term == term:
            decided = {"first_decision_at_ms": self._clock.wall_ms()}
            failover, self._undecided = self._undecided.model_copy(update=decided), None
            log.info("first_decision", term=term, deciding_for_ms=self._clock.wall_ms() - failover.deciding_at_ms)
            self._keep(failover)

    def ended(self, term: int) -> None:
        """Note that the term is over, for whatever reason."""
        if self._term == term:
            self._last_sign_ms = self._clock.wall_ms()

    def _keep(self, failover: Failover) -> None:
        if not self._to_store.full():  # the log has what does not fit
            self._to_store.put_nowait(failover)

    async def run(self) -> None:
        """Store reports until cancelled; without a store they are only logged."""
        while self._store is not None:
            failover = await self._to_store.get()
            try:
                await _patiently.copy()(self._store.save, failover)  # its state belongs to one call
            except (StoreUnavailable, InvalidInput) as error:
                log.warning("failover_write_failed", term=failover.term, error=str(error))
