"""What is to come: plans of backfills, previews, and the load ahead."""

from dataclasses import replace
from typing import Any

import pytest

from hascheduler.dispatch.schedules.backfill import backfill_times, plan_backfill
from hascheduler.dispatch.schedules.load_ahead import BUCKET_MS, BUCKETS, LoadAhead, load_ahead
from hascheduler.dispatch.schedules.previews import finished, next_fire
from hascheduler.errors import InvalidInput
from hascheduler.model.job import ScheduleId, backfill_job_id, fire_job_id
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import FireCounts
from hascheduler.schema.schedule import ScheduleRef
from hascheduler.schema.trigger import Cron, Interval, Once, Pattern, Times, Trigger, Window
from hascheduler.triggers import Upcoming
from tests.unit.dispatch.nouns import make_schedule, wall

EACH_SECOND = Trigger(Interval(1_000, wall(0)))


def nominal(upcoming: list[Upcoming]) -> list[int]:
    return [each.nominal_ms - wall(0) for each in upcoming]


def test_the_next_fire_lies_in_no_exclusion_window_and_respects_a_pause_and_max_fires() -> None:
    excluding = replace(EACH_SECOND, exclude=(Window(wall(1_000), wall(3_000)),))
    schedule = make_schedule("tick", trigger=excluding)
    found = next_fire(schedule)
    assert found is not None
    assert found.nominal_ms == wall(3_000)
    assert next_fire(replace(schedule, paused_at_ms=wall(0))) is None
    exhausted = replace(schedule.tally, fired=1)
    assert next_fire(replace(schedule, trigger=replace(excluding, max_fires=1), tally=exhausted)) is None


SCHEDULE = make_schedule("tick")
EARLIER = SCHEDULE.identity._replace(created_at_ms=SCHEDULE.created_at_ms - 1)
TIMES = [wall(1_000), wall(2_000)]
DECIDED = replace(SCHEDULE, cursor_ms=wall(2_000))


def backfill_id(nominal_ms: int, of: ScheduleId | None = None) -> str:
    return backfill_job_id("tick", nominal_ms, None if of is None else of.created_at_ms)


@pytest.mark.parametrize("made_by", [EARLIER, None], ids=["an earlier schedule", "no schedule"])
def test_a_job_of_another_schedule_does_not_count_and_its_id_is_not_taken(made_by: ScheduleId | None) -> None:
    makers = {backfill_id(TIMES[0]): made_by, fire_job_id("tick", TIMES[1]): made_by}
    plan = plan_backfill(DECIDED, TIMES, makers, wall(2_500))
    assert plan.job_ids == {TIMES[0]: backfill_id(TIMES[0], DECIDED.identity), TIMES[1]: backfill_id(TIMES[1])}
    assert plan.missing == TIMES
    # A repeat finds the job under the longer id.
    repeated = plan_backfill(DECIDED, TIMES, {**makers, plan.job_ids[TIMES[0]]: DECIDED.identity}, wall(2_500))
    assert (repeated.job_ids, repeated.missing) == (plan.job_ids, [TIMES[1]])


def test_excluded_times_are_left_out_of_the_span_and_of_the_limit() -> None:
    trigger = Trigger(Interval(1_000, wall(0)), exclude=(Window(wall(1_000), wall(1_001_000)),))
    times = finished(backfill_times(trigger, wall(0), wall(1_999_000)))
    assert (len(times), times[:2]) == (1_000, [wall(0), wall(1_001_000)])
    with pytest.raises(InvalidInput, match="1001 nominal times"):
        finished(backfill_times(trigger, wall(0), wall(2_000_000)))


FROM = 1_893_456_000_000
MINUTE_MS = 60_000
NOW = FROM + 5 * MINUTE_MS
AT_ONE = Once(WallMs(FROM + 60 * MINUTE_MS))


def schedule(pattern: Pattern, name: str = "a", definition: str = "log", **trigger: Any) -> ScheduleRef:
    plain = make_schedule(name, cursor_ms=WallMs(NOW), since_ms=WallMs(0))
    template = replace(plain.template, definition=definition)
    return replace(plain, trigger=replace(Trigger(pattern), **trigger), template=template)


def load(*schedules: ScheduleRef, minutes: float = 10, slots: int = 2) -> LoadAhead:
    steps = load_ahead(NOW, schedules, slots, {"log": 1}, {}, cost_ms=lambda _template, _name: int(minutes * MINUTE_MS))
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: LoadAhead = end.value
            return found


@pytest.mark.parametrize(
    ("trigger", "minutes", "needed"),
    [
        (schedule(AT_ONE), 10, {6: 1}),
        (schedule(AT_ONE), 25, {6: 1, 7: 1, 8: 1}),
        (schedule(AT_ONE, jitter_ms=10 * MINUTE_MS), 20, {6: 1, 7: 1, 8: 1}),
        (schedule(Times((WallMs(NOW - 1), WallMs(NOW + 1)))), 0.1, {0: 1}),
        (schedule(Interval(120 * MINUTE_MS, WallMs(MINUTE_MS))), 1, {12 * hour: 1 for hour in range(1, 12)}),
        (schedule(Interval(MINUTE_MS, WallMs(0))), 2, {0: 1} | dict.fromkeys(range(1, BUCKETS), 2)),
        (schedule(Interval(MINUTE_MS, WallMs(0)), max_fires=20), 10, {0: 1, 1: 9, 2: 9, 3: 2}),
        (schedule(Cron("*/5 3 * * *")), 20, {18: 2, 19: 4, **dict.fromkeys(range(20, 24), 4), 24: 3, 25: 1}),
        (schedule(Once(WallMs(NOW))), 10, {}),
        (schedule(Once(WallMs(FROM + BUCKETS * BUCKET_MS))), 10, {}),
        (replace(schedule(AT_ONE), paused_at_ms=WallMs(NOW)), 10, {}),
        (replace(schedule(AT_ONE, max_fires=1), tally=FireCounts(fired=1)), 10, {}),
    ],
)
def test_each_bucket_needs_the_fires_in_it_times_their_cost(
    trigger: ScheduleRef, minutes: float, needed: dict[int, int]
) -> None:
    everything, *_ = load(trigger, minutes=minutes).loads
    assert {bucket: slots for bucket, slots in enumerate(everything.needed) if slots} == needed


def test_what_is_too_much_is_said_by_spans_of_all_and_of_definitions_with_a_cap() -> None:
    names = [f"s{number}" for number in range(3)]
    found = load(*(schedule(AT_ONE, name, "log" if name == "s0" else "other") for name in names), minutes=30)
    assert [(each.definition, each.slots, max(each.needed)) for each in found.loads] == [(None, 2, 3), ("log", 1, 1)]
    spans = [list(each.too_much(FROM)) for each in found.loads]
    assert spans == [[(FROM + 6 * BUCKET_MS, FROM + 9 * BUCKET_MS, 3)], []]
