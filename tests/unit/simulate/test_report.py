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

from hascheduler.simulate.report import ProcessorUse, WaitFigures, percentile, report
from tests.unit.simulate.scenarios import job, outcome_of, processor

JOBS = (
    job("a", 4, fairness_key="k"),
    job("b", 9, fairness_key="k", priority=1, submit_at=1),
    job("c", 2, fairness_key="l", submit_at=2, lane="fast"),
    job("d", 1, fairness_key="l", priority=0, submit_at=3, lane="fast"),
)
REPORT = report(outcome_of(*JOBS, policy="affinity", until=8, definitions={"x": {"tier": 7}}))


def test_the_counts_are_those_at_the_end() -> None:
    assert (REPORT.jobs, REPORT.completed, REPORT.running, REPORT.pending) == (4, 2, 1, 1)
    assert (REPORT.lost, REPORT.gave_up, REPORT.unschedulable) == (0, 0, ())
    assert REPORT.per_hour == 900
    assert REPORT.utilisation == 1


def test_the_waits_are_those_of_each_group() -> None:
    assert REPORT.waits == WaitFigures("all", 4, 3, 1, 7_000 // 3, 2_000, 5_000, 5_000, 5_000)
    assert REPORT.waits_by_key == (
        WaitFigures("k", 2, 2, 0, 2_500, 0, 5_000, 5_000, 0),
        WaitFigures("l", 2, 1, 1, 2_000, 2_000, 2_000, 2_000, 5_000),
    )
    assert [(each.name, each.jobs) for each in REPORT.waits_by_lane] == [("default", 2), ("fast", 2)]
    assert [(each.name, each.jobs) for each in REPORT.waits_by_tier] == [("7", 4)]
    assert [(each.name, each.jobs) for each in REPORT.waits_by_mode] == [("queued", 4)]


def test_the_longest_wait_counts_whether_or_not_it_is_over() -> None:
    assert REPORT.starved == "b"
    longer = report(outcome_of(*JOBS, policy="affinity", until=9, definitions={"x": {"tier": 7}}))
    assert longer.starved == "d"
    assert longer.waits.longest_ms == 6_000


def test_a_job_is_overtaken_by_those_that_came_later_and_started_earlier() -> None:
    overtakes = REPORT.overtakes
    assert (overtakes.times, overtakes.jobs, overtakes.most, overtakes.unluckiest) == (1, 1, 1, "b")


def test_those_that_start_at_one_instant_do_not_overtake_each_other() -> None:
    jobs = (job("a", submit_at=0, priority=0), job("b", submit_at=1, priority=9))
    outcome = outcome_of(*jobs, policy="affinity", processors=[processor(slots=2, join_at=2)])
    assert [attempt.job for attempt in outcome.attempts] == ["b", "a"]
    assert report(outcome).overtakes.times == 0


def test_modes_do_not_overtake_each_other() -> None:
    jobs = (job("a", 5), job("b", submit_at=1), job("c", submit_at=2, mode="on_demand"))
    outcome = outcome_of(*jobs, policy="affinity")
    assert [attempt.job for attempt in outcome.attempts] == ["a", "c", "b"]
    assert report(outcome).overtakes.times == 0


def test_a_processor_is_used_for_as_long_as_it_is_there() -> None:
    there = [processor("p", slots=2, leave_at=4), processor("q", join_at=2, leave_at=10), processor("r", join_at=50)]
    found = report(outcome_of(job("a", 3), job("b", 9), processors=there, until=20)).uses
    assert found == (
        ProcessorUse("p", 2, runs=2, lost=1, busy_ms=7_000, there_ms=4_000),
        ProcessorUse("q", 1, runs=1, lost=1, busy_ms=6_000, there_ms=8_000),
        ProcessorUse("r", 1, runs=0, lost=0, busy_ms=0, there_ms=0),
    )
    assert [each.share for each in found] == [Fraction(7, 8), Fraction(3, 4), 0]


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [([], 50, 0), ([7], 95, 7), ([1, 2], 50, 1), ([1, 2, 3], 50, 2), (list(range(1, 101)), 95, 95), ([1, 2], 100, 2)],
)
def test_a_percentile_is_one_of_the_values(values: list[int], percent: int, expected: int) -> None:
    assert percentile(values, percent) == expected


def test_a_run_of_nothing_has_figures_too() -> None:
    empty = report(outcome_of())
    assert empty.jobs == empty.per_hour == empty.utilisation == 0
    assert empty.starved is None
