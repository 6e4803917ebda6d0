"""Check for errors that must not happen: mirrors that differ, and broken invariants of the database.

Mirrors are compared by their digests at points of the stream that all pass. Such a *mark* is a beat of some replica:
each replica notes its digest there and publishes it with its next beat, which comes later in the same stream. After a
document was read outside the stream, digests count again once an own beat has returned that was sent after the read. A
replica that differs from the leader reads everything again, at most once in ten minutes; if it still differs then,
people have to act.

The leader scans the database at intervals: bounded, alongside its work, and read-only. Each finding is logged once,
and counted by kind: in the record of the replica, so that all replicas can show the counts, and as a metric. Findings
decide nothing, and a failed scan is only logged.
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
_PUBLISHED, _NOTED = 8, 512  # more are published than there are marks between two beats of one replica
_SHOWN_FOR_MS, _AGAIN_MS = 60_000, 600_000


class DigestCheck:
    """Owner of the digests of this mirror; ``leader`` returns the id of the replica that leads."""

    def __init__(self, replica_id: str, version: str, clock: Clock, feed: Feeder, leader: Callable[[], str]) -> None:
        self._replica_id, self._version = replica_id, version
        self._clock, self._feed, self._leader = clock, feed, leader
        self._own: OrderedDict[str, str] = OrderedDict()
        self._differed: dict[str, MonoMs] = {}
        self._ahead, self._ahead_at, self._passed = -1, clock.mono_ms(), -1
        self._started_over_at: MonoMs | None = None

    @property
    def published(self) -> tuple[tuple[str, str], ...]:
        """Return the newest marks, for the others."""
        return tuple(list(self._own.items())[-_PUBLISHED:])

    @property
    def differing(self) -> Collection[str]:
        """Return the ids of replicas whose mirrors differ from this one, or did recently: a repair may be quick."""
        since_ms = self._clock.mono_ms() - _SHOWN_FOR_MS
        return [id for id, at_ms in self._differed.items() if at_ms > since_ms]

    def folded(self, mirror: Mirror, marks: Iterable[Mark]) -> None:
        """Note that the mirror has folded more of the stream; called for each batch."""
        for mark in marks:
            if mark.is_settled and mark.ahead == self._passed:
                self._own[mark.point] = mark.digest
        while len(self._own) > _NOTED:
            self._own.popitem(last=False)
        if not self._feed.complete or mirror.ahead != self._ahead:
            self._ahead, self._ahead_at, self._passed = mirror.ahead, self._clock.mono_ms(), -1
        elif self._feed.heard_ms is not None and self._feed.heard_ms > self._ahead_at:
            self._passed = mirror.ahead

    def seen(self, status: ReplicaStatus) -> None:
        """Compare the marks that a replica publishes with those noted here, if both run the same version."""
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
        """Forget the digests: the mirror is a new one."""
        self._own.clear()
        self._passed = -1


_LOGGED_MAX = 20
"""How many new findings of one scan are logged one by one."""

Key = tuple[FindingKind, str]


class InvariantChecker:
    """Owner of the findings of the last scan. Without a ``scan`` or an interval it never scans."""

    def __init__(self, scan: InvariantScan | None, interval_ms: int | None, *, leading: Callable[[], bool]) -> None:
        self._scan = scan
        self._interval_ms = interval_ms
        self._leading = leading
        self._known: frozenset[Key] = frozenset()
        self._last_check: LastCheck | None = None

    @property
    def last_check(self) -> LastCheck | None:
        """Return the last check; None while this replica does not lead, or has not checked yet."""
        return self._last_check if self._leading() else None

    async def run(self) -> None:
        while self._scan is not None and self._interval_ms is not None:
            await asyncio.sleep(self._interval_ms / 1_000)
            if self._leading():
                await self.look(self._scan)
            else:
                self._last_check, self._known = None, frozenset()

    async def look(self, scan: InvariantScan) -> None:
        try:
            report = await scan.look(LIGHT)
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
