"""The nominal times of a trigger, and when each of them is due.

`next_nominal` answers the question that the core asks most: which nominal time comes after this one? It is computed
from the previous nominal time, never from now, so every replica and every restart gets the same list. `latest_nominal`
and `count_nominal` answer for long stretches without going through them one by one. One file a kind: `interval`, `cron`
(its dialect in `expressions`, its months in `walls`, its clock changes in `zones`), `times`. `day_bits` counts the
times of several that are in one trigger. `days` has the calendars that schedules share. `remarks` say what its author
may not have meant.

The bounds of a trigger are kept here; its exclusion windows and its largest number of fires are left to the code that
decides the times (`hascheduler.dispatch.schedules`). A cron expression that can't be read is an `InvalidInput` when its
times are computed.
"""

from hascheduler.triggers.checks import check_trigger, shortest_gap_ms, shortest_gap_of_rules_ms
from hascheduler.triggers.cron import read_pattern
from hascheduler.triggers.days import (
    CALENDARS_USED_MAX,
    MissingCalendar,
    calendars_of,
    day_part,
    missing_calendar,
    on_calendars,
    run_until,
    with_calendars,
    without_calendars,
)
from hascheduler.triggers.due import count_firing, due_ms, excluded_until, is_excluded, next_firing
from hascheduler.triggers.interval import EVERY_MIN_MS
from hascheduler.triggers.nominal import count_nominal, latest_nominal, next_nominal
from hascheduler.triggers.preview import ClockChange, Upcoming, clock_changes, upcoming
from hascheduler.triggers.remarks import remarks
from hascheduler.triggers.times import TIMES_MAX

__all__ = [
    "CALENDARS_USED_MAX",
    "EVERY_MIN_MS",
    "TIMES_MAX",
    "ClockChange",
    "MissingCalendar",
    "Upcoming",
    "calendars_of",
    "check_trigger",
    "clock_changes",
    "count_firing",
    "count_nominal",
    "day_part",
    "due_ms",
    "excluded_until",
    "is_excluded",
    "latest_nominal",
    "missing_calendar",
    "next_firing",
    "next_nominal",
    "on_calendars",
    "read_pattern",
    "remarks",
    "run_until",
    "shortest_gap_ms",
    "shortest_gap_of_rules_ms",
    "upcoming",
    "with_calendars",
    "without_calendars",
]
