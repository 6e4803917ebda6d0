"""The forecast of a cluster: how much arrives, where it waits and why, and whose schedules do it."""

import pytest

from hascheduler.dispatch.forecast import forecast as room
from hascheduler.dispatch.forecast.forecast import Forecast, LimitedBy
from hascheduler.dispatch.forecast.inputs import OpenSlots, RunningJob
from hascheduler.dispatch.forecast.pools import SlotPools
from hascheduler.model.definition import Definition
from hascheduler.model.schedule import GraphJob, JobGraph, JobTemplate, ScheduleRef
from hascheduler.model.values.instants import WallMs
from tests.unit.dispatch.forecasts import ANY, HOUR_MS, MINUTE_MS, NOW, cron, every, forecast_of, schedule, shares_in

COST = 5 * MINUTE_MS


def nightly(count: int, definition: str = "log", tenant: str = "default", jitter_ms: int = 0) -> list[ScheduleRef]:
    return [
        schedule(f"{definition}-{n:03}", cron("0 3 * * *", jitter_ms=jitter_ms), definition, tenant=tenant)
        for n in range(count)
    ]


def peaks(forecast: Forecast) -> list[tuple[int, int, int, int, str]]:
    return [
        ((peak.from_ms - NOW) // MINUTE_MS, peak.lasts_ms // MINUTE_MS, peak.jobs, peak.slots, peak.limited_by.value)
        for peak in forecast.peaks
    ]


def test_41_jobs_at_3_for_16_slots() -> None:
    schedules = nightly(41)
    forecast = forecast_of(schedules, 16, costs={each.name: COST for each in schedules})
    assert peaks(forecast) == [(180, 10, 41, 16, "slots")]
    (peak,) = forecast.peaks
    assert (peak.waiting, peak.more_slots, peak.until_ms) == (25, 25, NOW + 190 * MINUTE_MS)
    assert (forecast.fires[180], forecast.jobs[180], forecast.wanted[180], forecast.waits[180]) == (41, 41, 41, 10)
    assert sum(forecast.fires) == sum(forecast.jobs) == 41
    assert forecast.slots == 16


def test_jitter_takes_the_peak_away() -> None:
    schedules = nightly(41, jitter_ms=30 * MINUTE_MS)
    forecast = forecast_of(schedules, 16, costs={each.name: COST for each in schedules})
    assert forecast.peaks == ()
    assert sum(forecast.jobs) == 41
    assert max(forecast.jobs) == 2


def test_what_a_definition_may_run_at_once_makes_peaks_of_its_own() -> None:
    schedules = [*nightly(4, "backup"), *nightly(4, "log")]
    costs = {each.name: COST for each in schedules}
    forecast = forecast_of(schedules, 16, costs=costs, definitions=[Definition("backup", max_concurrency=1)])
    assert peaks(forecast) == [(180, 15, 4, 1, "max_concurrency")]
    assert forecast.peaks[0].definition == "backup"
    assert forecast.waits[180] == 15
    assert forecast.wanted[180] == 5


def test_what_no_processor_takes_is_said_so() -> None:
    forecast = forecast_of([schedule("a", cron("0 3 * * *"), "odd")], [OpenSlots(frozenset({"log"}), 4)])
    assert [(peak.limited_by, peak.jobs, peak.until_ms) for peak in forecast.peaks] == [
        (LimitedBy.NO_PROCESSOR, 1, None)
    ]
    assert forecast.slots == 4


def test_pools_that_share_no_processor_do_not_wait_for_each_other() -> None:
    slots = [OpenSlots(frozenset({"a"}), 1), OpenSlots(frozenset({"b"}), 8)]
    schedules = [*nightly(8, "a"), *nightly(8, "b")]
    costs = {each.name: COST for each in schedules}
    assert peaks(forecast_of(schedules, slots, costs=costs)) == [(180, 35, 8, 1, "slots")]
    assert peaks(forecast_of(schedules, 9, costs=costs)) == [(180, 5, 16, 9, "slots")]


def test_a_definition_has_the_slots_that_take_it() -> None:
    offers = [OpenSlots(frozenset({"a"}), 2), OpenSlots(frozenset({"a", "b"}), 3), OpenSlots(frozenset({"c"}), 5)]
    pools = SlotPools(offers, {"b": Definition("b", max_concurrency=9)}, None)
    assert pools.slots == [5, 5]
    assert [(pools.flow(name).pool, pools.flow(name).cap) for name in ("a", "b", "c", "d")] == [
        (0, 0), (0, 3), (1, 0), (None, 0)
    ]  # fmt: skip
    assert SlotPools([*offers, OpenSlots(ANY, 1)], {}, None).slots == [11]
    assert SlotPools([OpenSlots(ANY, 8)], {}, 3).slots == [3]


def test_what_runs_and_waits_now_comes_first() -> None:
    running = [RunningJob("log", "x", WallMs(NOW - 2 * MINUTE_MS)), RunningJob("log", "y", None)]
    forecast = forecast_of(
        [schedule("a", every(60, at=1))], 2, costs={"x": COST, "y": COST}, running=running, waiting={"log": 3}
    )
    assert forecast.waiting[:5] == [3, 4, 4, 0, 0]
    assert forecast.jobs[0] == 3


def test_the_jobs_of_a_graph_come_one_after_the_other() -> None:
    def part(ref: str, *after: str) -> GraphJob:
        return GraphJob(ref, after, JobTemplate("log", ref, "default", "default", "key", 5, "queued"))

    graph = JobGraph((part("extract"), part("load", "extract"), part("report", "load")), (0, 1, 2))
    forecast = forecast_of(
        [schedule("a", cron("0 3 * * *"), graph=graph)], costs={"extract": COST, "load": 2 * COST, "report": 1}
    )
    assert [step for step, jobs in enumerate(forecast.jobs) if jobs] == [180, 185, 195]
    assert forecast.peaks == ()
    assert sum(forecast.fires) == 1


def test_pauses_and_what_is_not_known_are_said() -> None:
    forecast = forecast_of([schedule("a", cron("no cron")), schedule("b", every(60), paused_at_ms=NOW)])
    assert (forecast.left_out, sum(forecast.fires)) == (1, 0)


def test_what_is_too_much_to_add_up_is_spread_and_none_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "ADDED_MAX", 50)
    schedules = [schedule(f"s{n}", every(60 + n / 7)) for n in range(10)]
    forecast = forecast_of(schedules)
    assert forecast.spread > 0
    monkeypatch.undo()
    exact = forecast_of(schedules)
    assert exact.spread == 0
    assert sum(forecast.fires) == sum(exact.fires)
    assert sum(forecast.jobs) == sum(exact.jobs)


