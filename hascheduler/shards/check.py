"""Finds documents that are not where the layout says, and schedule names bound wrongly, besides each shard's report.

Each job and schedule must be in the shard of its tenant's partition, and each schedule's name bound to that partition
in the home. A restore of one database alone, or of a backup into the wrong one, breaks this, and so do edits by hand.
If a schedule or job is in two shards, at least one is out of place; only two jobs of different tenants are not found.

A scan reads only the tenants of jobs, by jumps in the index: its cost grows with the number of tenants, not of jobs. A
second scan, by a newly read layout, drops what was just being moved. A moving partition is not scanned.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from pymongo import ASCENDING

from hascheduler.check.documents import unreadable
from hascheduler.check.finding import CheckReport, Finding, FindingCollector, FindingKind, merged_report, short_id
from hascheduler.errors import InvalidInput
from hascheduler.model.collection import Collection
from hascheduler.model.partition import partition_of
from hascheduler.model.values.error_texts import quoted
from hascheduler.model.values.fields import NAME_CHARACTERS_MAX, as_document
from hascheduler.mongo.check.context import BATCH_LIMIT_S, ScanPace, ScanTimeOver
from hascheduler.mongo.connection import Database
from hascheduler.mongo.faults import faults
from hascheduler.ports.invariant_scan import InvariantScan, ScanBounds, ScanProgress
from hascheduler.shards.home import LayoutStore
from hascheduler.shards.layout import LAYOUT_ID, Layout
from hascheduler.shards.names import bound_partition

_BY_TENANT = [("tenant", ASCENDING), ("submitted_at_ms", ASCENDING), ("_id", ASCENDING)]
_LAYOUT = f"{Collection.ROUTING}/{LAYOUT_ID}"
_AGAIN_LIMIT_S = 60.0


async def deployment_report(
    scans: Mapping[str, InvariantScan], bounds: ScanBounds, progress: ScanProgress
) -> CheckReport:
    """Return one report of the scans of all shards, by their names."""
    return merged_report({shard: await scan.run(bounds, progress) for shard, scan in scans.items()})


class PlacedScan:
    """`hascheduler.ports.InvariantScan` of the shard of that index; owner of where the next bounded scan goes on.

    It reports the findings of its ``own`` scan, and what is placed or named wrongly.
    """

    def __init__(self, own: InvariantScan, databases: Sequence[Database], shards: Sequence[str], index: int) -> None:
        self._own = own
        self._layouts = LayoutStore(databases[0])
        self._names = databases[0][Collection.NAMES.value]
        self._database = databases[index]
        self._shards = tuple(shards)
        self._index = index
        self._after_tenant = self._after_schedule = ""

    async def run(self, bounds: ScanBounds, progress: ScanProgress = lambda _section, _done: None) -> CheckReport:
        report, found = await self._own.run(bounds, progress), FindingCollector()
        pace = ScanPace(bounds, progress)
        is_complete = await self._check(None, bounds, pace, found)
        if any(found.suspects.values()):
            await asyncio.sleep(bounds.recheck_after_s)
            again = FindingCollector()
            suspects = {document for of_kind in found.suspects.values() for document in of_kind}
            second = ScanPace(replace(bounds, limit_s=_AGAIN_LIMIT_S), lambda _section, _done: None)
            is_complete &= await self._check(suspects, bounds, second, again)
            found.confirm(finding for of_kind in again.suspects.values() for finding in of_kind.values())
        return replace(
            report,
            findings=(*report.findings, *found.listed()),
            counts=dict(Counter(report.counts) + Counter(found.counts)),
            looked_at=dict(Counter(report.looked_at) + pace.looked_at),
            complete=report.complete and is_complete and not found.overflowed,
        )

    async def _check(self, only: set[str] | None, bounds: ScanBounds, pace: ScanPace, into: FindingCollector) -> bool:
        """Scan everything, or ``only`` these documents; return True if there was time for all."""
        layout = await self._layout(into)
        if layout is None:
            return True
        try:
            if only is None:
                async for tenant in self._tenants(bounds, pace):
                    if layout.index_of(tenant) != self._index:
                        await self._jobs(layout, {"tenant": tenant}, bounds.placed_max, pace, into)
                after = {"$gt": self._after_schedule}
                async for last in self._schedules(layout, after, bounds.placed_max, pace, into):
                    self._after_schedule = last
            else:
                jobs, schedules = (_ids(only, each) for each in (Collection.JOBS, Collection.SCHEDULES))
                await self._jobs(layout, {"_id": {"$in": jobs}}, None, pace, into)
                async for _ in self._schedules(layout, {"$in": schedules}, None, pace, into):
                    pass
        except ScanTimeOver:
            return False
        return True

    async def _layout(self, into: FindingCollector) -> Layout | None:
        """Return the layout; None if it is wrong, which the scan of the home reports."""
        try:
            layout = await self._layouts.get()
        except InvalidInput as error:
            found = unreadable(Collection.ROUTING, LAYOUT_ID, error)
        else:
            if layout is not None and layout.shards == self._shards:
                return layout
            found = _wrong_layout(layout, self._shards)
        if self._index == 0:
            into.add([found])
        return None

    async def _tenants(self, bounds: ScanBounds, pace: ScanPace) -> AsyncIterator[str]:
        """Yield the tenants that have jobs here, from where the last scan ended."""
        jobs, count = self._database[Collection.JOBS.value], 0
        while bounds.tenants_max is None or count < bounds.tenants_max:
            with faults("read the tenants of jobs", BATCH_LIMIT_S):
                which: dict[str, Any] = {"tenant": {"$gt": self._after_tenant}}
                found = await jobs.find_one(which, ["tenant"], sort=_BY_TENANT)
                # A list in place of a text, written by hand, matches by its items.
                if found is not None and not isinstance(found["tenant"], str):
                    found = await jobs.find_one(which | {"tenant.0": {"$exists": False}}, ["tenant"], sort=_BY_TENANT)
            tenant = "" if found is None else str(found["tenant"])
            if tenant <= self._after_tenant:  # a text that the driver can't read could be returned forever
                self._after_tenant = ""
                return
            yield tenant
            self._after_tenant = tenant
            pace.advanced("tenants of jobs", 1)
            count += 1
            if count % bounds.batch == 0:
                await pace.pause()

    async def _jobs(
        self, layout: Layout, which: Mapping[str, Any], limit: int | None, pace: ScanPace, into: FindingCollector
    ) -> None:
        found = self._database[Collection.JOBS.value].find(which, ["tenant"]).limit(limit or 0)
        again = "and it may run twice", "submit it again"
        async with aclosing(pace.batches("misplaced jobs", found)) as batches:
            async for documents in batches:
                for job in documents:
                    id = f"{Collection.JOBS}/{short_id(job['_id'])}"
                    into.add(self._misplaced(layout, id, job.get("tenant"), *again))

    async def _schedules(
        self, layout: Layout, ids: Mapping[str, Any], limit: int | None, pace: ScanPace, into: FindingCollector
    ) -> AsyncIterator[str]:
        """Scan these schedules; after each batch yield where the next scan goes on, and "" after all."""
        schedules = self._database[Collection.SCHEDULES.value].find({"_id": ids}, ["job.tenant", "created_at_ms"])
        found = schedules.sort("_id", ASCENDING).limit(limit or 0)
        count = 0
        async with aclosing(pace.batches("schedules by shard", found)) as batches:
            async for documents in batches:
                with faults("read reserved names", BATCH_LIMIT_S):
                    names = self._names.find({"_id": {"$in": [each["_id"] for each in documents]}})
                    bound = {each["_id"]: bound_partition(each) for each in await names.to_list(None)}
                for schedule in documents:
                    into.add(self._wrong(layout, schedule, bound))
                count += len(documents)
                yield documents[-1]["_id"]
        if limit is None or count < limit:
            yield ""

    def _wrong(self, layout: Layout, schedule: Mapping[str, Any], bound: Mapping[str, int | None]) -> Iterator[Finding]:
        name, tenant = schedule["_id"], (as_document(schedule.get("job")) or {}).get("tenant")
        if not isinstance(tenant, str) or not tenant or len(name) > NAME_CHARACTERS_MAX:
            return  # unreadable, which the shard's own scan reports
        document, partition = f"{Collection.SCHEDULES}/{name}", partition_of(tenant)
        again = "but it fires", "create it again (hascheduler schedule put)"
        if layout.shard_of[partition] != self._index:
            yield from self._misplaced(layout, document, tenant, *again)
        elif bound.get(name) != partition and layout.is_at_rest(partition):
            whose = "no tenant" if bound.get(name) is None else f"tenants of partition {bound[name]}"
            yield Finding(
                FindingKind.NAME_UNRESERVED,
                document,
                f"its tenant {quoted(tenant)} is in partition {partition}, but its name is reserved for {whose}",
                "the API may show it only in lists, and others may take its name: delete the unwanted schedule in"
                f" MongoDB; then run in the home's database db.names.updateOne({{_id: {name!r}}}, {{$set: {{partition:"
                f" {partition}, use: 1, at_ms: 0}}}}, {{upsert: true}})",
                witness=f"{short_id(schedule.get('created_at_ms'))} {tenant} {bound.get(name)}",
            )

    def _misplaced(self, layout: Layout, document: str, tenant: Any, harm: str, again: str) -> Iterator[Finding]:
        if not isinstance(tenant, str) or not layout.is_at_rest(partition_of(tenant)):
            return
        here, right = self._shards[self._index], self._shards[layout.index_of(tenant)]
        if here != right:
            yield Finding(
                FindingKind.MISPLACED,
                document,
                f"it is in shard {here}, but its tenant {quoted(tenant)} belongs to shard {right}",
                f"the lists of its tenant omit it, {harm}: delete it in MongoDB from the database"
                f" {self._database.name}; then, if shard {right} does not have it, {again}",
                witness=f"{tenant} {layout.epoch}",
            )


def _wrong_layout(layout: Layout | None, shards: Sequence[str]) -> Finding:
    if layout is None:
        what = "there is no layout, so no process knows the shard of a tenant"
        hint = "restore it from a backup of the home's database; in a new deployment the first replica creates it"
        return Finding(FindingKind.UNREADABLE, _LAYOUT, what, hint)
    what = f"it names the shards {short_id(', '.join(layout.shards))}, but the settings name {', '.join(shards)}"
    set_to = f"HASCHEDULER_SHARDS={len(layout.shards)} and HASCHEDULER_SHARD={short_id(layout.shards[0])}"
    return Finding(FindingKind.UNKNOWN_SHARD, _LAYOUT, what, f"set {set_to}, as on the replicas")


def _ids(documents: set[str], collection: Collection) -> list[str]:
    prefix = f"{collection}/"
    return sorted(each.removeprefix(prefix) for each in documents if each.startswith(prefix))
