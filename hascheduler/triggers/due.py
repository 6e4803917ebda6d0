"""When a nominal time is due, and if it fires at all: jitter, exclusion windows and calendars.

A nominal time belongs to the local day that the zone's clock shows then, gaps and folds included. The days on which a
trigger fires are the bits of one number, so a run of days is passed in one step for each offset of the zone.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from zoneinfo import ZoneInfo

from hascheduler.errors import InvalidInput
from hascheduler.model.values.error_texts import expected_name
from hascheduler.model.values.instants import LATEST_MS, WallMs
from hascheduler.schema.calendar import Calendar
from hascheduler.schema.schedule import ScheduleRef
from hascheduler.schema.trigger import AnyOf, CalendarDays, CalendarUse, Trigger
from hascheduler.triggers.nominal import count_nominal, latest_nominal, next_nominal
from hascheduler.triggers.zones import DAY_S, span_at, zone_of

_RUN_MS_MAX = 400 * 86_400_000
_AHEAD_MS_MAX = 2 * 366 * 86_400_000
_SEARCHED_MAX = 512


def due_ms(schedule: str, trigger: Trigger, nominal_ms: int) -> WallMs:
    """Return the nominal time plus its jitter, which is evenly spread from 0 through ``jitter_ms``.

    The jitter is a hash of the schedule's name and the nominal time, so every replica finds the same, and two schedules
    of one trigger do not fire together. If times of several patterns are closer together than the jitter, none is due
    before an earlier one: they are decided in order.
    """
    if not trigger.jitter_ms:
        return WallMs(nominal_ms)
    due = _jittered(schedule, trigger, nominal_ms)
    if isinstance(trigger.pattern, AnyOf):
        earlier_ms = latest_nominal(trigger, nominal_ms - 1)
        for _ in trigger.parts:  # of each there is one at most, as its gaps are longer than the jitter
            if earlier_ms is None or earlier_ms + trigger.jitter_ms <= due:
                break
            due = max(due, _jittered(schedule, trigger, earlier_ms))
            earlier_ms = latest_nominal(trigger, earlier_ms - 1)
    return due


def _jittered(schedule: str, trigger: Trigger, nominal_ms: int) -> WallMs:
    digest = blake2b(f"{schedule}:{nominal_ms}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return WallMs(nominal_ms + int.from_bytes(digest, "big") % (trigger.jitter_ms + 1))


def is_excluded(trigger: Trigger, nominal_ms: int) -> bool:
    """Return True if the nominal time lies in an exclusion window, or on a day that calendars leave out."""
    if _window_end(trigger, nominal_ms) is not None:
        return True
    return trigger.calendars is not None and day_part(trigger, nominal_ms).left_out_by is not None


def excluded_until(trigger: Trigger, nominal_ms: int) -> WallMs | None:
    """Return the end of the exclusion window or of the left-out days around the nominal time, or None if it fires.

    What follows may be excluded too: of many days in a row, about a year is passed at once.
    """
    end_ms = _window_end(trigger, nominal_ms)
    if end_ms is not None or trigger.calendars is None:
        return end_ms
    part = day_part(trigger, nominal_ms)
    return None if part.left_out_by is None else run_until(trigger, part, nominal_ms + _RUN_MS_MAX)


def _window_end(trigger: Trigger, nominal_ms: int) -> WallMs | None:
    place = bisect_right(trigger.exclude, nominal_ms, key=lambda window: window.from_ms)
    return trigger.exclude[place - 1].to_ms if place and nominal_ms < trigger.exclude[place - 1].to_ms else None


def next_firing(trigger: Trigger, after_ms: int) -> WallMs | None:
    """Return the first nominal time after ``after_ms`` that is not excluded.

    None if there is none; with calendars, also if all times of two years are excluded. The last search is remembered,
    so asking again costs only the times that have come into these two years since.
    """
    nominal_ms = next_nominal(trigger, after_ms)
    days = None if trigger.calendars is None else trigger.calendars.days
    if days is None or nominal_ms is None:
        return _first_firing(trigger, nominal_ms, LATEST_MS)[0]
    searched = _searched(trigger, days.bits)
    last_ms, from_ms = nominal_ms + _AHEAD_MS_MAX, after_ms
    if searched.after_ms <= after_ms <= searched.through_ms:
        from_ms, nominal_ms = searched.after_ms, next_nominal(trigger, searched.through_ms)
    found, through_ms = _first_firing(trigger, nominal_ms, last_ms)
    searched.after_ms, searched.through_ms = from_ms, through_ms
    return found


class _SearchedSpan:
    """A span, after ``after_ms`` through ``through_ms``, in which nothing fires."""

    def __init__(self) -> None:
        self.after_ms = self.through_ms = -1


@lru_cache(_SEARCHED_MAX)
def _searched(trigger: Trigger, days: int) -> _SearchedSpan:
    """Return what is known about the trigger with these ``days``."""
    return _SearchedSpan()


def _first_firing(trigger: Trigger, nominal_ms: WallMs | None, last_ms: int) -> tuple[WallMs | None, int]:
    """Return the first time from ``nominal_ms`` through ``last_ms`` that fires, and through when none does."""
    while nominal_ms is not None and nominal_ms <= last_ms:
        until_ms = excluded_until(trigger, nominal_ms)
        if until_ms is None:
            return nominal_ms, nominal_ms - 1
        nominal_ms = next_nominal(trigger, until_ms - 1)
    return None, LATEST_MS if nominal_ms is None else nominal_ms - 1


def count_firing(trigger: Trigger, from_ms: int, through_ms: int) -> int:
    """Return how many nominal times from ``from_ms`` through ``through_ms`` are not excluded.

    They are counted, not stepped through.
    """
    if trigger.calendars is None:
        return _count_outside_windows(trigger, from_ms, through_ms)
    first_ms = next_nominal(trigger, from_ms - 1)
    if first_ms is None:
        return 0
    runs = _firing_runs(trigger, first_ms, min(through_ms, LATEST_MS - 1))
    return sum(_count_outside_windows(trigger, *run) for run in runs)


def _count_outside_windows(trigger: Trigger, from_ms: int, through_ms: int) -> int:
    if through_ms < from_ms:
        return 0
    excluded = (
        count_nominal(trigger, max(from_ms, window.from_ms) - 1, min(through_ms, window.to_ms - 1))
        for window in trigger.exclude
        if window.to_ms > from_ms and window.from_ms <= through_ms
    )
    return count_nominal(trigger, from_ms - 1, through_ms) - sum(excluded)


CALENDARS_USED_MAX = 10
"""How many calendars each of the two lists of a trigger may hold."""
_ALL_DAYS = (1 << (LATEST_MS // 1_000 // DAY_S + 2)) - 1


class MissingCalendar(InvalidInput):
    """A trigger uses a calendar that does not exist."""


@dataclass(frozen=True, slots=True)
class DayPart:
    """A local day, until before ``until_ms``; a day that a clock change brings back has two such parts.

    ``left_out_by`` is the calendar that leaves it out; None if its times fire.
    """

    until_ms: WallMs
    left_out_by: str | None


def with_calendars(schedule: ScheduleRef, calendars: Mapping[str, Calendar]) -> ScheduleRef:
    """Return the schedule with the days of its calendars; raise `InvalidInput` if one does not exist."""
    if not calendars_of(schedule):
        return schedule
    past = tuple(replace(period, trigger=on_calendars(period.trigger, calendars)) for period in schedule.past)
    return replace(schedule, trigger=on_calendars(schedule.trigger, calendars), past=past)


def without_calendars(schedule: ScheduleRef) -> ScheduleRef:
    """Return the schedule with all its nominal times, including those that calendars leave out."""
    if not calendars_of(schedule):
        return schedule
    past = tuple(replace(period, trigger=replace(period.trigger, calendars=None)) for period in schedule.past)
    return replace(schedule, trigger=replace(schedule.trigger, calendars=None), past=past)


def calendars_of(schedule: ScheduleRef) -> AbstractSet[str]:
    """Return the names of the calendars that it uses, also for times that an edit left undecided."""
    if not schedule.past and schedule.trigger.calendars is None:  # nearly all
        return frozenset()
    triggers = (schedule.trigger, *(period.trigger for period in schedule.past))
    return {name for trigger in triggers if trigger.calendars is not None for name in trigger.calendars.names}


def on_calendars(trigger: Trigger, calendars: Mapping[str, Calendar]) -> Trigger:
    """Return the trigger with the days of its calendars; raise `InvalidInput` if one does not exist."""
    use = trigger.calendars
    if use is None:
        return trigger
    missing = missing_calendar(use, calendars)
    if missing is not None:
        raise missing
    only, excluding = (tuple(map(calendars.__getitem__, names)) for names in (use.only, use.excluding))
    bits = _ALL_DAYS
    for calendar in only:
        bits &= calendar.bits
    for calendar in excluding:
        bits &= ~calendar.bits
    return replace(trigger, calendars=replace(use, days=CalendarDays(only, excluding, bits)))


def missing_calendar(use: CalendarUse, calendars: Mapping[str, object]) -> "MissingCalendar | None":
    """Return the error for the first calendar that does not exist, or None."""
    for field, names in (("only", use.only), ("except", use.excluding)):
        for place, name in enumerate(names):
            if name not in calendars:
                expected = expected_name(name, tuple(calendars), "a calendar of /v1/calendars")
                return MissingCalendar(
                    ("trigger", "calendars", field, place), f"there is no calendar {name!r}", expected
                )
    return None


def day_part(trigger: Trigger, at_ms: int) -> DayPart:
    """Return the day that the instant lies in, by the clock that counts for the trigger's calendars."""
    days, zone = _days_and_zone(trigger)
    at_s = at_ms // 1_000
    span = span_at(zone, at_s)
    day = (at_s + span.offset_s) // DAY_S
    while (day + 1) * DAY_S - span.offset_s >= span.to_s:
        following = span_at(zone, span.to_s)
        if (span.to_s + following.offset_s) // DAY_S != day:
            break
        span = following
    until_s = min(span.to_s, (day + 1) * DAY_S - span.offset_s)
    return DayPart(WallMs(until_s * 1_000), _left_out_by(days, day))


