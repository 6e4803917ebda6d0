"""What effects come to: who is expected, who counts, and who is counted once."""

import pytest

from hascheduler.demo.evidence import Effect
from tests.bench.peers.figures import failover_of, fires_of, kill_of, throughput_of


def fire(schedule: str, nominal_ms: int, *, lag_ms: int = 0) -> Effect:
    return Effect(f"fire:{schedule}:{nominal_ms}", 1, nominal_ms, nominal_ms + lag_ms)


def unknown(schedule: str, at_ms: int) -> Effect:
    return Effect(f"fire:{schedule}:task-{at_ms}", 1, None, at_ms)


def every_second(schedule: str, seconds: range, *, lag_ms: int = 0) -> list[Effect]:
    return [fire(schedule, 1_000 * second, lag_ms=lag_ms) for second in seconds]


def job(number: int, at_ms: int) -> Effect:
    return Effect(f"job:{number}", 1, None, at_ms)


def test_a_throughput_lasts_from_the_first_submit_to_the_last_effect() -> None:
    effects = [job(1, 1_200), job(2, 1_500), job(3, 3_000)]
    assert throughput_of(effects, 3, begin_ms=1_000) == {"jobs_per_s": 2, "lost": 0, "doubled": 0}


def test_jobs_that_never_ran_are_lost_and_those_that_ran_twice_count_once() -> None:
    effects = [job(1, 1_500), job(1, 1_600), job(2, 2_000)]
    assert throughput_of(effects, 3, begin_ms=1_000) == {"jobs_per_s": 2, "lost": 1, "doubled": 1}


def test_without_any_effect_all_jobs_are_lost() -> None:
    assert throughput_of([], 3, begin_ms=1_000) == {"jobs_per_s": 0, "lost": 3, "doubled": 0}


def test_a_window_holds_its_end_and_not_its_beginning() -> None:
    figures = fires_of(every_second("s-0", range(10)), 1, from_ms=2_000, until_ms=5_000)
    assert (figures["expected"], figures["not_fired"], figures["doubled"]) == (3, 0, 0)


@pytest.mark.parametrize(
    ("effects", "not_fired", "doubled"),
    [
        pytest.param([], 6, 0, id="nothing at all"),
        pytest.param(every_second("s-0", range(1, 4)), 3, 0, id="one schedule of two"),
        pytest.param(every_second("s-0", range(1, 4)) + every_second("s-1", range(2, 4)), 1, 0, id="one nominal time"),
        pytest.param(
            [*every_second("s-0", range(1, 4)), fire("s-0", 2_000), *every_second("s-1", range(1, 4))], 0, 1, id="twice"
        ),
        pytest.param(
            [fire("s-0", at) for at in (500, 1_000, 1_500, 2_000, 2_500, 3_000)],
            3,
            0,
            id="too often makes up for nobody",
        ),
        pytest.param([unknown("s-0", at) for at in (900, 1_900, 2_900)], 3, None, id="unknown nominal times"),
    ],
)
def test_not_fired_and_doubled(effects: list[Effect], not_fired: int, doubled: int | None) -> None:
    figures = fires_of(effects, 2, from_ms=0, until_ms=3_000)
    assert (figures["not_fired"], figures["doubled"]) == (not_fired, doubled)


def test_lag_is_from_the_nominal_time_and_unknown_where_that_is() -> None:
    known = fires_of(every_second("s-0", range(1, 4), lag_ms=40), 1, from_ms=0, until_ms=3_000)
    assert (known["lag_p50_ms"], known["lag_p99_ms"]) == (40, 40)
    counted = fires_of([unknown("s-0", 1_000)], 1, from_ms=0, until_ms=3_000)
    assert (counted["lag_p50_ms"], counted["lag_p99_ms"]) == (None, None)


def test_a_schedule_has_resumed_with_its_first_effect_for_a_time_after_the_kill() -> None:
    effects = [
        *every_second("s-0", range(8, 16), lag_ms=100),
        *every_second("s-1", range(8, 11)),
        *every_second("s-1", range(13, 16), lag_ms=200),
        fire("s-1", 10_000, lag_ms=900),  # due before the kill: late, and no sign of life
    ]
    figures = kill_of(effects, 2, killed_at_ms=10_000, until_ms=15_000)
    assert (figures["resumed_p50_ms"], figures["resumed_last_ms"]) == (1_100, 3_200)
    assert (figures["expected"], figures["not_fired"], figures["doubled"]) == (14, 2, 1)


def test_a_schedule_without_an_effect_after_the_kill_has_never_resumed() -> None:
    figures = kill_of(every_second("s-0", range(20)), 2, killed_at_ms=10_000, until_ms=15_000)
    assert figures["never_resumed"] == 1


def test_kills_are_told_by_medians_and_the_worst_and_their_losses_are_added() -> None:
    kills = [
        {
            "resumed_p50_ms": 500,
            "resumed_last_ms": last,
            "never_resumed": 0,
            "expected": 10,
            "not_fired": 2,
            "doubled": 1,
        }
        for last in (900, 4_000, 1_000)
    ]
    together = failover_of(kills)
    assert (together["resumed_last_ms"], together["resumed_last_worst_ms"]) == (1_000, 4_000)
    assert (together["expected"], together["not_fired"], together["doubled"]) == (30, 6, 3)