def test_the_schedules_with_the_most_work_in_a_peak_are_named() -> None:
    schedules = [*nightly(41), schedule("rest", every(60, at=7))]
    costs = {each.name: COST + n for n, each in enumerate(schedules)}
    forecast = forecast_of(schedules, 16, costs=costs)
    shares = shares_in(forecast)
    assert shares.jobs[0] == 41
    assert [(one.schedule, one.fires, one.jobs, one.work_ms) for one in shares.contributors[0]] == [
        (f"log-{n:03}", 1, 1, COST + n) for n in (40, 39, 38, 37, 36)
    ]
    assert shares.fires == forecast.fires


def test_a_part_of_the_schedules_has_its_own_numbers() -> None:
    schedules = [*nightly(20, tenant="acme"), *nightly(21, "x")]
    forecast = forecast_of(schedules, 16, costs={each.name: COST for each in schedules})
    shares = shares_in(forecast, range(20))
    assert shares.jobs[0] == sum(shares.fires) == 20
    assert {one.schedule[:3] for one in shares.contributors[0]} == {"log"}


def test_of_many_peaks_the_worst_are_kept_in_their_order() -> None:
    schedules = [schedule(f"s{n}", every(30, at=15)) for n in range(3)] + nightly(9)
    costs = {each.name: 2 * MINUTE_MS for each in schedules}
    forecast = forecast_of(schedules, 1, costs=costs)
    assert len(forecast.peaks) == room.PEAKS_MAX
    assert [peak.from_ms for peak in forecast.peaks] == sorted(peak.from_ms for peak in forecast.peaks)
    assert max(forecast.peaks, key=lambda peak: peak.lasts_ms).from_ms == NOW + 3 * HOUR_MS


def test_the_same_facts_in_another_order_give_the_same_forecast() -> None:
    schedules = [schedule(f"s{n}", every(7 + n % 5, at=n % 3), f"d{n % 4}") for n in range(40)]
    costs = {each.name: 20_000 + 7_000 * n for n, each in enumerate(schedules)}
    definitions = [Definition("d1", max_concurrency=1), Definition("d2", max_concurrency=2)]
    one, other = (forecast_of(each, 3, costs=costs, definitions=definitions) for each in (schedules, schedules[::-1]))
    assert (one.jobs, one.waiting, one.wanted, one.waits) == (other.jobs, other.waiting, other.wanted, other.waits)
    assert shares_in(one).contributors == shares_in(other).contributors
