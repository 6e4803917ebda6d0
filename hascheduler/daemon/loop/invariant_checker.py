"""The leader's own look through the database, every now and then: bounded, beside its work, and read-only.

What it finds is told once in the log, and as counts by kind: with the replica's account of itself, so that all replicas
can show them, and as a metric. It never decides by what it finds, and a look that fails is told and left at that.
"""

import asyncio
from collections.abc import Callable

import structlog

from hascheduler.check.finding import CheckReport, FindingKind
from hascheduler.errors import StoreUnavailable
from hascheduler.model.instants import WallMs
from hascheduler.model.replica import LastCheck
from hascheduler.ports.invariant_scan import LIGHT, InvariantScan

log = structlog.get_logger(__name__)

_TOLD_MAX = 20
"""New findings of one look that are told one by one."""

Key = tuple[FindingKind, str]


class InvariantChecker:
    """Owner of what the last look found. Without a ``scan`` or an interval it never looks."""

    def __init__(self, scan: InvariantScan | None, interval_ms: int | None, *, leading: Callable[[], bool]) -> None:
        self._scan = scan
        self._interval_ms = interval_ms
        self._leading = leading
        self._known: frozenset[Key] = frozenset()
        self._audited: LastCheck | None = None

    @property
    def audited(self) -> LastCheck | None:
        """None while this replica does not lead, or has not looked yet."""
        return self._audited if self._leading() else None

    async def run(self) -> None:
        while self._scan is not None and self._interval_ms is not None:
            await asyncio.sleep(self._interval_ms / 1_000)
            if self._leading():
                await self.look(self._scan)
            else:
                self._audited, self._known = None, frozenset()

    async def look(self, scan: InvariantScan) -> None:
        try:
            report = await scan.look(LIGHT)
        except StoreUnavailable as error:
            log.warning("audit_unanswered", error=str(error))
            return
        except Exception:  # whatever is stored, it must not end the one who leads
            log.exception("audit_failed")
            return
        self._tell(report)
        self._known = frozenset(finding.key for finding in report.findings)
        self._audited = LastCheck(WallMs(report.at_ms), dict(report.counts))

    def _tell(self, report: CheckReport) -> None:
        new = [finding for finding in report.findings if finding.key not in self._known]
        for finding in new[:_TOLD_MAX]:
            log.error(
                "audit_finding",
                kind=finding.kind.value,
                document=finding.document,
                what=finding.what,
                hint=finding.hint,
            )
        if len(new) > _TOLD_MAX:
            log.error("audit_findings", more=len(new) - _TOLD_MAX, **report.counts)
        if self._known and not report.counts:
            log.info("audit_clean", was=len(self._known))
