"""What is in the wrong shard, and whose name a schedule has: found once it stands still, and nothing else."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from hascheduler.check.finding import CheckReport, Finding, FindingKind
from hascheduler.model.partition import partition_of
from hascheduler.mongo.connection import Database
from hascheduler.ports.invariant_scan import LIGHT, THOROUGH, ScanBounds, ScanProgress
from hascheduler.shards.check import PlacedScan, deployment_report
from hascheduler.shards.layout import Layout, encode_layout
from tests.doubles.databases import mock_databases
from tests.factories import NOW

SHARDS = ("default", "0001", "0002")
LAYOUT = Layout.even(SHARDS)
AT_ONCE, LEADER = (replace(each, recheck_after_s=0.0, pause_s=0.0) for each in (THOROUGH, LIGHT))
OWN = Finding(FindingKind.INDEX, "jobs/x", "an index is missing", "make it")


def tenant_in(index: int, number: int = 0) -> str:
    return [name for name in (f"t{each}" for each in range(400)) if LAYOUT.index_of(name) == index][number]


HOME, ONE, TWO = map(tenant_in, range(3))


@dataclass
class Own:
    """The shard's own scan."""

    findings: tuple[Finding, ...] = ()

    async def run(self, bounds: ScanBounds, progress: ScanProgress = lambda _section, _done: None) -> CheckReport:
        counts = {finding.kind.value: 1 for finding in self.findings}
        return CheckReport(NOW, self.findings, counts, {"jobs": 3}, complete=True)


@dataclass
class Stored:
    databases: Sequence[Database] = field(default_factory=lambda: mock_databases("x", "x-0001", "x-0002"))

    async def made(self) -> "Stored":
        await self.layout(LAYOUT)
        for index, tenant in enumerate((HOME, ONE, TWO)):
            await self.job(index, f"job:{index}", tenant)
            await self.schedule(index, f"s{index}", tenant)
            await self.name(f"s{index}", tenant)
        return self

    async def layout(self, layout: Layout, **changed: Any) -> None:
        await self.databases[0]["routing"].replace_one({}, encode_layout(layout) | changed, upsert=True)

    async def job(self, index: int, id: str, tenant: str) -> None:
        await self.databases[index]["jobs"].insert_one({"_id": id, "tenant": tenant, "submitted_at_ms": NOW})

    async def schedule(self, index: int, name: str, tenant: str) -> None:
        made = {"_id": name, "job": {"tenant": tenant}, "created_at_ms": NOW}
        await self.databases[index]["schedules"].insert_one(made)

    async def name(self, name: str, tenant: str, **fields: Any) -> None:
        bound = {"_id": name, "partition": partition_of(tenant), "use": 1, "at_ms": NOW} | fields
        await self.databases[0]["names"].replace_one({"_id": name}, bound, upsert=True)

    def scan(self, index: int, own: tuple[Finding, ...] = (), kind: type[PlacedScan] = PlacedScan) -> PlacedScan:
        return kind(Own(own), self.databases, SHARDS, index)

    async def look(self, bounds: ScanBounds = AT_ONCE) -> CheckReport:
        scans = {name: self.scan(index) for index, name in enumerate(SHARDS)}
        return await deployment_report(scans, bounds, lambda _section, _done: None)


@pytest.fixture
async def stored() -> Stored:
    return await Stored().made()


def keys(report: CheckReport) -> list[tuple[FindingKind, str]]:
    return [finding.key for finding in report.findings]


async def test_a_healthy_deployment_has_no_findings(stored: Stored) -> None:
    report = await stored.look()
    assert report.findings == ()
    assert report.complete
    assert report.looked_at == {"jobs": 9, "tenants of jobs": 3, "schedules by shard": 3}


async def two_of_one_name(stored: Stored) -> None:
    await stored.schedule(2, "s1", TWO)


async def name_of_another(stored: Stored) -> None:
    await stored.schedule(2, "tack", TWO)
    await stored.name("tack", ONE)


async def named_schedule_elsewhere(stored: Stored) -> None:
    await stored.schedule(0, "tack", ONE)
    await stored.name("tack", ONE)


