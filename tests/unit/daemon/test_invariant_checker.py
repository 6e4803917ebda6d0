"""The leader's own look: while it leads, each finding logged once, and nothing that it meets ends the replica."""

import asyncio
from collections.abc import Sequence

import pytest
from structlog.testing import capture_logs

from hascheduler.check.finding import CheckReport, Finding, FindingKind
from hascheduler.daemon.loop.checks import InvariantChecker
from hascheduler.errors import StoreUnavailable
from hascheduler.ports.invariant_scan import LIGHT, ScanBounds, ScanProgress

OVERDUE = Finding(FindingKind.OVERDUE, "schedules/tick", "late", "look")
GAP = Finding(FindingKind.JOURNAL_GAP, "journal/default/4", "gone", "ask")


class Scan:
    """`hascheduler.ports.invariant_scan.InvariantScan` that finds what the test gives it."""

    def __init__(self, *found: Sequence[Finding] | Exception) -> None:
        self.found = list(found)
        self.bounds: list[ScanBounds] = []
        self.looked = asyncio.Event()

    async def look(self, bounds: ScanBounds, progress: ScanProgress = lambda _section, _done: None) -> CheckReport:
        self.bounds.append(bounds)
        self.looked.set()
        found = self.found.pop(0) if self.found else []
        if isinstance(found, Exception):
            raise found
        counts = {kind.value: sum(one.kind is kind for one in found) for kind in {one.kind for one in found}}
        return CheckReport(1_000, tuple(found), counts, {}, complete=True)


class Role:
    leading = True


def checker(role: Role, interval_ms: int | None = None) -> InvariantChecker:
    return InvariantChecker(None, interval_ms, leading=lambda: role.leading)


async def test_findings_are_shown_as_counts_and_logged_once() -> None:
    scan, one = Scan([OVERDUE], [OVERDUE, GAP], [OVERDUE, GAP], []), checker(Role())
    assert one.last_check is None
    logged = []
    for _ in range(4):
        with capture_logs() as logs:
            await one.look(scan)
        logged.append([(line["event"], line.get("document")) for line in logs])
    assert logged == [
        [("audit_finding", "schedules/tick")],
        [("audit_finding", "journal/default/4")],
        [],
        [("audit_clean", None)],
    ]
    assert set(scan.bounds) == {LIGHT}
    assert one.last_check is not None
    assert (one.last_check.at_ms, one.last_check.counts) == (1_000, {})


async def test_the_line_says_what_to_do() -> None:
    with capture_logs() as logs:
        await checker(Role()).look(Scan([OVERDUE]))
    [line] = logs
    assert (line["log_level"], line["kind"], line["what"], line["hint"]) == ("error", "overdue", "late", "look")


async def test_of_very_many_findings_some_are_logged_and_the_others_counted() -> None:
    many = [Finding(FindingKind.OVERDUE, f"schedules/{number}", "late", "look") for number in range(100)]
    with capture_logs() as logs:
        await checker(Role()).look(Scan(many))
    assert [line["event"] for line in logs] == ["audit_finding"] * 20 + ["audit_findings"]
    assert (logs[-1]["more"], logs[-1]["overdue"]) == (80, 100)


@pytest.mark.parametrize(
    ("error", "event"), [(StoreUnavailable("away"), "audit_unanswered"), (ValueError("odd"), "audit_failed")]
)
async def test_a_look_that_fails_leaves_what_was_found_before(error: Exception, event: str) -> None:
    one = checker(Role())
    scan = Scan([OVERDUE], error)
    await one.look(scan)
    with capture_logs() as logs:
        await one.look(scan)
    assert [line["event"] for line in logs] == [event]
    assert one.last_check is not None
    assert one.last_check.counts == {"overdue": 1}


async def test_who_does_not_lead_shows_nothing() -> None:
    role = Role()
    one = checker(role)
    await one.look(Scan([OVERDUE]))
    role.leading = False
    assert one.last_check is None


async def test_it_looks_again_and_again_while_it_leads() -> None:
    scan = Scan()
    one = InvariantChecker(scan, 1, leading=lambda: True)
    running = asyncio.create_task(one.run())
    try:
        async with asyncio.timeout(10):
            for _ in range(3):
                await scan.looked.wait()
                scan.looked.clear()
    finally:
        running.cancel()
        await asyncio.wait({running})


async def test_a_standby_does_not_look_and_forgets_what_it_found() -> None:
    role, scan = Role(), Scan([OVERDUE])
    one = InvariantChecker(scan, 1, leading=lambda: role.leading)
    await one.look(scan)
    role.leading = False
    asked = asyncio.Event()

    def leading() -> bool:
        asked.set()
        return role.leading

    one._leading = leading
    running = asyncio.create_task(one.run())
    try:
        async with asyncio.timeout(10):
            await asked.wait()
            asked.clear()
            await asked.wait()
    finally:
        running.cancel()
        await asyncio.wait({running})
    role.leading = True
    assert (len(scan.bounds), one.last_check) == (1, None)


@pytest.mark.parametrize(("scan", "interval_ms"), [(None, 1), (Scan(), None)])
async def test_without_a_scan_or_an_interval_it_never_looks(scan: Scan | None, interval_ms: int | None) -> None:
    async with asyncio.timeout(10):
        await InvariantChecker(scan, interval_ms, leading=lambda: True).run()
