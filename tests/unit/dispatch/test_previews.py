"""The fires to come, compared before and after an edit, without a request."""

from dataclasses import replace

from hascheduler.dispatch.schedules.previews import (
    FiresToCome,
    compare_fires,
    finished,
    make_preview,
    next_fire,
)
from hascheduler.model.trigger import Interval, Trigger, Window
from hascheduler.triggers import Upcoming
from tests.unit.dispatch.nouns import make_schedule, wall

EACH_SECOND = Trigger(Interval(1_000, wall(0)))


def fires(trigger: Trigger, fired: int = 0) -> FiresToCome:
    return FiresToCome("tick", trigger, wall(0), fired)


def nominal(upcoming: list[Upcoming]) -> list[int]:
    return [each.nominal_ms - wall(0) for each in upcoming]


def test_an_edit_adds_and_removes_fires_through_the_later_of_both_ends() -> None:
    every_two = replace(EACH_SECOND, pattern=Interval(2_000, wall(0)))
    changed = finished(compare_fires(fires(EACH_SECOND), fires(every_two), 2))
    assert (list(changed.added), nominal([*changed.removed])) == ([], [1_000, 3_000])
    assert changed.until_ms == wall(4_000)


def test_a_comparison_that_is_cut_ends_where_both_are_known() -> None:
    hourly = replace(EACH_SECOND, pattern=Interval(3_600_000, wall(0)))
    changed = finished(compare_fires(fires(EACH_SECOND), fires(hourly), 10))
    assert changed.until_ms == wall(1_000_000)
    assert (len(changed.removed), list(changed.added)) == (1_000, [])


def test_fires_that_start_later_have_used_up_those_before() -> None:
    later = finished(fires(replace(EACH_SECOND, max_fires=5)).starting_at(wall(4_000)))
    assert (later.fired, nominal(finished(later.first(9)))) == (3, [4_000, 5_000])


def test_the_next_fire_lies_in_no_exclusion_window_and_respects_a_pause_and_max_fires() -> None:
    excluding = replace(EACH_SECOND, exclude=(Window(wall(1_000), wall(3_000)),))
    schedule = make_schedule("tick", trigger=excluding)
    found = next_fire(schedule)
    assert found is not None
    assert found.nominal_ms == wall(3_000)
    assert next_fire(replace(schedule, paused_at_ms=wall(0))) is None
    exhausted = replace(schedule.tally, fired=1)
    assert next_fire(replace(schedule, trigger=replace(excluding, max_fires=1), tally=exhausted)) is None


def test_a_preview_shows_each_fire_in_utc_where_the_trigger_has_no_zone() -> None:
    shown = finished(make_preview("tick", EACH_SECOND, wall(0), finished(fires(EACH_SECOND).first(2))))
    assert (shown.timezone, shown.clock_changes) == ("UTC", [])
    assert [fire.local.endswith("+00:00") for fire in shown.fires] == [True, True]
    assert [fire.due_at for fire in shown.fires] == [fire.nominal_at for fire in shown.fires]
