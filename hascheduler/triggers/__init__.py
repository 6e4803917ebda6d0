"""The nominal times of a trigger, and when each of them is due.

`next_nominal` answers the question that the core asks most: which nominal time comes after this one? It is computed
from the previous nominal time, never from now, so every replica and every restart gets the same list. `latest_nominal`
and `count_nominal` answer for long stretches without going through them one by one (`nominal`). `cron` has its dialect
in `expressions`, its months in `walls`, its clock changes in `zones`. `due` leaves out the days of calendars.

The bounds of a trigger are kept here; its exclusion windows and its largest number of fires are left to the code that
decides the times (`hascheduler.dispatch.schedules`). A cron expression that can't be read is an `InvalidInput` when its
times are computed.
"""

from hascheduler.triggers.checks import check_trigger, shortest_gap_ms, shortest_gap_of_rules_ms
from hascheduler.triggers.cron import read_pattern
from hascheduler.triggers.due import (
    MissingCalendar,
    calendars_of,
    count_firing,
    day_part,
    due_ms,
    excluded_until,
    is_excluded,
    missing_calendar,
    next_firing,
    on_calendars,
    run_until,
    with_calendars,
    without_calendars,
)
from hascheduler.triggers.nominal import count_nominal, latest_nominal, next_nominal
from hascheduler.triggers.preview import ClockChange, Upcoming, clock_changes, remarks, upcoming
