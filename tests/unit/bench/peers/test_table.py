"""Ratios: which way they are, and between whom there are any."""

import runpy
import sys
from typing import Any

import pytest
from rich.console import Console

from tests.bench.peers.table import compare, ratios_of

_FAILOVER = {"kills": 1, "resumed_last_worst_ms": 2, "never_resumed": 0, "expected": 9, "not_fired": 0, "doubled": 0}


def system(**measured: Any) -> dict[str, Any]:
    return {"title": "a title", "keeps": "durable state", **measured}


def fires(p50_ms: int | None, p99_ms: int | None) -> dict[str, Any]:
    lags = {"lag_p50_ms": p50_ms, "lag_p99_ms": p99_ms}
    return {"200": {"expected": 1, "not_fired": 0, "not_fired_percent": 0.0, "doubled": 0, **lags}}


def throughput(jobs_per_s: int, **more: int) -> dict[str, int]:
    return {"jobs_per_s": jobs_per_s, "lost": 0, "doubled": 0, **more}


def test_above_one_ours_is_better_whether_more_is_better_or_less() -> None:
    systems = {
        "hascheduler": system(throughput=throughput(3_000, one_by_one_jobs_per_s=1_000), fires=fires(10, 20)),
        "agenda": system(throughput=throughput(500), fires=fires(30, 10)),
    }
    assert ratios_of(systems)["agenda"] == {
        "throughput_jobs_per_s": 6.0,
        "throughput_one_by_one_jobs_per_s": 2.0,
        "fires_200_lag_p50_ms": 3.0,
        "fires_200_lag_p99_ms": 0.5,
    }


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (system(throughput=throughput(5)), system(fires=fires(1, 2))),
        (system(fires=fires(1, 2)), system(fires=fires(None, None))),
        (system(fires=fires(0, 0)), system(fires=fires(1, 2))),
        (system(throughput=throughput(5)), system(not_run="npm is not installed")),
        (system(not_run="no server"), system(throughput=throughput(5))),
    ],
)
def test_what_cannot_be_compared_has_no_ratio(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    assert ratios_of({"hascheduler": ours, "agenda": theirs}) == {}


def test_the_tables_show_all_workloads_and_who_could_not_run() -> None:
    systems = {
        "hascheduler": system(
            throughput=throughput(3_000), fires=fires(10, 20), failover={**_FAILOVER, "resumed_last_ms": 1_234}
        ),
        "celery5": system(throughput=throughput(750), fires=fires(None, None)),
        "agenda": system(not_run="npm is not installed"),
    }
    console = Console(width=200)
    with console.capture() as captured:
        console.print(*compare(systems))
    shown = captured.get()
    for text in ("3,000", "4.0", "unknown", "1,234", "0 of 9", "npm is not installed"):
        assert text in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--systems", "agenda,quartz"], "--systems: unknown 'quartz'; expected some of hascheduler, agenda, "),
        (["--workloads", "speed"], "--workloads: unknown 'speed'; expected some of throughput, fires, failover"),
        (["--schedules", "10,ten"], "--schedules: 'ten' is no number of schedules; expected whole numbers"),
    ],
)
def test_a_wrong_argument_is_one_line_and_exit_code_2(
    arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["peers", *arguments])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("tests.bench.peers", run_name="__main__")
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert told.startswith(message)
    assert told.count("\n") == 1
