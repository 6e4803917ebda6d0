"""Reports each change of leadership: a line in the log, metrics, a record for all replicas; and knows the newest one.

The replica that took over writes; the others read what it wrote, once they see the new term in their stream. None of it
holds anything up: what can't be stored is in the log, and is tried again, with an end.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import structlog
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

from hascheduler.daemon.leadership.failover_tracker import BEHIND_MAX_MS
from hascheduler.errors import InvalidInput, InvariantBroken, StoreUnavailable
from hascheduler.model.failover import Failover
from hascheduler.model.journal import EntryKind, JournalHead
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import FAILOVERS_MAX, FailoverStore, Journal
from hascheduler.telemetry.metrics_replica import ReplicaMetrics

log = structlog.get_logger(__name__)

_LOOK_EVERY_S = 1.0
_SAVE_FOR_S = 300.0
_LOOK_AGAIN_TIMES = 2 * BEHIND_MAX_MS // 1_000
"""For another replica's report: it must have been written by then, if that replica is still there."""
_TERMS_BACK_MAX = 20
"""Terms that ended before they decided anything, one after the other."""


class FailoverReporter:
    """Owner of the newest one. Without ``store`` only the log has them."""

    def __init__(
        self,
        shard: str,
        *,
        journal: Journal,
        store: FailoverStore | None,
        metrics: ReplicaMetrics,
    ) -> None:
        self._shard = shard
        self._journal = journal
        self._store = store
        self._metrics = metrics
        self._to_report: deque[Failover] = deque(maxlen=FAILOVERS_MAX)
        self._to_save: deque[Failover] = deque(maxlen=FAILOVERS_MAX)
        self._some_to_report = asyncio.Event()
        self._some_to_save = asyncio.Event()
        self._term_seen = 0
        self._later = asyncio.Event()
        self._newest: Failover | None = None

    @property
    def newest(self) -> Failover | None:
        """The report of the latest term of which this replica has one."""
        return self._newest

    def report(self, failover: Failover) -> None:
        """A takeover of this replica is over."""
        self._to_report.append(failover)
        self._some_to_report.set()

    def journal_seen(self, head: JournalHead) -> None:
        """There is a term, and an account of how it began will come."""
        if head.term > self._term_seen:
            self._term_seen = head.term
            self._later.set()

    async def run(self, close_if_over: Callable[[], None]) -> None:
        """Store reports until cancelled, and call ``close_if_over`` about once a second."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._reporting(close_if_over), name="failovers-reporting")
            if self._store is not None:
                tasks.create_task(self._saving(self._store), name="failovers-saving")
                tasks.create_task(self._following(self._store), name="failovers-following")

    # This replica's own

    async def _reporting(self, close_if_over: Callable[[], None]) -> None:
        while True:
            try:
                async with asyncio.timeout(_LOOK_EVERY_S):
                    await self._some_to_report.wait()
            except TimeoutError:
                close_if_over()
            self._some_to_report.clear()
            while self._to_report:
                failover = await self._completed(self._to_report.popleft())
                log.info("failover", **_fields(failover))
                self._metrics.failed_over(failover)
                self._know(failover)
                self._to_save.append(failover)
                self._some_to_save.set()

    async def _saving(self, store: FailoverStore) -> None:
        while True:
            await self._some_to_save.wait()
            self._some_to_save.clear()
            while self._to_save:
                failover = self._to_save.popleft()
                try:
                    await self._keep(store, failover)
                except (StoreUnavailable, InvalidInput) as error:
                    log.warning("failover_not_kept", term=failover.term, error=str(error))

    async def _keep(self, store: FailoverStore, failover: Failover) -> None:
        async for attempt in AsyncRetrying(
            retry=retry_if_exception_type(StoreUnavailable),
            wait=wait_random_exponential(multiplier=0.1, max=5),
            stop=stop_after_delay(_SAVE_FOR_S),
            reraise=True,
        ):
            with attempt:
                failover = await self._completed(failover)
                await store.save(failover)
        self._know(failover)

    async def _completed(self, failover: Failover) -> Failover:
        """With its last decision before, if that can be read now."""
        if failover.last_decision_at_ms is not None:
            return failover
        try:
            return replace(failover, last_decision_at_ms=await self._last_decision_at(failover.began_seq))
        except (StoreUnavailable, InvalidInput, InvariantBroken) as error:
            log.info("last_decision_unreadable", term=failover.term, error=str(error))
            return failover

    async def _last_decision_at(self, before_seq: int) -> WallMs | None:
        """By the clock of the leader that made it; None where there is none, or the journal was trimmed."""
        for seq in range(before_seq - 1, max(before_seq - 1 - _TERMS_BACK_MAX, 0), -1):
            entry = await self._journal.get(self._shard, seq)
            if entry is None:
                return None
            if entry.head.kind is EntryKind.DECISIONS:
                return entry.at_ms
        return None

    # Other replicas'

    async def _following(self, store: FailoverStore) -> None:
        while True:
            await self._later.wait()
            self._later.clear()
            for _ in range(_LOOK_AGAIN_TIMES):
                if self._newest is not None and self._newest.term >= self._term_seen:
                    break
                try:
                    for failover in await store.newest(self._shard, 1):
                        self._know(failover)
                except StoreUnavailable as error:
                    log.debug("failovers_unreadable", error=str(error))
                await asyncio.sleep(_LOOK_EVERY_S)

    def _know(self, failover: Failover) -> None:
        if self._newest is None or failover.term >= self._newest.term:
            self._newest = failover


def _fields(failover: Failover) -> dict[str, Any]:
    """Every field and figure, flat, for the log."""
    fields = asdict(failover)
    return {
        **{name: value for name, value in fields.items() if name != "backlog"},
        **fields["backlog"],
        "cause": failover.cause.value,
        "ended": failover.ended.value,
        "detection_ms": failover.detection_ms,
        "takeover_ms": failover.takeover_ms,
        "first_decision_ms": failover.first_decision_ms,
        "gap_ms": failover.gap_ms,
    }
