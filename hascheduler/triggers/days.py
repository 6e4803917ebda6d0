"""The local days that the calendars of a trigger leave out, and the runs of them.

A nominal time belongs to the day that the clock of the zone shows then, gaps and folds included. The days that count
are the bits of one number, so a run of days is passed in one step for each offset of the zone, however long it is.
"""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from zoneinfo import ZoneInfo

from hascheduler.errors import InvalidInput
from hascheduler.model.calendar import Calendar
from hascheduler.model.schedule import ScheduleRef
from hascheduler.model.trigger import CalendarDays, CalendarUse, Trigger
from hascheduler.model.values.error_texts import expected_name
from hascheduler.model.values.instants import LATEST_MS, WallMs
from hascheduler.triggers.zones import DAY_S, span_at, zone_of

CALENDARS_USED_MAX = 10
"""In each of the two lists of a trigger."""
_ALL_DAYS = (1 << (LATEST_MS // 1_000 // DAY_S + 2)) - 1


class MissingCalendar(InvalidInput):
    """A trigger uses a calendar that is not there."""


@dataclass(frozen=True, slots=True)
class DayPart:
    """A local day, until before ``until_ms``; one that a change of the clock brings back has two such parts.

    ``left_out_by`` is the calendar for which its times do not fire; None: they fire.
    """

    until_ms: WallMs
    left_out_by: str | None


def with_calendars(schedule: ScheduleRef, calendars: Mapping[str, Calendar]) -> ScheduleRef:
    """The schedule with the days of the calendars that its triggers use; `InvalidInput` where one is not there."""
    if not calendars_of(schedule):
        return schedule
    past = tuple(replace(period, trigger=on_calendars(period.trigger, calendars)) for period in schedule.past)
    return replace(schedule, trigger=on_calendars(schedule.trigger, calendars), past=past)


def without_calendars(schedule: ScheduleRef) -> ScheduleRef:
    """The schedule with all its nominal times, those that calendars leave out among them."""
    if not calendars_of(schedule):
        return schedule
    past = tuple(replace(period, trigger=replace(period.trigger, calendars=None)) for period in schedule.past)
    return replace(schedule, trigger=replace(schedule.trigger, calendars=None), past=past)


def calendars_of(schedule: ScheduleRef) -> AbstractSet[str]:
    """The names of the calendars that it uses, also for times that an edit left undecided."""
    if not schedule.past and schedule.trigger.calendars is None:  # nearly all
        return frozenset()
    triggers = (schedule.trigger, *(period.trigger for period in schedule.past))
    return {name for trigger in triggers if trigger.calendars is not None for name in trigger.calendars.names}


def on_calendars(trigger: Trigger, calendars: Mapping[str, Calendar]) -> Trigger:
    """The trigger with the days of its calendars; `InvalidInput` where one is not there."""
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
    """The refusal of the first calendar that is not there."""
    for field, names in (("only", use.only), ("except", use.excluding)):
        for place, name in enumerate(names):
            if name not in calendars:
                expected = expected_name(name, tuple(calendars), "a calendar of /v1/calendars")
                return MissingCalendar(
                    ("trigger", "calendars", field, place), f"there is no calendar {name!r}", expected
                )
    return None


def day_part(trigger: Trigger, at_ms: int) -> DayPart:
    """The day that the instant lies in, on the clock that counts for the calendars of the trigger."""
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
    """The end of the run of days like ``part``, all that fire or none; of a longer one, the first instant after both
    ``part`` and ``through_ms``."""
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
        raise InvalidInput(("trigger", "calendars"), f"the days of {named} are not known here", "to ask a replica")
    return use.days, zone_of(use.timezone or trigger.zone)


def runs(trigger: Trigger, from_ms: int, through_ms: int) -> Iterator[tuple[int, int, bool]]:
    """The runs of days from ``from_ms`` through ``through_ms``: first and last instant, and whether they fire."""
    while from_ms <= through_ms:
        part = day_part(trigger, from_ms)
        until_ms = run_until(trigger, part, through_ms)
        yield from_ms, min(until_ms - 1, through_ms), part.left_out_by is None
        from_ms = until_ms


def _left_out_by(days: CalendarDays, day: int) -> str | None:
    if days.bits >> day + 1 & 1:
        return None
    for calendar in days.only:
        if not calendar.has(day):
            return calendar.name
    for calendar in days.excluding:
        if calendar.has(day):
            return calendar.name
    return None
