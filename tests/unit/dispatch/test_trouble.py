"""Which schedules need a look: the late ones."""

from typing import Any

import pytest

from hascheduler.dispatch.schedules.edits import paused, resumed, with_trigger
from hascheduler.dispatch.schedules.trouble import is_late
from hascheduler.model.verdict import FireCounts
from hascheduler.schema.calendar import Calendar
from hascheduler.schema.schedule import SchedulePolicy, ScheduleRef
from hascheduler.schema.trigger import CalendarUse, Cron, Interval, Once, Trigger, Window
from tests.unit.dispatch.nouns import make_schedule, wall

MINUTE = 60_000
MINUTELY = Interval(MINUTE, wall(0))
WEEKEND = {"weekend": Calendar(name="weekend", weekdays=(5, 6))}  # the core's tests begin on a Tuesday


def every_minute(**only_what_matters: Any) -> ScheduleRef:
    return make_schedule("s", trigger=Trigger(MINUTELY), **only_what_matters)


def triggered(pattern: Any = MINUTELY, **only_what_matters: Any) -> ScheduleRef:
    return make_schedule("s", trigger=Trigger(pattern, **only_what_matters))


def in_weekend(calendar: str) -> ScheduleRef:
    return triggered(calendars=CalendarUse((calendar,), ()))


@pytest.mark.parametrize(
    ("schedule", "late_after_ms"),
    [
        (every_minute(), 2 * MINUTE),
        (every_minute(policy=SchedulePolicy(grace_ms=0)), 2 * MINUTE),
        (every_minute(policy=SchedulePolicy(grace_ms=10 * MINUTE)), 11 * MINUTE),
        (every_minute(cursor_ms=wall(5 * MINUTE)), 7 * MINUTE),
        (every_minute(paused_at_ms=wall(0)), None),
        (resumed(paused(every_minute(), wall(10)), wall(5 * MINUTE + 10), from_now=True), 7 * MINUTE),
        (with_trigger(every_minute(), Trigger(Once(wall(900 * MINUTE))), wall(MINUTE)), 2 * MINUTE),
        (triggered(Once(wall(3 * MINUTE))), 4 * MINUTE),
        (triggered(Once(wall(-MINUTE))), None),
        (triggered(Cron("0 0 * * *", "UTC")), MINUTE + 20_000),
        (triggered(Cron("nonsense", "UTC")), None),
        (triggered(exclude=(Window(wall(0), wall(5 * MINUTE)),)), 6 * MINUTE),
        (in_weekend("weekend"), None),
        (in_weekend("no-such-calendar"), 2 * MINUTE),
        (make_schedule("s", trigger=Trigger(MINUTELY, max_fires=3), tally=FireCounts(fired=3)), None),
    ],
)
def test_a_schedule_is_late_a_minute_and_its_grace_after_a_fire_that_was_not_decided(
    schedule: ScheduleRef, late_after_ms: int | None
) -> None:
    at = [ms for ms in range(0, 20 * MINUTE, 10_000) if is_late(schedule, WEEKEND, wall(ms))]
    assert at == ([] if late_after_ms is None else [*range(late_after_ms + 10_000, 20 * MINUTE, 10_000)])
