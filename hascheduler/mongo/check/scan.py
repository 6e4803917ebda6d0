"""Scan the database for broken invariants: the order of the reads; `hascheduler.check` judges what is read.

::

    indexes ─ small collections ─ journal, leases ─ jobs that hold slots ─ pending jobs ─ schedules, times
                                        │
                             suspects ──┴─► a pause ─► the same reads of the suspects alone ─► findings

It reads with majority from the primary and writes nothing. Each read is a range of an index, in batches. Only the
processors, the definitions, the leases and a bounded number of findings stay in memory.
"""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from hascheduler.check.finding import CheckConfig, CheckReport, Finding, FindingCollector, FindingKind, Report
from hascheduler.check.jobs import CheckContext
from hascheduler.check.journal import check_is_led, check_lease, check_zone_data
from hascheduler.mongo.check.context import ScanPace, ScanTimeOver, long_expired, read_small_collections, server_now_ms
from hascheduler.mongo.check.indexes import PresentIndexes, duplicate_idempotency_keys
from hascheduler.mongo.check.jobs import JobScan
from hascheduler.mongo.check.journal import JournalScan
from hascheduler.mongo.check.schedules import ScheduleScan, certain_since_ms, kept_for_ms
from hascheduler.mongo.connection import Database
from hascheduler.ports.invariant_scan import ScanBounds, ScanProgress
from hascheduler.schema.pause import EVERYTHING

_AGAIN_LIMIT_S = 60.0

Suspects = Mapping[FindingKind, Mapping[str, Finding]]


@dataclass(frozen=True, slots=True)
class Deployment:
    """The deployment to check. ``leases_here``: the lease is in this database; ``max_concurrency``: the setting."""

    config: CheckConfig
    scheduler: str
    leases_here: bool = True
    max_concurrency: int | None = None


class MongoInvariantScan:
    """`hascheduler.ports.InvariantScan`. Owner of the place from which the next bounded scan continues."""

    def __init__(self, database: Database, deployment: Deployment) -> None:
        self._database = database
        self._deployment = deployment
        self._after_schedule = ""

    async def run(self, bounds: ScanBounds, progress: ScanProgress = lambda _section, _done: None) -> CheckReport:
        findings = FindingCollector()
        first = await self._new_pass(bounds, progress, findings)
        complete = await first.check_all(self._after_schedule)
        self._after_schedule = first.after_schedule
        if any(findings.suspects.values()):
            await asyncio.sleep(bounds.recheck_after_s)
            again = FindingCollector()
            second = await self._new_pass(replace(bounds, limit_s=_AGAIN_LIMIT_S), lambda _section, _done: None, again)
            complete &= await second.recheck(findings.suspects)
            findings.confirm(finding for of_kind in again.suspects.values() for finding in of_kind.values())
        return CheckReport(
            at_ms=first.now,
            findings=findings.listed(),
            counts=findings.counts,
            looked_at=dict(first.looked_at),
            complete=complete and not findings.overflowed,
        )

    async def _new_pass(self, bounds: ScanBounds, progress: ScanProgress, into: FindingCollector) -> "_Pass":
        now = await server_now_ms(self._database)
        return _Pass(self._database, self._deployment, now, bounds, ScanPace(bounds, progress), report=into.add)


