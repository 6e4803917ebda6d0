"""What runs come to, and which options are refused."""

from dataclasses import replace

import pytest

from hascheduler.demo.evidence import Effect
from hascheduler.errors import InvalidInput
from tests.bench.__main__ import chosen, read_numbers
from tests.bench.jobs import OPERATIONS, Counts, Rate, cost_between, read_loads
from tests.bench.peers.workloads import fires_of, kill_of, throughput_of
from tests.bench.results import Figures, Measured


def measured(*runs: Figures) -> Measured:
    return Measured.of(runs)


def test_figures_are_medians_and_what_went_wrong_once_is_not_outvoted() -> None:
    case = measured({"p99_ms": 12, "lost": 0, "plan": "a"}, {"p99_ms": 90, "lost": 3}, {"p99_ms": 11, "lost": 0})
    assert case.figures == {"p99_ms": 12, "lost": 3}
    assert (case.shown("p99_ms"), case.shown("lost")) == ("12 (11 to 90)", "3 (0 to 3)")
    assert measured({"plan": "scan"}, {"plan": "index"}).shown("plan") == "index"


BEFORE = Counts(10.0, {"leader": 5.0, "load": 1.0}, dict.fromkeys(OPERATIONS, 100), 40)
AFTER = Counts(20.0, {"leader": 7.0, "load": 4.0}, {**BEFORE.operations, "insert": 420}, 140)


def test_costs_are_per_job_and_leave_out_the_load() -> None:
    figures = cost_between(BEFORE, AFTER)
    assert (figures["jobs_per_s"], figures["leader_cpu_percent"]) == (10, 20)
    assert figures["cpu_ms_per_job"] == figures["leader_cpu_ms_per_job"] == 20
    assert figures["load_cpu_ms_per_job"] == 30
    assert figures["mongodb_ops_per_job"] == figures["mongodb_insert_per_job"] == 3.2
    at_rest = cost_between(BEFORE, replace(AFTER, jobs=BEFORE.jobs))
    assert not [name for name in at_rest if name.endswith("_per_job")]


def test_options_are_read_or_refused() -> None:
    assert read_numbers("--rates", "200, 1_000") == [200, 1_000]
    assert read_loads("50, 1000/500") == [Rate(50), Rate(1_000, 500)]
    assert chosen("fires, throughput") == ["throughput", "fires"]
    for text in ("", "1,", "x", "1,-2", "1.5", "0"):
        with pytest.raises(InvalidInput, match="--rates"):
            read_numbers("--rates", text)
    for text in ("", "0", "50,", "1.5", "1/0", "1/2/3", "1000/", "²"):
        with pytest.raises(InvalidInput, match="--loads"):
            read_loads(text)
    with pytest.raises(InvalidInput, match="there is no benchmark 'fire'"):
        chosen("fire")


# Beside others


def fire(schedule: str, nominal_ms: int, *, lag_ms: int = 0) -> Effect:
    return Effect(f"fire:{schedule}:{nominal_ms}", 1, nominal_ms, nominal_ms + lag_ms)


def unknown(schedule: str, at_ms: int) -> Effect:
    return Effect(f"fire:{schedule}:task-{at_ms}", 1, None, at_ms)


def every_second(schedule: str, seconds: range, *, lag_ms: int = 0) -> list[Effect]:
    return [fire(schedule, 1_000 * second, lag_ms=lag_ms) for second in seconds]


def test_jobs_that_never_ran_are_lost_and_those_that_ran_twice_count_once() -> None:
    effects = [Effect(f"job:{number}", 1, None, at_ms) for number, at_ms in ((1, 1_500), (1, 1_600), (2, 2_000))]
    assert throughput_of(effects, 3, begin_ms=1_000) == {"jobs_per_s": 2, "lost": 1, "doubled": 1}
    assert throughput_of([], 3, begin_ms=1_000) == {"jobs_per_s": 0, "lost": 3, "doubled": 0}


@pytest.mark.parametrize(
    ("effects", "not_fired", "doubled"),
    [
        pytest.param([], 6, 0, id="nothing at all"),
        pytest.param(every_second("s-0", range(4)), 3, 0, id="one schedule of two, the beginning not counted"),
        pytest.param(every_second("s-0", range(1, 4)) + every_second("s-1", range(2, 4)), 1, 0, id="one nominal time"),
        pytest.param(
            [*every_second("s-0", range(1, 4)), fire("s-0", 2_000), *every_second("s-1", range(1, 4))], 0, 1, id="twice"
        ),
        pytest.param(
            [fire("s-0", at) for at in (500, 1_000, 1_500, 2_000, 2_500, 3_000)], 3, 0, id="too often helps nobody"
        ),
        pytest.param([unknown("s-0", at) for at in (900, 1_900, 2_900)], 3, None, id="unknown nominal times"),
    ],
)
def test_not_fired_and_doubled(effects: list[Effect], not_fired: int, doubled: int | None) -> None:
    figures = fires_of(effects, 2, from_ms=0, until_ms=3_000)
    assert (figures["not_fired"], figures["doubled"]) == (not_fired, doubled)


def test_a_schedule_has_resumed_with_its_first_effect_for_a_time_after_the_kill() -> None:
    effects = [
        *every_second("s-0", range(8, 16), lag_ms=100),
        *every_second("s-1", range(8, 11)),
        *every_second("s-1", range(13, 16), lag_ms=200),
        fire("s-1", 10_000, lag_ms=900),  # due before the kill: late, and no sign of life
    ]
    figures = kill_of(effects, 3, killed_at_ms=10_000, until_ms=15_000)
    assert (figures["resumed_p50_ms"], figures["resumed_last_ms"]) == (1_100, 3_200)
    assert (figures["expected"], figures["not_fired"], figures["doubled"], figures["never_resumed"]) == (21, 9, 1, 1)
