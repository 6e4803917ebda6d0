"""What a job costs: its loads, and what its figures are of."""

from dataclasses import replace

import pytest

from hascheduler.errors import InvalidInput
from tests.bench.cost import OPERATIONS, Counts, Rate, figures_of, read_loads

BEFORE = Counts(10.0, {"leader": 5.0, "load": 1.0}, dict.fromkeys(OPERATIONS, 100), 1_000, 2_000, 40)
AFTER = Counts(20.0, {"leader": 7.0, "load": 4.0}, {**BEFORE.operations, "insert": 420}, 6_000, 12_000, 140)


def test_figures_are_per_job_and_leave_out_the_load() -> None:
    figures = figures_of(BEFORE, AFTER)
    assert figures["jobs_per_s"] == 10
    assert figures["leader_cpu_percent"] == 20
    assert figures["cpu_ms_per_job"] == figures["leader_cpu_ms_per_job"] == 20
    assert figures["load_cpu_ms_per_job"] == 30
    assert figures["mongodb_ops_per_job"] == figures["mongodb_insert_per_job"] == 3.2
    assert (figures["mongodb_bytes_in_per_job"], figures["mongodb_bytes_out_per_job"]) == (50, 100)


def test_a_load_in_which_no_job_ran_has_no_figures_per_job() -> None:
    figures = figures_of(BEFORE, replace(AFTER, jobs=BEFORE.jobs))
    assert figures["leader_cpu_percent"] == 20
    assert not [name for name in figures if name.endswith("_per_job")]


@pytest.mark.parametrize(
    ("text", "loads"),
    [("50", [Rate(50)]), ("50, 200", [Rate(50), Rate(200)]), ("1000/500", [Rate(1_000, 500)])],
)
def test_loads_are_rates_and_perhaps_batches(text: str, loads: list[Rate]) -> None:
    assert read_loads(text) == loads


@pytest.mark.parametrize("text", ["", "0", "x", "50,", "-1", "1.5", "1/0", "1/2/3", "1000/", "²"])
def test_other_loads_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="--loads"):
        read_loads(text)
