"""Check for what must never happen: mirrors that differ, and broken invariants of the database.

`DigestCheck` compares mirrors by their digests at *marks*, points of the stream that all replicas pass. Every
heartbeat of a replica is a mark: each replica notes its digest there, and publishes it with its next heartbeat. If a
replica reads a document outside the stream, it notes no digests until a heartbeat that it sent after the read has come
back. A replica that differs from the leader reads everything again, at most once in ten minutes. If it then still
differs, somebody has to act.

`InvariantChecker` scans the database at intervals while this replica leads. A scan is bounded, read-only and runs
alongside other work. It logs each finding once, and counts findings by kind: as a metric, and in the document of the
replica, so that all replicas can show the counts. Findings change no decision, and a failed scan is only logged.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable

import structlog

from hascheduler.check.finding import CheckReport, FindingKind
from hascheduler.daemon.loop.feeder import Feeder
from hascheduler.errors import StoreUnavailable
from hascheduler.mirror.mirror import Mark, Mirror
from hascheduler.model.values.instants import MonoMs, WallMs
from hascheduler.ports import Clock
from hascheduler.ports.invariant_scan import LIGHT, InvariantScan
from hascheduler.schema.replica import LastCheck, ReplicaStatus

log = structlog.get_logger(__name__)
_PUBLISHED, _NOTED = 8, 512  # more than the marks between two heartbeats of one replica
_SHOWN_FOR_MS, _AGAIN_MS = 60_000, 600_000


class DigestCheck:
    """Owner of the digests that this replica noted; ``leader`` returns the id of the leading replica."""

    def __init__(self, replica_id: str, version: str, clock: Clock, feed: Feeder, leader: Callable[[], str]) -> None:
        self._replica_id, self._version = replica_id, version
        self._clock, self._feed, self._leader = clock, feed, leader
        self._own: OrderedDict[str, str] = OrderedDict()
        self._differed: dict[str, MonoMs] = {}
        self._ahead, self._ahead_at, self._passed = -1, clock.mono_ms(), -1
        self._started_over_at: MonoMs | None = None

    @property
    def published(self) -> tuple[tuple[str, str], ...]:
        """Return the newest marks with their digests, for other replicas to compare."""
        return tuple(list(self._own.items())[-_PUBLISHED:])

    @property
    def differing(self) -> Collection[str]:
        """Return the ids of replicas whose mirrors differ from this one, or did within the last minute."""
        since_ms = self._clock.mono_ms() - _SHOWN_FOR_MS
        return [id for id, at_ms in self._differed.items() if at_ms > since_ms]

    def folded(self, mirror: Mirror, marks: Iterable[Mark]) -> None:
        """Note the digests at ``marks`` after the mirror has folded a batch of the stream."""
        for mark in marks:
            if mark.is_settled and mark.ahead == self._passed:
                self._own[mark.point] = mark.digest
        while len(self._own) > _NOTED:
            self._own.popitem(last=False)
        if not self._feed.complete or mirror.ahead != self._ahead:
            self._ahead, self._ahead_at, self._passed = mirror.ahead, self._clock.mono_ms(), -1
        elif self._feed.seen_through_ms is not None and self._feed.seen_through_ms > self._ahead_at:
            self._passed = mirror.ahead

    def seen(self, status: ReplicaStatus) -> None:
        """Compare the digests that another replica of the same version publishes with those noted here."""
        differs = any(self._own.get(point, digest) != digest for point, digest in status.marks)
        if not differs or status.id == self._replica_id or status.version != self._version:
            return
        if status.id not in self.differing:
            log.error("mirror_mismatch", other=status.id, marks=status.marks, own=self.published)
        now = self._differed[status.id] = self._clock.mono_ms()
        if status.id == self._leader() and (self._started_over_at is None or now - self._started_over_at >= _AGAIN_MS):
            self._started_over_at = now
            self._feed.start_over(f"its mirror differs from that of the leader {status.id}")

    def restarted(self) -> None:
        """Forget the digests, because the mirror starts over."""
        self._own.clear()
        self._passed = -1


_LOGGED_MAX = 20
"""How many new findings of one scan are logged one by one."""

Key = tuple[FindingKind, str]


class InvariantChecker:
    """Owner of the findings of the latest scan; it never scans if ``scan`` or the interval is None."""

    def __init__(self, scan: InvariantScan | None, interval_ms: int | None, *, leading: Callable[[], bool]) -> None:
        self._scan = scan
        self._interval_ms = interval_ms
        self._leading = leading
        self._known: frozenset[Key] = frozenset()
        self._last_check: LastCheck | None = None

    @property
    def last_check(self) -> LastCheck | None:
        """Return the latest check, or None if this replica does not lead or has not checked yet."""
        return self._last_check if self._leading() else None

    async def run(self) -> None:
        while self._scan is not None and self._interval_ms is not None:
            await asyncio.sleep(self._interval_ms / 1_000)
            if self._leading():
                await self.check(self._scan)
            else:
                self._last_check, self._known = None, frozenset()

    async def check(self, scan: InvariantScan) -> None:
        try:
            report = await scan.run(LIGHT)
        except StoreUnavailable as error:
            log.warning("check_unavailable", error=str(error))
            return
        except Exception:  # no stored document may end the leader
            log.exception("check_failed")
            return
        self._log_new(report)
        self._known = frozenset(finding.key for finding in report.findings)
        self._last_check = LastCheck(WallMs(report.at_ms), dict(report.counts))

    def _log_new(self, report: CheckReport) -> None:
        new = [finding for finding in report.findings if finding.key not in self._known]
        for finding in new[:_LOGGED_MAX]:
            log.error(
                "check_finding",
                kind=finding.kind.value,
                document=finding.document,
                what=finding.what,
                hint=finding.hint,
            )
        if len(new) > _LOGGED_MAX:
            log.error("check_findings", more=len(new) - _LOGGED_MAX, **report.counts)
        if self._known and not report.counts:
            log.info("check_clean", was=len(self._known))