@dataclass
class _Pass:
    """One pass of reads in order, each after the reads that its rules depend on."""

    database: Database
    deployment: Deployment
    now: int
    bounds: ScanBounds
    pace: ScanPace
    report: Report

    def __post_init__(self) -> None:
        self._config = self.deployment.config
        self.looked_at = self.pace.looked_at
        self._schedules: ScheduleScan | None = None
        self._context = CheckContext(self.now, self._config, self.deployment.max_concurrency)
        self._journal = JournalScan(self.database, self.pace, self.now, self._config, self.report)
        self._jobs = JobScan(self.database, self.pace, self._context, self.report)

    @property
    def after_schedule(self) -> str:
        """Return the schedule after which the next scan begins; "" if this pass reached the end."""
        return "" if self._schedules is None else self._schedules.compared_through

    async def check_all(self, after_schedule: str) -> bool:
        """Read everything, and return True if it was done within the time limit."""
        with suppress(ScanTimeOver):
            indexes = await PresentIndexes.of(self.database)
            self.report(indexes.check())
            self.report(await long_expired(self.database, indexes, self.now, self._config.expiry_ms))
            if not indexes.keys_are_unique and self.bounds.limit_s is None:
                self.report(await duplicate_idempotency_keys(self.database))
            await self._leadership(self.bounds.entries_max)
            await self._journal.unapplied()
            await self._jobs.of_unknown_state()
            await self._jobs.occupying()
            await self._jobs.pending(None, self.bounds.pending_max)
            await self._all_schedules(indexes, after_schedule)
            return True
        return False

    async def recheck(self, suspects: Suspects) -> bool:
        """Repeat the reads for the suspects alone."""
        with suppress(ScanTimeOver):
            indexes = await PresentIndexes.of(self.database)
            await self._leadership(1)
            if suspects.get(FindingKind.NOT_EXPIRED):
                self.report(await long_expired(self.database, indexes, self.now, self._config.expiry_ms))
            if entries := suspects.get(FindingKind.JOURNAL_UNAPPLIED):
                await self._journal.unapplied(entries)
            if jobs := _ids(suspects.values(), "jobs/"):
                await self._jobs.occupying()
                await self._jobs.pending(jobs, None)
            if schedules := _ids(suspects.values(), "schedules/"):
                schedule_scan = await self._schedule_scan(indexes)
                await schedule_scan.check({"_id": {"$in": sorted(schedules)}}, led=self._decides)
            return True
        return False

    async def _leadership(self, entries_max: int | None) -> None:
        """Check the small collections, then the journal and the leases, which are one of them."""
        await read_small_collections(self.database, self.pace, self._context, self.report)
        leases = self._context.leases
        await self._journal.follow({self.deployment.scheduler, *leases}, entries_max)
        if self.deployment.leases_here:
            for lease in leases.values():
                began = self._journal.beginnings.get(lease.name)
                self.report(check_lease(lease, began, self.now, self._config))
        led = {*leases, *self._journal.tails}
        for registered in self._context.processors.values():
            self.report(check_is_led(registered, led))
        self.report(check_zone_data(self._context.replicas.values(), self.now, self._config))

    @property
    def _decides(self) -> bool:
        """Return True if a live replica leads, or could, and there is no pause of everything."""
        if EVERYTHING in self._context.pauses:
            return False
        replicas = self._context.replicas
        if not self.deployment.leases_here:
            return bool(replicas)
        return any(lease.holder in replicas for lease in self._context.leases.values())

    async def _all_schedules(self, indexes: PresentIndexes, after: str) -> None:
        schedule_scan = self._schedules = await self._schedule_scan(indexes)
        schedule_scan.compared_through = after
        parts: list[dict[str, Any]] = [{"_id": {"$gt": after}}, {"_id": {"$lte": after}}] if after else [{}]
        for part in parts:
            await schedule_scan.check(part, led=self._decides, compared_max=self.bounds.compared_max)
        if not schedule_scan.left_out:
            schedule_scan.compared_through = ""

    async def _schedule_scan(self, indexes: PresentIndexes) -> ScheduleScan:
        kept_ms = await kept_for_ms(self.database, indexes, self._config.job_retention_ms)
        return ScheduleScan(
            self.database,
            self.pace,
            self._context,
            self.report,
            kept_since_ms=certain_since_ms(self.now, kept_ms),
            times_max=self.bounds.times_max,
        )


def _ids(suspects: Iterable[Mapping[str, Finding]], prefix: str) -> set[str]:
    """Return the ids of the suspects in one collection."""
    documents = {document for of_kind in suspects for document in of_kind}
    return {document.removeprefix(prefix) for document in documents if document.startswith(prefix)}