ROWS: dict[str, tuple[Callable[[Stored], Awaitable[Any]], FindingKind, str, tuple[str, ...]]] = {
    "a job in another shard": (
        lambda stored: stored.job(0, "job:x", ONE),
        FindingKind.MISPLACED,
        "default: jobs/job:x",
        ("in shard default", f"tenant {ONE!r} belongs to shard 0001", "submit it again", "database x;"),
    ),
    "a schedule in another shard": (
        named_schedule_elsewhere,
        FindingKind.MISPLACED,
        "default: schedules/tack",
        ("in shard default", "hascheduler schedule put"),
    ),
    "a schedule in two shards": (
        lambda stored: stored.schedule(2, "s1", ONE),
        FindingKind.MISPLACED,
        "0002: schedules/s1",
        (f"tenant {ONE!r} belongs to shard 0001", "database x-0002"),
    ),
    "two schedules of one name, each in the shard of its tenant": (
        two_of_one_name,
        FindingKind.NAME_UNRESERVED,
        "0002: schedules/s1",
        (f"its tenant {TWO!r}", f"tenants of partition {partition_of(ONE)}", "only in lists"),
    ),
    "a schedule without a name": (
        lambda stored: stored.databases[0]["names"].delete_one({"_id": "s1"}),
        FindingKind.NAME_UNRESERVED,
        "0001: schedules/s1",
        ("for no tenant", "db.names.updateOne({_id: 's1'}", f"partition: {partition_of(ONE)}"),
    ),
    "a schedule whose name is another partition's": (
        name_of_another,
        FindingKind.NAME_UNRESERVED,
        "0002: schedules/tack",
        (f"tenants of partition {partition_of(ONE)}",),
    ),
    "no layout": (
        lambda stored: stored.databases[0]["routing"].delete_many({}),
        FindingKind.UNREADABLE,
        "default: routing/routing",
        ("there is no layout", "backup"),
    ),
    "a layout that can't be read": (
        lambda stored: stored.layout(LAYOUT, partitions=[0, "x"]),
        FindingKind.UNREADABLE,
        "default: routing/routing",
        ("partitions", "backup"),
    ),
    "a layout of other shards": (
        lambda stored: stored.layout(LAYOUT.extended([*SHARDS, "0003"])),
        FindingKind.UNKNOWN_SHARD,
        "default: routing/routing",
        ("0003", "HASCHEDULER_SHARDS=4"),
    ),
}


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("bounds", [AT_ONCE, LEADER], ids=["thorough", "light"])
async def test_each_planted_defect_is_found_and_nothing_else(stored: Stored, row: str, bounds: ScanBounds) -> None:
    plant, kind, document, words = ROWS[row]
    await plant(stored)
    report = await stored.look(bounds)
    assert keys(report) == [(kind, document)]
    [finding] = report.findings
    assert all(word in f"{finding.what} {finding.hint}" for word in words), finding
    assert report.counts == {kind.value: 1}
    assert report.complete


async def test_what_is_on_its_way_is_no_finding(stored: Stored) -> None:
    await stored.job(2, "job:x", ONE)
    await stored.schedule(2, "s1", ONE)
    await stored.databases[0]["names"].delete_one({"_id": "s1"})
    partition = partition_of(ONE)
    moving = LAYOUT.beginning({partition: 2})
    for layout in (moving, moving.freezing(partition), moving.arrived(partition)):
        await stored.layout(layout)
        assert keys(await stored.look()) == []
    await stored.layout(moving.arrived(partition).emptied(partition))
    assert len(keys(await stored.look())) == 3


MOTIONS: dict[str, tuple[Callable[[Stored], Awaitable[Any]], Callable[[Stored], Awaitable[Any]]]] = {
    "a job is taken away": (
        lambda stored: stored.job(1, "job:x", TWO),
        lambda stored: stored.databases[1]["jobs"].delete_one({"_id": "job:x"}),
    ),
    "a schedule is deleted": (
        lambda stored: stored.databases[0]["names"].delete_one({"_id": "s1"}),
        lambda stored: stored.databases[1]["schedules"].delete_one({"_id": "s1"}),
    ),
    "the name is reserved": (
        lambda stored: stored.databases[0]["names"].delete_one({"_id": "s1"}),
        lambda stored: stored.name("s1", ONE),
    ),
    "something begins to move": (
        lambda stored: stored.job(1, "job:x", TWO),
        lambda stored: stored.layout(LAYOUT.beginning({0: 1})),
    ),
}


@pytest.mark.parametrize("row", MOTIONS)
async def test_what_changes_between_two_looks_is_no_finding(stored: Stored, row: str) -> None:
    plant, motion = MOTIONS[row]
    await plant(stored)
    assert len(keys(await stored.scan(1).run(AT_ONCE))) == 1

    class Moving(PlacedScan):
        async def _check(self, only: set[str] | None, *args: Any) -> bool:
            is_complete = await super()._check(only, *args)
            if only is None:
                await motion(stored)
            return is_complete

    assert keys(await stored.scan(1, kind=Moving).run(AT_ONCE)) == []


async def test_a_leaders_looks_take_turns(stored: Stored) -> None:
    names = [f"n{number}" for number in range(6)]
    for name in names:
        await stored.schedule(1, name, ONE)
    tenants = [tenant_in(2, number) for number in range(1, 7)]
    for tenant in tenants:
        await stored.job(1, f"job:{tenant}", tenant)
    bounds = replace(LEADER, batch=2, placed_max=4, tenants_max=2)
    scan, found = stored.scan(1), set[tuple[FindingKind, str]]()
    for turn in range(6):
        looked = keys(await scan.run(bounds))
        assert len(looked) <= 4 + 2
        found |= set(looked)
        assert turn or len(found) < 12
    assert found == {
        *((FindingKind.NAME_UNRESERVED, f"schedules/{name}") for name in names),
        *((FindingKind.MISPLACED, f"jobs/job:{tenant}") for tenant in tenants),
    }
