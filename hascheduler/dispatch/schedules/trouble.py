"""Which schedules need a look: those whose jobs fail, and those that are late."""

from collections.abc import Mapping

from hascheduler.dispatch.schedules.previews import next_fire
from hascheduler.dispatch.schedules.trigger_periods import next_decision_ms
from hascheduler.errors import InvalidInput
from hascheduler.model.values.instants import WallMs
from hascheduler.schema.calendar import Calendar
from hascheduler.schema.schedule import ScheduleRef
from hascheduler.triggers import MissingCalendar, with_calendars, without_calendars

LATE_MS_MIN = 60_000
"""A fire that is overdue for less is not late, however short the grace of its schedule."""


def is_failing(schedule: ScheduleRef) -> bool:
    """Return True if the last job of the schedule that succeeded or failed has failed."""
    return schedule.failures > 0


def is_late(schedule: ScheduleRef, calendars: Mapping[str, Calendar], now: int) -> bool:
    """Return True if a time that should fire has been overdue for longer than both the grace and a minute.

    A paused schedule is not late. While everything is paused or no replica leads, each becomes late: ask then why
    nobody decides instead. All times of a schedule that uses a missing calendar are overdue, as none of them fires.
    """
    last_ms = now - max(schedule.policy.grace_ms, LATE_MS_MIN)
    if schedule.paused_at_ms is not None or schedule.cursor_ms >= last_ms:
        return False  # nearly all that fire often
    try:
        try:
            known = with_calendars(schedule, calendars)
        except MissingCalendar:
            known = without_calendars(schedule)
        decided_at_ms = next_decision_ms(known, known.cursor_ms, known.tally, known.offsets)
        if decided_at_ms is None or decided_at_ms >= last_ms:
            return False  # nearly all others, without the search for a time that fires
        fire = next_fire(known)
    except InvalidInput:  # written by hand: it has no times
        return False
    return fire is not None and fire.due_ms < last_ms


def next_due_ms(schedule: ScheduleRef, calendars: Mapping[str, Calendar]) -> WallMs | None:
    """Return when its next fire is due; None if it has none, or its times can't be computed."""
    try:
        fire = next_fire(with_calendars(schedule, calendars))
    except InvalidInput:
        return None
    return None if fire is None else fire.due_ms
