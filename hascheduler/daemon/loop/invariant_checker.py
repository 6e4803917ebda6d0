"""The leader's own look through the database, every now and then: bounded, beside its work, and read-only.

Each finding is logged once, and counted by kind: in the replica's own record, so that all replicas can show the counts,
and as a metric. Nothing is decided by what it finds, and a look that fails is logged and left at that.
"""

import asyncio
from collections.abc import Callable

import structlog

from hascheduler.check.finding import CheckReport, FindingKind
from hascheduler.errors import StoreUnavailable
from hascheduler.model.replica import LastCheck
from hascheduler.model.values.instants import WallMs
from hascheduler.ports.invariant_scan import LIGHT, InvariantScan

log = structlog.get_logger(__name__)

_LOGGED_MAX = 20
"""New findings of one look that are logged one by one."""

Key = tuple[FindingKind, str]


class InvariantChecker:
    """Owner of what the last look found. Without a ``scan`` or an interval it never looks."""

    def __init__(self, scan: InvariantScan | None, interval_ms: int | None, *, leading: Callable[[], bool]) -> None:
        self._scan = scan
        self._interval_ms = interval_ms
        self._leading = leading
        self._known: frozenset[Key] = frozenset()
        self._last_check: LastCheck | None = None

    @property
    def last_check(self) -> LastCheck | None:
        """None while this replica does not lead, or has not looked yet."""
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
            log.warning("audit_unanswered", error=str(error))
            return
        except Exception:  # whatever is stored, it must not end the leader
            log.exception("audit_failed")
            return
        self._log_new(report)
        self._known = frozenset(finding.key for finding in report.findings)
        self._last_check = LastCheck(WallMs(report.at_ms), dict(report.counts))

    def _log_new(self, report: CheckReport) -> None:
        new = [finding for finding in report.findings if finding.key not in self._known]
        for finding in new[:_LOGGED_MAX]:
            log.error(
                "audit_finding",
                kind=finding.kind.value,
                document=finding.document,
                what=finding.what,
                hint=finding.hint,
            )
        if len(new) > _LOGGED_MAX:
            log.error("audit_findings", more=len(new) - _LOGGED_MAX, **report.counts)
        if self._known and not report.counts:
            log.info("audit_clean", was=len(self._known))
