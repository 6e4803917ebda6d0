"""What an edit makes of a schedule's times."""

import pytest

from hascheduler.dispatch.schedules.edits import paused, resumed, with_trigger
from hascheduler.errors import Conflict
from hascheduler.schema.schedule import PAST_MAX, ScheduleRef, TriggerPeriod
from hascheduler.schema.trigger import Interval, Once, Trigger
from tests.unit.dispatch.nouns import make_schedule, wall

SECOND, MINUTE = Trigger(Interval(1_000, wall(0))), Trigger(Interval(60_000, wall(0)))


def test_the_undecided_times_of_the_old_trigger_stay_in_force_up_to_the_edit() -> None:
    edited = with_trigger(make_schedule("s", trigger=SECOND), MINUTE, wall(2_500))
    assert edited.past == (TriggerPeriod(SECOND, wall(0), wall(2_500)),)
    assert (edited.trigger, edited.since_ms, edited.cursor_ms) == (MINUTE, wall(2_500), wall(0))


def test_where_nothing_is_undecided_there_is_no_past() -> None:
    schedule = make_schedule("s", trigger=SECOND, cursor_ms=wall(2_000))
    assert with_trigger(schedule, MINUTE, wall(2_500)).past == ()


def test_the_same_trigger_is_no_edit() -> None:
    schedule = make_schedule("s", trigger=SECOND)
    assert with_trigger(schedule, SECOND, wall(2_500)) == schedule


def test_what_a_leader_with_a_faster_clock_has_decided_stays_decided() -> None:
    schedule = make_schedule("s", trigger=SECOND, cursor_ms=wall(5_000))
    assert with_trigger(schedule, MINUTE, wall(2_500)).since_ms == wall(5_000)


def test_of_two_edits_in_one_millisecond_each_begins_at_a_time_of_its_own() -> None:
    first = with_trigger(make_schedule("s", trigger=SECOND), MINUTE, wall(2_500))
    second = with_trigger(first, SECOND, wall(2_500))
    assert (first.since_ms, second.since_ms) == (wall(2_500), wall(2_501))


def test_a_pause_leaves_what_came_before_and_a_second_one_changes_nothing() -> None:
    schedule = make_schedule("s", trigger=SECOND)
    first = paused(schedule, wall(2_500))
    assert (first.paused_at_ms, first.past, first.since_ms) == (wall(2_500), (), wall(0))
    assert paused(first, wall(9_000)) == first


def test_resumed_from_now_the_times_in_between_are_paused_ones() -> None:
    schedule = resumed(paused(make_schedule("s", trigger=SECOND), wall(2_500)), wall(9_500), from_now=True)
    assert schedule.past == (
        TriggerPeriod(SECOND, wall(0), wall(2_500)),
        TriggerPeriod(SECOND, wall(2_500), wall(9_500), paused=True),
    )
    assert (schedule.paused_at_ms, schedule.since_ms) == (None, wall(9_500))


def test_resumed_catching_up_it_is_as_if_there_had_been_no_pause() -> None:
    schedule = make_schedule("s", trigger=SECOND)
    assert resumed(paused(schedule, wall(2_500)), wall(9_500), from_now=False) == schedule


def test_resuming_forgets_the_failures_and_what_is_not_paused_stays_as_it_is() -> None:
    failing = make_schedule("s", trigger=SECOND, failures=3)
    assert resumed(failing, wall(1), from_now=True) == failing
    assert resumed(paused(failing, wall(1)), wall(2), from_now=True).failures == 0


def test_a_new_trigger_in_a_pause_stays_paused_and_the_old_one_ends() -> None:
    edited = with_trigger(paused(make_schedule("s", trigger=SECOND), wall(2_500)), MINUTE, wall(4_500))
    assert edited.past == (
        TriggerPeriod(SECOND, wall(0), wall(2_500)),
        TriggerPeriod(SECOND, wall(2_500), wall(4_500), paused=True),
    )
    assert (edited.since_ms, edited.paused_at_ms) == (wall(4_500), wall(4_500))


def test_what_the_cursor_has_passed_is_forgotten() -> None:
    past = (TriggerPeriod(SECOND, wall(0), wall(2_500)), TriggerPeriod(SECOND, wall(2_500), wall(4_500), paused=True))
    schedule = make_schedule("s", trigger=MINUTE, past=past, since_ms=wall(4_500), cursor_ms=wall(4_000))
    assert with_trigger(schedule, SECOND, wall(5_000)).past == ()


def test_edits_that_no_leader_can_keep_up_with_are_refused() -> None:
    schedule = make_schedule("s", trigger=SECOND)

    def edited(schedule: ScheduleRef, number: int) -> ScheduleRef:
        return with_trigger(schedule, SECOND if number % 2 else Trigger(Interval(500, wall(0))), wall(number * 2_000))

    for number in range(1, PAST_MAX + 1):
        schedule = edited(schedule, number * 2) if number % 2 else edited(schedule, number * 2 + 1)
    with pytest.raises(Conflict, match="wait for a leader"):
        with_trigger(schedule, Trigger(Once(wall(10**9))), wall(10**8))
