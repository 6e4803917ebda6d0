"""The nominal times of a trigger, and when each of them is due.

`next_nominal` answers the question that the core asks most: which nominal time comes after this one? It counts from the
previous nominal time, never from now, so every replica and every restart gets the same times. `latest_nominal` and
`count_nominal` answer for long stretches without stepping through them (`nominal`). The dialect of `cron` is in
`expressions`, its months in `walls`, its clock changes in `zones`. `due` leaves out the days of calendars.

This room applies the bounds of a trigger; `hascheduler.dispatch.schedules`, which decides the times, applies its
exclusion windows and its largest number of fires. If a cron expression can't be read, computing its times raises
`InvalidInput`.
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
