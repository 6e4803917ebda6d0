"""`plan_backfill` and `backfill_times`: which nominal times get a job, under which id, without a request or a store."""

from dataclasses import replace

import pytest

from hascheduler.dispatch.schedules.backfill import backfill_times, plan_backfill, possible_job_ids
from hascheduler.dispatch.schedules.previews import finished
from hascheduler.errors import InvalidInput
from hascheduler.model.job import ScheduleId, backfill_job_id, fire_job_id
from hascheduler.model.trigger import Interval, Trigger, Window
from tests.unit.dispatch.nouns import make_schedule, wall

SCHEDULE = make_schedule("tick")
EARLIER = SCHEDULE.identity._replace(created_at_ms=SCHEDULE.created_at_ms - 1)
TIMES = [wall(1_000), wall(2_000)]
DECIDED = replace(SCHEDULE, cursor_ms=wall(2_000))


def backfill_id(nominal_ms: int, of: ScheduleId | None = None) -> str:
    return backfill_job_id("tick", nominal_ms, None if of is None else of.created_at_ms)


def test_times_without_a_job_get_one_and_the_others_keep_theirs() -> None:
    makers = {fire_job_id("tick", TIMES[0]): DECIDED.identity}
    plan = plan_backfill(DECIDED, TIMES, makers, wall(2_500))
    assert plan.job_ids == {TIMES[0]: fire_job_id("tick", TIMES[0]), TIMES[1]: backfill_id(TIMES[1])}
    assert (plan.missing, plan.undecided) == ([TIMES[1]], 0)


def test_an_undecided_time_is_left_alone_unless_its_fire_is_committed() -> None:
    plan = plan_backfill(SCHEDULE, TIMES, {}, wall(2_500))
    assert (plan.job_ids, plan.missing, plan.undecided) == ({}, [], 2)
    makers = {fire_job_id("tick", TIMES[0]): SCHEDULE.identity}
    plan = plan_backfill(SCHEDULE, TIMES, makers, wall(2_500))
    assert (list(plan.job_ids), plan.missing, plan.undecided) == ([TIMES[0]], [], 1)


@pytest.mark.parametrize("made_by", [EARLIER, None], ids=["an earlier schedule", "no schedule"])
def test_a_job_of_another_schedule_does_not_count_and_its_id_is_not_taken(made_by: ScheduleId | None) -> None:
    makers = {backfill_id(TIMES[0]): made_by, fire_job_id("tick", TIMES[1]): made_by}
    plan = plan_backfill(DECIDED, TIMES, makers, wall(2_500))
    assert plan.job_ids == {TIMES[0]: backfill_id(TIMES[0], DECIDED.identity), TIMES[1]: backfill_id(TIMES[1])}
    assert plan.missing == TIMES
    # A repeat finds the job under the longer id.
    repeated = plan_backfill(DECIDED, TIMES, {**makers, plan.job_ids[TIMES[0]]: DECIDED.identity}, wall(2_500))
    assert (repeated.job_ids, repeated.missing) == (plan.job_ids, [TIMES[1]])


def test_each_planned_id_is_among_the_possible_ones() -> None:
    plan = plan_backfill(DECIDED, TIMES, {backfill_id(TIMES[0]): EARLIER}, wall(2_500))
    assert set(plan.job_ids.values()) <= set(possible_job_ids(DECIDED.identity, TIMES))


def test_excluded_times_are_left_out_of_the_span_and_of_the_limit() -> None:
    trigger = Trigger(Interval(1_000, wall(0)), exclude=(Window(wall(1_000), wall(1_001_000)),))
    times = finished(backfill_times(trigger, wall(0), wall(1_999_000)))
    assert (len(times), times[:2]) == (1_000, [wall(0), wall(1_001_000)])
    with pytest.raises(InvalidInput, match="1001 nominal times"):
        finished(backfill_times(trigger, wall(0), wall(2_000_000)))
