"""The table and the pictures from given results."""

import json
from pathlib import Path
from typing import Any

import pytest

from hascheduler.errors import InvalidInput
from tests.bench.report import write_report

MACHINE = {"cores": 2, "cpu": "c", "memory_gb": 8, "system": "s", "python": "3", "mongodb": "6", "rabbitmq": "3"}
FIRES = {"expected": 60_000, "missed": 0, "doubled": 0, "lag_p50_ms": 9, "lag_p99_ms": 31}
COST = {"jobs_per_s": 50, "cpu_ms_per_job": 4.1, "mongodb_ops_per_job": 5, "leader_cpu_ms_per_job": 1}
PEERS = {
    "date": "2030-01-01",
    "command": "python -m tests.bench.peers",
    "machine": {"python": "3.12.1"},
    "systems": {
        "hascheduler": {
            "title": "hascheduler",
            "keeps": "durable state",
            "throughput_jobs_per_s": 2_345,
            "fires": {"1000": {"not_fired_percent": 0.0, "lag_p99_ms": 41}},
            "failover": {"resumed_last_ms": 1_040},
        },
        "agenda": {"title": "agenda 6", "keeps": "durable state", "not_run": "there is no npm"},
    },
}
SAMPLES = {
    "at_s": [10, 20],
    "resident_mb": {"replica-1": [70.1, None]},
    "lags_ms": {"jobs": [[5, 9, 20], [6, 10, 30]]},
    "kills": [[15, "replica-1"]],
}


def case(figures: dict[str, Any], runs: int = 1, **more: Any) -> dict[str, Any]:
    empty = {"date": "2030-01-01", "command": "make bench", "runs": runs, "load_1m": 0.1, "spread": {}, "samples": {}}
    return {**empty, "figures": figures, **more}


@pytest.fixture
def results(tmp_path: Path) -> Path:
    benches = {
        "fires": {"1,000 schedules": case(FIRES, 3, spread={"lag_p99_ms": [28, 47]}, samples={"lags_ms": [8, 9, 31]})},
        "cost": {
            "50 jobs/s": case(COST),
        },
    }
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"machine": MACHINE, "benches": benches}))
    return path


def test_the_table_has_what_was_measured_and_nothing_else(results: Path, tmp_path: Path) -> None:
    written = write_report(tmp_path / "docs", results, *[tmp_path / "none"] * 2)
    assert [path.name for path in written] == ["bench.md", "bench-latency.png", "bench-cost.png"]
    rows = [line for line in written[0].read_text().splitlines() if "2030-01-01" in line]
    assert rows == [
        "| 1,000 schedules firing every second, to start of the handler | 0 missed, 0 doubled of 60,000;"
        " lag p50 9, p99 31 ms (28 to 47 in 3 runs) | 0 missed, 0 doubled, p99 ≤ 50 ms | 2030-01-01 | `make bench` |",
        "| what a job costs at 50 jobs/s | 4.1 ms of CPU, 5 operations of MongoDB |  | 2030-01-01 | `make bench` |",
    ]


def test_peers_and_the_soak_are_shown_where_they_were_run(results: Path, tmp_path: Path) -> None:
    peers, soak = tmp_path / "peers.json", tmp_path / "samples.json"
    peers.write_text(json.dumps(PEERS))
    soak.write_text(json.dumps(SAMPLES))
    written = write_report(tmp_path / "docs", results, peers, soak)
    assert {path.name for path in written} >= {"bench-peers.png", "bench-soak.png"}
    table = written[0].read_text()
    assert "with Python 3.12.1" in table  # they may have been measured elsewhere
    assert "| hascheduler | durable state | 2,345 | 0.0 %, 41 ms | 1,040 ms |" in table
    assert "| agenda 6 | durable state | not run: there is no npm | | |" in table
    assert all(f"![]({path.name})" in table for path in written[1:])


def test_older_results_are_told_apart_from_missing_ones(results: Path, tmp_path: Path) -> None:
    told = json.loads(results.read_text())
    del told["benches"]["fires"]["1,000 schedules"]["figures"]["missed"]
    results.write_text(json.dumps(told))
    with pytest.raises(InvalidInput, match=r"fires\.1,000 schedules: there is no 'missed'"):
        write_report(tmp_path / "docs", results, *[tmp_path / "none"] * 2)


def test_without_results_there_is_no_report(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="there is no such file; expected what `make bench` writes"):
        write_report(tmp_path, tmp_path / "results.json", *[tmp_path / "none"] * 2)
