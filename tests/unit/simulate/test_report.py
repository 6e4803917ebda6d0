"""The figures of a small run, by hand.

One slot. ``a`` runs from 0 to 4, ``c`` from 4 to 6, ``b`` from 6 on, and ``d`` never::

    job  key  priority  submitted  starts  waits
    a    k    5         0          0       0
    b    k    1         1          6       5
    c    l    5         2          4       2
    d    l    0         3          -       5 by the end, at 8
"""

from fractions import Fraction

import pytest

from hascheduler.simulate.report import WaitFigures, percentile, report, start_shifts
from tests.unit.simulate.scenarios import job, outcome_of, processor

JOBS = (
    job("a", 4, fairness_key="k"),
    job("b", 9, fairness_key="k", priority=1, submit_at=1),
    job("c", 2, fairness_key="l", submit_at=2, lane="fast"),
    job("d", 1, fairness_key="l", priority=0, submit_at=3, lane="fast"),
)


def test_the_figures_are_those_at_the_end() -> None:
    found = report(outcome_of(*JOBS, policy="affinity", until=8, definitions={"x": {"tier": 7}}))
    assert (found.jobs, found.completed, found.pending, found.lost, found.gave_up) == (4, 2, 1, 0, 0)
    assert found.per_hour == 900
    assert found.utilisation == 1
    assert found.waits == WaitFigures(4, 7_000 // 3, 2_000, 5_000, 5_000)
    assert found.waits_by["key"] == {
        "k": WaitFigures(2, 2_500, 0, 5_000, 5_000),
        "l": WaitFigures(2, 2_000, 2_000, 2_000, 5_000),
    }
    counts = {kind: {name: each.jobs for name, each in groups.items()} for kind, groups in found.waits_by.items()}
    assert counts == {
        "tenant": {"default": 4}, "key": {"k": 2, "l": 2}, "lane": {"default": 2, "fast": 2},
        "tier": {"7": 4}, "mode": {"queued": 4},
    }  # fmt: skip


def test_the_longest_wait_counts_whether_or_not_it_is_over() -> None:
    assert report(outcome_of(*JOBS, policy="affinity", until=9)).waits.longest_ms == 6_000


def test_a_processor_is_used_for_as_long_as_it_is_there() -> None:
    there = [processor("p", slots=2, leave_at=4), processor("q", join_at=2, leave_at=10), processor("r", join_at=50)]
    found = report(outcome_of(job("a", 3), job("b", 9), processors=there, until=20))
    assert found.used == {"p": Fraction(7, 8), "q": Fraction(3, 4), "r": 0}
    assert (found.utilisation, found.lost) == (Fraction(13, 16), 2)


def test_starts_are_compared_job_by_job() -> None:
    first = outcome_of(*JOBS, policy="affinity", until=8)
    assert start_shifts(first, outcome_of(*JOBS, policy="arrival", until=14)) == ({"a": 0, "b": -2_000, "c": 9_000}, 0)
    assert start_shifts(first, outcome_of(*JOBS, policy="arrival", until=8)) == ({"a": 0, "b": -2_000}, 1)


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [([], 50, 0), ([7], 95, 7), ([1, 2], 50, 1), ([1, 2, 3], 50, 2), (list(range(1, 101)), 95, 95), ([1, 2], 100, 2)],
)
def test_a_percentile_is_one_of_the_values(values: list[int], percent: int, expected: int) -> None:
    assert percentile(values, percent) == expected


def test_a_run_of_nothing_has_figures_too() -> None:
    empty = report(outcome_of())
    assert empty.jobs == empty.per_hour == empty.utilisation == empty.waits.longest_ms == 0
