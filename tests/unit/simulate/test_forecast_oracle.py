"""The forecast beside the simulator, which runs the real core: as many jobs, and as many of them wait."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from hascheduler.dispatch.forecast.queueing import STEP_MS
from hascheduler.simulate.outcome import RunOutcome
from hascheduler.simulate.parsing import scenario_of
from hascheduler.simulate.run import run
from tests.unit.dispatch.forecasts import DAY_MS, forecast_of, once, schedule
from tests.unit.simulate.scenarios import document, job, processor

AHEAD_MS = 4 * 3_600_000
WHOLE = st.lists(st.tuples(st.integers(1, 90), st.integers(1, 20)), min_size=1, max_size=40)
PARTS = st.lists(st.tuples(st.integers(1, 90), st.integers(1, 600)), min_size=1, max_size=40)


def simulated(jobs: list[tuple[int, float]], slots: int) -> RunOutcome:
    """``jobs`` are (minute, seconds)."""
    asked = [job(f"{n:03}", seconds, submit_at=60 * minute) for n, (minute, seconds) in enumerate(jobs)]
    return run(scenario_of(document(*asked, processors=[processor(slots=slots)], policy="arrival")))


def waiting(outcome: RunOutcome) -> list[int]:
    """By minute, the jobs that have come and not begun by its end."""
    found = []
    for minute in range(AHEAD_MS // STEP_MS):
        end_ms = (minute + 1) * STEP_MS
        began = [record.started_at_ms for record in outcome.jobs if record.job.submit_at_ms < end_ms]
        found.append(sum(at_ms is None or at_ms >= end_ms for at_ms in began))
    return found


@settings(max_examples=60)
@given(WHOLE, st.integers(1, 8))
def test_where_jobs_take_whole_minutes_both_are_the_same_in_every_minute(
    jobs: list[tuple[int, int]], slots: int
) -> None:
    # Of one minute the forecast takes the cheaper ones first.
    ordered = sorted(jobs)
    outcome = simulated([(minute, 60.0 * length) for minute, length in ordered], slots)
    # Costs of one class have one mean: each job is a definition of its own, and no two share a minute and a class.
    schedules = [schedule(f"{n:03}", once(minute)) for n, (minute, _) in enumerate(ordered)]
    costs = {f"{n:03}": length * STEP_MS for n, (_, length) in enumerate(ordered)}
    forecast = forecast_of(schedules, slots, costs=costs, ahead_ms=AHEAD_MS)
    arrived = Counter(minute for minute, _ in ordered)
    assert [forecast.jobs[minute] for minute in range(100)] == [arrived[minute] for minute in range(100)]
    kinds = Counter((minute, (length * STEP_MS).bit_length()) for minute, length in set(ordered))
    if max(kinds.values()) == 1:
        assert forecast.waiting[: AHEAD_MS // STEP_MS] == waiting(outcome)


@settings(max_examples=60)
@given(PARTS, st.integers(1, 8))
def test_with_any_cost_no_fewer_wait_than_really_and_no_more_than_with_a_cost_that_fits_into_minutes(
    jobs: list[tuple[int, int]], slots: int
) -> None:
    seconds = sum(seconds for _, seconds in jobs) // len(jobs)
    minutes = sorted(minute for minute, _ in jobs)
    schedules = [schedule(f"{n:03}", once(minute)) for n, minute in enumerate(minutes)]
    forecast = forecast_of(schedules, slots, costs={each.name: seconds * 1_000 for each in schedules}, ahead_ms=DAY_MS)
    assert sum(forecast.jobs) == len(jobs)
    assert forecast.waiting[-1] == 0
    # A job that does not fit into what is left of a minute waits for the next one.
    coarse = 60.0 * -(-seconds // 60) if seconds >= 60 else 60.0 / (60 // seconds)
    really = waiting(simulated([(minute, float(seconds)) for minute in minutes], slots))
    coarsely = waiting(simulated([(minute, coarse) for minute in minutes], slots))
    expected = forecast.waiting[: len(really)]
    assert all(least <= found <= most for least, found, most in zip(really, expected, coarsely, strict=True))
