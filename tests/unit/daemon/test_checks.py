"""The agreement of mirrors and the checks of invariants."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from hascheduler.check.finding import CheckReport, Finding, FindingKind
from hascheduler.daemon.loop.checks import InvariantChecker
from hascheduler.errors import StoreUnavailable
from hascheduler.mirror.changes import Change, Operation
from hascheduler.mirror.mirror import MARKED_EVERY, Mark, Mirror
from hascheduler.model.collection import Collection
from hascheduler.ports.invariant_scan import LIGHT, ScanBounds, ScanProgress
from tests.chance import load_profile
from tests.tiers import examples
from tests.unit.daemon.doubles import running
from tests.unit.daemon.followers import Cluster, Follower
from tests.unit.mirror.nouns import schedule_fields

load_profile()

MINUTE_MS = 60_000


def missing_one_schedule(cluster: Cluster, wrong: Follower) -> None:
    """One is deleted, and ``wrong`` never hears of it."""
    key = (Collection.SCHEDULES, "planted")
    cluster.history._insert(key, schedule_fields())
    for one in cluster.followers:
        one.catch_up()
    wrong.drops = lambda change: change.collection is Collection.SCHEDULES
    cluster.history._delete(key)
    wrong.catch_up()
    wrong.drops = lambda _: False


@given(st.integers(0, 2**32), st.integers(2, 5))
@settings(max_examples=examples(150))
def test_an_undisturbed_cluster_never_differs_however_changes_are_batched(seed: int, replicas: int) -> None:
    cluster = Cluster(seed, replicas)
    for _ in range(cluster.random.randint(20, 400)):
        cluster.turn()
        if cluster.random.random() < 0.01:
            cluster.random.choice(cluster.followers).start()
    cluster.settle()
    for one in cluster.followers:
        assert (list(one.digests.differing), one.reasons) == ([], [])
        assert one.digests.published  # else nothing was compared


@given(st.integers(0, 2**32))
@settings(max_examples=examples(50))
def test_a_replica_that_missed_a_change_is_noticed_by_all_and_reads_again(seed: int) -> None:
    cluster = Cluster(seed)
    for _ in range(cluster.random.randint(0, 200)):
        cluster.turn()
    cluster.settle()
    *others, wrong = cluster.followers
    with capture_logs() as logs:
        missing_one_schedule(cluster, wrong)
        cluster.settle()
        cluster.settle()
    found = sorted(line["other"] for line in logs if (line["event"], line["log_level"]) == ("mirror_mismatch", "error"))
    assert found == ["r1", "r2", "r3", "r3"], "once a pair"
    assert sorted(wrong.digests.differing) == ["r1", "r2"]
    assert [list(other.digests.differing) for other in others] == [["r3"], ["r3"]]
    assert (len(wrong.reasons), [other.reasons for other in others]) == (1, [[], []])
    wrong.start()
    cluster.clock.now += 2 * MINUTE_MS
    cluster.settle()
    assert all(list(one.digests.differing) == [] for one in cluster.followers)
    assert len(wrong.reasons) == 1


def _as_if_exact(one: Follower, plain: Callable[..., None], mirror: Mirror, marks: Iterable[Mark]) -> None:
    plain(mirror, [replace(mark, is_settled=True, ahead=one.digests._passed) for mark in marks])


def test_planted_digests_of_mirrors_that_are_ahead_make_false_alarms() -> None:
    """Why the marks are filtered: without it, an undisturbed cluster differs."""
    for seed in range(40):
        cluster = Cluster(seed)
        for one in cluster.followers:
            plain = one.digests.folded
            one.digests.folded = partial(_as_if_exact, one, plain)  # type: ignore[method-assign]
        for _ in range(400):
            cluster.turn()
        if any(list(one.digests.differing) for one in cluster.followers):
            return
    pytest.fail("no false alarm")


OVERDUE = Finding(FindingKind.OVERDUE, "schedules/tick", "late", "hint")
GAP = Finding(FindingKind.JOURNAL_GAP, "journal/default/4", "gone", "ask")


class Scan:
    """`hascheduler.ports.invariant_scan.InvariantScan` that finds what the test gives it."""

    def __init__(self, *found: Sequence[Finding] | Exception) -> None:
        self.found = list(found)
        self.bounds: list[ScanBounds] = []
        self.scanned = asyncio.Event()

    async def run(self, bounds: ScanBounds, progress: ScanProgress = lambda _section, _done: None) -> CheckReport:
        self.bounds.append(bounds)
        self.scanned.set()
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
            await one.check(scan)
        logged.append([(line["event"], line.get("document")) for line in logs])
        if len(logged) == 1:
            line = [logs[0][name] for name in ("log_level", "kind", "what", "hint")]
            assert line == ["error", "overdue", "late", "hint"]
    assert logged == [
        [("check_finding", "schedules/tick")],
        [("check_finding", "journal/default/4")],
        [],
        [("check_clean", None)],
    ]
    assert set(scan.bounds) == {LIGHT}
    assert one.last_check is not None
    assert (one.last_check.at_ms, one.last_check.counts) == (1_000, {})


async def test_of_very_many_findings_some_are_logged_and_the_others_counted() -> None:
    many = [Finding(FindingKind.OVERDUE, f"schedules/{number}", "late", "hint") for number in range(100)]
    with capture_logs() as logs:
        await checker(Role()).check(Scan(many))
    assert [line["event"] for line in logs] == ["check_finding"] * 20 + ["check_findings"]
    assert (logs[-1]["more"], logs[-1]["overdue"]) == (80, 100)


@pytest.mark.parametrize(
    ("error", "event"), [(StoreUnavailable("away"), "check_unavailable"), (ValueError("odd"), "check_failed")]
)
async def test_a_scan_that_fails_leaves_what_was_found_before(error: Exception, event: str) -> None:
    one = checker(Role())
    scan = Scan([OVERDUE], error)
    await one.check(scan)
    with capture_logs() as logs:
        await one.check(scan)
    assert [line["event"] for line in logs] == [event]
    assert one.last_check is not None
    assert one.last_check.counts == {"overdue": 1}


async def test_it_scans_while_it_leads_and_forgets_what_it_found_when_it_does_not() -> None:
    asked, role, scan = asyncio.Event(), Role(), Scan()

    def leading() -> bool:
        asked.set()
        return role.leading

    one = InvariantChecker(scan, 1, leading=leading)
    async with running(one.run()), asyncio.timeout(10):
        for _ in range(3):
            await scan.scanned.wait()
            scan.scanned.clear()
        assert one.last_check is not None
        role.leading = False
        assert one.last_check is None
        scans = len(scan.bounds)
        for _ in range(2):
            asked.clear()
            await asked.wait()
    role.leading = True
    assert (len(scan.bounds), one.last_check) == (scans, None)


def test_a_change_that_was_read_for_its_event_makes_the_mirror_ahead() -> None:
    cluster = Cluster(9, replicas=1)
    [one] = cluster.followers
    ahead = one.mirror.ahead
    change = Change(Collection.SCHEDULES, Operation.PUT, "s", schedule_fields(), position="1.1", ahead=True)
    one.mirror.fold([change])
    assert one.mirror.ahead == ahead + 1


def test_what_is_read_beside_the_stream_is_not_compared_until_the_stream_has_passed_it() -> None:
    cluster = Cluster(8, replicas=1)
    cluster.settle()
    [one] = cluster.followers
    one.mirror.want(Collection.JOBS, "nobody")
    noted = len(one.digests.published)
    before = one.digests.published
    one.follow(0)  # the reading
    for _ in range(MARKED_EVERY):
        one.beat()  # sent in the very millisecond of the reading: it may have been first
    one.catch_up()
    assert one.digests.published == before
    assert len(before) == noted
    for _ in range(2 * MARKED_EVERY):
        cluster.clock.now += 1
        one.beat()
        one.catch_up()
    assert one.digests.published != before
