"""The file of results, and the lists that a command line takes."""

import json
from pathlib import Path

import pytest

from hascheduler.errors import InvalidInput
from tests.bench.figures import summarize
from tests.bench.numbers import read_numbers
from tests.bench.results import Measured, add_results, read_results
from tests.bench.suite import SUITE, chosen


def measured(lag_ms: int) -> Measured:
    return Measured.of(summarize([{"lag_ms": lag_ms, "lags_ms": [lag_ms]}]), "python -m tests.bench fires", 1, 0.1)


def test_a_case_is_replaced_and_the_others_stay(tmp_path: Path) -> None:
    path = tmp_path / "bench/results.json"
    add_results("fires", {"200": measured(9), "1,000": measured(40)}, path)
    add_results("fires", {"200": measured(7)}, path)
    add_results("idle", {"leader": measured(1)}, path)
    benches = read_results(path).benches
    assert {
        bench: {label: each.figures["lag_ms"] for label, each in cases.items()} for bench, cases in benches.items()
    } == {
        "fires": {"200": 7, "1,000": 40},
        "idle": {"leader": 1},
    }
    assert benches["fires"]["200"].samples == {"lags_ms": [7]}


def test_results_of_another_machine_are_not_mixed_with_ours(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    add_results("fires", {"200": measured(9)}, path)
    told = json.loads(path.read_text())
    path.write_text(json.dumps(told | {"machine": told["machine"] | {"cores": 512}}))
    add_results("idle", {"leader": measured(1)}, path)
    assert set(read_results(path).benches) == {"idle"}


@pytest.mark.parametrize("text", ["", "{}", '{"machine": {}, "benches": {"fires": {"200": {"lag": 1}}}}', "[1]"])
def test_what_are_no_results_is_said_in_a_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "results.json"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=r"results\.json: no results"):
        read_results(path)


@pytest.mark.parametrize(("text", "numbers"), [("5", [5]), ("200,1000", [200, 1_000]), ("0, 1_000", [0, 1_000])])
def test_numbers_come_with_commas(text: str, numbers: list[int]) -> None:
    assert read_numbers("--rates", text, least=0) == numbers


@pytest.mark.parametrize("text", ["", "1,", "x", "1,-2", "1.5", "0"])
def test_what_are_no_numbers_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="--schedules"):
        read_numbers("--schedules", text)


def test_some_benchmarks_are_chosen_in_the_order_of_all() -> None:
    assert chosen("fires, throughput") == ["throughput", "fires"]
    assert chosen("") == list(SUITE)
    with pytest.raises(InvalidInput, match="there is no benchmark 'fire'"):
        chosen("fire")
