"""``hascheduler check`` as people and programs meet it: what it prints, and its status."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hascheduler.check.finding import CheckReport, Finding, FindingKind
from hascheduler.cli.setup.check import _document, _picture
from tests.unit.cli.invoking import invoke

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
    ("options", "said"),
    [
        (["--json", "--watch"], "--watch: cannot be combined with --json"),
        (["--job-retention", "soon"], "HASCHEDULER_JOB_RETENTION"),
        (["--every", "day"], "No such option"),
    ],
)
def test_wrong_usage_is_status_2(options: list[str], said: str) -> None:
    ended = invoke("check", *options)
    assert ended.status == 2
    assert said in ended.err


def test_its_old_name_still_works_and_is_announced_as_deprecated() -> None:
    assert "\n  audit " not in invoke("--help").out
    ended = invoke("audit", "--json", "--watch")
    assert ended.status == 2
    deprecation, problem = ended.err.splitlines()
    assert deprecation == "hascheduler: `hascheduler audit` is deprecated; use `hascheduler check`"
    assert "--watch: cannot be combined with --json" in problem


REPORT = CheckReport(
    at_ms=1_893_456_000_000,
    findings=(Finding(FindingKind.OVERDUE, "schedules/tick", "due for 90 s", "look there", since_ms=2**52),),
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
                "hint": "look there",
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