def run_until(trigger: Trigger, part: DayPart, through_ms: int) -> WallMs:
    """Return the end of the run of days like ``part``, which all fire or none.

    If the run is longer, return the first instant after both ``part`` and ``through_ms``.
    """
    days, zone = _days_and_zone(trigger)
    others = days.bits if part.left_out_by is not None else ~days.bits
    at_s = part.until_ms // 1_000
    while at_s * 1_000 <= through_ms:
        span = span_at(zone, at_s)
        first = (at_s + span.offset_s) // DAY_S
        ahead = others >> first + 1
        if not ahead:
            break
        begins_s = max(at_s, (first + (ahead & -ahead).bit_length() - 1) * DAY_S - span.offset_s)
        if begins_s < span.to_s:
            return WallMs(max(part.until_ms, min(begins_s * 1_000, through_ms + 1)))
        at_s = span.to_s
    return WallMs(max(part.until_ms, through_ms + 1))


def _days_and_zone(trigger: Trigger) -> tuple[CalendarDays, ZoneInfo]:
    use = trigger.calendars
    assert use is not None
    if use.days is None:
        named = ", ".join(use.names)
        raise InvalidInput(
            ("trigger", "calendars"), f"the days of {named} are not known here", "a request to a replica"
        )
    return use.days, zone_of(use.timezone or trigger.zone)


def _firing_runs(trigger: Trigger, from_ms: int, through_ms: int) -> Iterator[tuple[int, int]]:
    """Yield the runs of days from ``from_ms`` through ``through_ms`` that fire: first and last instant."""
    while from_ms <= through_ms:
        part = day_part(trigger, from_ms)
        until_ms = run_until(trigger, part, through_ms)
        if part.left_out_by is None:
            yield from_ms, min(until_ms - 1, through_ms)
        from_ms = until_ms


def _left_out_by(days: CalendarDays, day: int) -> str | None:
    if days.bits >> day + 1 & 1:
        return None
    missing = (calendar.name for calendar in days.only if not calendar.has(day))
    return next(missing, None) or next((calendar.name for calendar in days.excluding if calendar.has(day)), None)
