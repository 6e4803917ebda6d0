"""Reports each change of leadership: why it came, how long nobody led, and when the new leader first decided.

The leader calls a `FailoverReporter` as things happen. The replica that took over logs its report, counts it and stores
it; nothing waits for that.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import asdict, replace

import structlog
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_fixed

from hascheduler.dispatch.inputs import Input, TermBegan
from hascheduler.dispatch.step import Step
from hascheduler.errors import InvalidInput, StoreUnavailable
from hascheduler.model.failover import Cause, Failover
from hascheduler.model.journal import JournalHead
from hascheduler.model.lease import LeaseRecord
from hascheduler.model.values.instants import MonoMs
from hascheduler.ports import Clock, FailoverStore
from hascheduler.telemetry.metrics_replica import ReplicaMetrics

log = structlog.get_logger(__name__)

_RETRY_S, _GIVE_UP_S = 1.0, 300.0


class FailoverReporter:
    """Owner of what this replica saw of the leader before, and of the reports that are to be stored.

    No method but `run` awaits, does I/O or raises. ``live``: the stream is not behind, so what it brings is new.
    """

    def __init__(
        self, shard: str, replica_id: str, clock: Clock, metrics: ReplicaMetrics, store: FailoverStore | None = None
    ) -> None:
        self._shard, self._replica_id = shard, replica_id
        self._clock, self._metrics, self._store = clock, metrics, store
        self._to_store: asyncio.Queue[Failover] = asyncio.Queue()
        self._lease: LeaseRecord | None = None
        self._newest_seq = 0
        self._dead = self._still = ""
        self._last_sign_at: MonoMs | None = None
        self._cause: Cause | None = None
        self._renewed_at_ms: int | None = None
        self._term = 0
        self._deciding_at = MonoMs(0)
        self._unreported: Failover | None = None

    # The leader before

    def lease_known(self, record: LeaseRecord | None, *, live: bool) -> None:
        """Note the newest version of the lease, which may be the same as before."""
        before, self._lease = self._lease, record
        if record is None or record == before or record.holder == self._replica_id:
            return
        if record.holder == self._still:
            self._still = ""
        if live and before is not None:
            self._last_sign_at = self._clock.mono_ms()

    def journal_seen(self, head: JournalHead, *, live: bool) -> None:
        """Note that the stream has delivered this entry."""
        before, self._newest_seq = self._newest_seq, max(self._newest_seq, head.seq)
        if live and 0 < before < head.seq and head.holder != self._replica_id:
            self._last_sign_at = self._clock.mono_ms()

    def holder_died(self, holder: str) -> None:
        """Note that the leader's process is proved dead."""
        self._dead = holder
        if self._lease is not None and self._lease.holder == holder:
            self._last_sign_at = self._clock.mono_ms()

    def holder_stands_still(self, holder: str) -> None:
        """Note that the leader is suspected to stand still, until it renews."""
        self._still = holder

    # This replica's term

    def challenged(self, expected: LeaseRecord | None) -> None:
        """This replica is about to take the lease, if it still is as ``expected``."""
        if expected is not None and expected.holder == self._replica_id:
            # Its own, won without an answer, or no longer trusted.
            self._cause = self._cause or Cause.LAPSED
            return
        holder = None if expected is None else expected.holder
        self._renewed_at_ms = None if expected is None else expected.renewed_at_ms
        causes = {self._still: Cause.STOOD_STILL, self._dead: Cause.DIED, "": Cause.RELEASED, None: Cause.DELETED}
        self._cause = causes.get(holder, Cause.LAPSED)

    def deciding(self, term: int) -> None:
        """The core decides from now on."""
        cause = Cause.FIRST if self._cause is Cause.DELETED and term == 1 else self._cause or Cause.LAPSED
        self._cause, self._term, self._deciding_at = None, term, self._clock.mono_ms()
        now = self._clock.wall_ms()
        gap_ms = None
        if self._last_sign_at is not None:
            gap_ms = self._deciding_at - self._last_sign_at
        elif self._renewed_at_ms is not None:
            gap_ms = max(now - self._renewed_at_ms, 0)
        self._unreported = Failover(self._shard, term, self._replica_id, cause, now, gap_ms)

    def stepped(self, inputs: Iterable[Input], step: Step) -> None:
        """The core took a step while this replica leads; if the term's first one decides nothing, nothing was due."""
        if self._unreported is not None and not step.decisions and any(isinstance(one, TermBegan) for one in inputs):
            self._report(self._unreported)

    def journaled(self, term: int) -> None:
        """A batch of decisions is in the journal."""
        if self._unreported is not None and self._unreported.term == term:
            first_decision_ms = self._clock.mono_ms() - self._deciding_at
            self._report(replace(self._unreported, first_decision_ms=first_decision_ms))

    def ended(self, term: int) -> None:
        """The term is over, for whatever reason."""
        if self._term == term:
            self._last_sign_at = self._clock.mono_ms()
            if self._unreported is not None:
                self._report(self._unreported)

    def _report(self, failover: Failover) -> None:
        self._unreported = None
        log.info("failover", **{**asdict(failover), "cause": failover.cause.value})
        self._metrics.failed_over(failover)
        self._to_store.put_nowait(failover)

    async def run(self) -> None:
        """Store reports until cancelled; without a store they are in the log alone."""
        while self._store is not None:
            failover = await self._to_store.get()
            retrying = AsyncRetrying(
                retry=retry_if_exception_type(StoreUnavailable),
                wait=wait_fixed(_RETRY_S),
                stop=stop_after_delay(_GIVE_UP_S),
                reraise=True,
            )
            try:
                await retrying(self._store.save, failover)
            except (StoreUnavailable, InvalidInput) as error:
                log.warning("failover_not_stored", term=failover.term, error=str(error))
