"""What several runs come to, and how it is shown."""

import pytest

from tests.bench.figures import SAMPLES_MAX, slope, summarize, thinned
from tests.bench.results import Measured
from tests.bench.runs import tables


def test_figures_are_medians_with_the_least_and_the_largest_beside_them() -> None:
    summary = summarize([{"p99_ms": 12}, {"p99_ms": 90}, {"p99_ms": 11}])
    assert summary.figures == {"p99_ms": 12}
    assert summary.spread == {"p99_ms": (11, 90)}


@pytest.mark.parametrize(("values", "shown"), [([3, 5], "4"), ([3, 4], "3.5"), ([3.0], "3.0"), ([1 / 3], "0.333")])
def test_what_was_counted_stays_a_whole_number(values: list[float], shown: str) -> None:
    assert str(summarize([{"jobs": value} for value in values]).figures["jobs"]) == shown


@pytest.mark.parametrize("name", ["missed", "doubled", "lost", "failed"])
def test_one_bad_run_is_not_outvoted_by_good_ones(name: str) -> None:
    assert summarize([{name: 0}, {name: 3}, {name: 0}]).figures == {name: 3}


def test_samples_of_all_runs_are_put_together_and_texts_are_the_last() -> None:
    summary = summarize([{"lags_ms": [3, 1], "plan": "scan"}, {"lags_ms": [2], "plan": "index"}])
    assert summary.samples == {"lags_ms": [1, 2, 3]}
    assert summary.figures == {"plan": "index"}


def test_thinned_samples_keep_their_ends_and_their_median() -> None:
    kept = thinned(list(range(100_000, -1, -1)))
    assert len(kept) == SAMPLES_MAX
    assert (kept[0], kept[SAMPLES_MAX // 2], kept[-1]) == (0, 50_000, 100_000)


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ([], 0),
        ([(5, 1)], 0),
        ([(0, 7), (1, 7), (2, 7)], 0),
        ([(0, 1), (1, 3), (2, 5)], 2),
        ([(0, 0), (1, 3), (2, 0)], 0),
    ],
)
def test_a_slope_is_that_of_the_nearest_line(points: list[tuple[float, float]], expected: float) -> None:
    assert slope(points) == pytest.approx(expected)


def test_few_cases_are_columns_and_many_are_rows_with_those_that_tell_the_same() -> None:
    def shown(loads: int) -> list[list[str]]:
        figures = {f"{load} jobs/s": {"cpu_ms": load, "late_ms": 0} for load in range(loads)} | {"idle": {"mb": 9}}
        cases = {label: Measured.of(summarize([each]), "", 1, 0) for label, each in figures.items()}
        return [[str(column.header) for column in table.columns] for table in tables(cases)]

    assert shown(2) == [["figure", "0 jobs/s", "1 jobs/s", "idle"]]
    assert shown(9) == [["case", "cpu_ms", "late_ms"], ["case", "mb"]]
