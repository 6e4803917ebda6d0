"""``hascheduler check`` as people and programs meet it, and what it reads of heartbeats and of nominal times."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from hascheduler.check.finding import CheckReport, Finding, FindingKind
from hascheduler.check.schedules import VerdictCursor, check_times, decided_times
from hascheduler.cli.setup.check import _document, _picture
from hascheduler.dispatch.decisions import Fire, RecordVerdict, TimeOutcome
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import VerdictRun
from hascheduler.schema.noun import document_of, read_document
from hascheduler.schema.replica import LastCheck, ReplicaStatus
from hascheduler.schema.schedule import CatchUp
from hascheduler.schema.trigger import Cron, Single
from tests.factories import make_replica
from tests.unit.cli.invoking import invoke
from tests.unit.dispatch.test_zone_data_differ import DAILY, RULES, TWICE, ZONE, at, led, schedule_of
from tests.zone_data import other_zone_data

ROOT = Path(__file__).parents[3]


def run(database: str, *options: str) -> "subprocess.CompletedProcess[str]":
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HASCHEDULER_")}
    return subprocess.run(
        [sys.executable, "-m", "hascheduler", "check", "--job-retention", "1d", "--database", database, *options],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        cwd=ROOT,
        env={**clean, "COLUMNS": "200"},
    )


def test_a_database_that_is_away_is_status_2_and_one_line() -> None:
    ended = run("nowhere", "--mongodb-uri", "mongodb://127.0.0.1:1/?replicaSet=rs0", "--startup-patience", "100ms")
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert ended.stderr.splitlines()[-1].startswith("hascheduler: HASCHEDULER_MONGODB_URI: nothing listens at")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--json", "--watch"], "--watch: cannot be combined with --json"),
        (["--job-retention", "soon"], "HASCHEDULER_JOB_RETENTION"),
        (["--every", "day"], "no such option: --every"),
    ],
)
def test_wrong_usage_is_status_2(options: list[str], text: str) -> None:
    ended = invoke("check", *options)
    assert ended.status == 2
    assert text in ended.err


def test_its_old_name_still_works_and_is_announced_as_deprecated() -> None:
    assert "\n  audit " not in invoke("--help").out
    ended = invoke("audit", "--json", "--watch")
    assert ended.status == 2
    deprecation, problem = ended.err.splitlines()
    assert deprecation == "hascheduler: `hascheduler audit` is deprecated; use `hascheduler check`"
    assert "--watch: cannot be combined with --json" in problem


REPORT = CheckReport(
    at_ms=1_893_456_000_000,
    findings=(Finding(FindingKind.OVERDUE, "schedules/tick", "due for 90 s", "fix it", since_ms=2**52),),
    counts={"overdue": 7},
    looked_at={"jobs": 1_200, "schedules": 34},
    complete=False,
)


def test_json_has_the_whole_report() -> None:
    answer = _document(REPORT, "db")
    assert json.loads(json.dumps(answer)) == {
        "database": "db",
        "at": "2030-01-01T00:00:00.000Z",
        "complete": False,
        "looked_at": {"jobs": 1_200, "schedules": 34},
        "counts": {"overdue": 7},
        "findings": [
            {
                "kind": "overdue",
                "document": "schedules/tick",
                "what": "due for 90 s",
                "since": f"{2**52} ms",
                "hint": "fix it",
            }
        ],
    }


def test_hidden_findings_are_counted_and_an_incomplete_scan_is_announced() -> None:
    from rich.console import Console

    console = Console(width=120, no_color=True)
    with console.capture() as captured:
        console.print(_picture(REPORT, "db"))
    shown = captured.get()
    assert "overdue 7 (1 shown); 1,234 documents of db checked; not everything was checked" in shown
    assert f"since {2**52} ms" in shown


# Heartbeats


MARKS = (("one.ab12/4", "00ff"), ("two.cd=e/8", "ffee"))


def test_a_heartbeat_of_an_older_release_has_no_marks_and_no_last_check() -> None:
    stored = document_of(make_replica(marks=MARKS, last_check=LastCheck(WallMs(5))))
    del stored["marks"], stored["audited"]
    assert read_document(ReplicaStatus, stored["_id"], stored) == make_replica()


@pytest.mark.parametrize(
    "nonsense", [None, 5, [], {}, "", " ", "a", "=", "a=b=c d", "at=", "at=x", "at=1 x", "at=-1", "at=" + "9" * 99]
)
def test_malformed_marks_or_checks_do_not_make_a_heartbeat_unreadable(nonsense: Any) -> None:
    stored = document_of(make_replica()) | {"marks": nonsense, "audited": nonsense}
    status = read_document(ReplicaStatus, stored["_id"], stored)
    assert status.id == "r1"
    assert all(isinstance(text, str) for mark in status.marks for text in mark)
    assert status.last_check in (None, LastCheck(WallMs(1)))


# Nominal times


async def _each(found: Sequence[int] | Sequence[VerdictRun]) -> AsyncIterator[object]:
    for one in found:
        yield one


async def missing(parts: Sequence[Single], leaders: str, checked_by: str, *, catch_up: CatchUp, lost: int = 0) -> int:
    """How many times lack a verdict by those data, after ``leaders`` decided them and some fires were ``lost``."""
    schedule, outcomes = schedule_of(*parts, catch_up=catch_up), list[TimeOutcome]()
    words = leaders.split()
    for data, until in zip(words[::2], words[1::2], strict=True):
        schedule, decided = led(schedule, data, at(until))
        outcomes += decided
    fires = [each.nominal_ms for each in outcomes if isinstance(each, Fire)][: -lost or None]
    runs = [each.run for each in outcomes if isinstance(each, RecordVerdict)]

    async def pause() -> None:
        return

    with other_zone_data(RULES[checked_by]):
        times = decided_times(schedule, 0, schedule.cursor_ms, 10_000)
        verdicts = VerdictCursor(_each(fires), _each(runs))  # type: ignore[arg-type]
        findings = await check_times(schedule, times, verdicts, pause)
    counted = [each.what.partition(" ")[0] for each in findings if each.kind is FindingKind.VERDICT_MISSING]
    assert not any(each.kind is FindingKind.VERDICT_DOUBLED for each in findings)
    return sum(map(int, counted))


HISTORIES = [
    ([DAILY], "new 08T16:30 old 12T17:30"),
    ([DAILY], "old 08T17:30 new 12T17:30"),
    ([DAILY], "new 04T16:30 old 05T17:30 new 06T16:30 old 07T17:30 new 08T16:30 old 09T17:30"),
    ([TWICE], "old 04T17:30 new 05T20:00 old 06T17:30 new 08T00:00"),
    ([Cron("*/20 7-18 * * *", ZONE)], "old 05T17:25 new 07T20:05 old 09T17:30"),
]


@pytest.mark.parametrize("checked_by", ["new", "old"])
@pytest.mark.parametrize("catch_up", [CatchUp.ALL, CatchUp.LATEST])
@pytest.mark.parametrize(("parts", "leaders"), HISTORIES)
async def test_a_time_that_other_data_moved_is_not_missing(
    parts: Sequence[Single], leaders: str, catch_up: CatchUp, checked_by: str
) -> None:
    assert await missing(parts, leaders, checked_by, catch_up=catch_up) == 0


@pytest.mark.parametrize("checked_by", ["new", "old"])
@pytest.mark.parametrize(("parts", "leaders"), HISTORIES)
async def test_a_time_that_nobody_decided_is_missing(parts: Sequence[Single], leaders: str, checked_by: str) -> None:
    found = await missing(parts, leaders, checked_by, catch_up=CatchUp.ALL, lost=3)
    assert 1 <= found <= 3


async def test_where_the_data_were_the_same_each_lost_time_is_missing() -> None:
    assert await missing([DAILY], "new 12T00:00", "new", catch_up=CatchUp.ALL, lost=3) == 3
