"""When a schedule fires, found the slow way: clocks are watched minute by minute, and calendars asked for each time.

It reads triggers and calendars as users write them and asks `zoneinfo` alone what a clock shows; it shares nothing with
the scheduler. All times are whole minutes.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_UNITS = {"d": DAY, "h": timedelta(hours=1), "m": MINUTE}

Calendars = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Watched:
    """The nominal times, and since when each of them could fire: the time itself, or the edit that let it."""

    fires: dict[datetime, datetime] = field(default_factory=dict)
    left_out: list[datetime] = field(default_factory=list)


def watch(
    trigger: Mapping[str, Any],
    first: datetime,
    last: datetime,
    calendars: Calendars,
    edits: Sequence[tuple[datetime, Calendars]] = (),
) -> Watched:
    """From ``first`` through ``last``; at each of ``edits`` (ascending) these are the calendars from then on."""
    watched = Watched()
    parts = trigger["of"] if trigger["type"] == "any" else [trigger]
    for at in sorted({at for part in parts for at in _times(part, first, last)}):
        if not instant(trigger, "start_at", at) <= at <= instant(trigger, "end_at", at):
            continue
        if len(watched.fires) == trigger.get("max_fires"):
            break
        since = _fires_since(trigger, parts, at, [(first, calendars), *edits])
        if since is None:
            watched.left_out.append(at)
        else:
            watched.fires[at] = since
    return watched


def instant(fields: Mapping[str, Any], name: str, otherwise: datetime) -> datetime:
    return datetime.fromisoformat(fields[name]) if fields.get(name) else otherwise


def minutes(first: datetime, last: datetime) -> Iterator[datetime]:
    while first <= last:
        yield first
        first += MINUTE


# Patterns


def _times(part: Mapping[str, Any], first: datetime, last: datetime) -> Iterator[datetime]:
    match part["type"]:
        case "cron":
            yield from _cron_times(part["expression"], ZoneInfo(part.get("timezone", "UTC")), first, last)
        case "interval":
            anchor, every = datetime.fromisoformat(part["anchor"]), _span(part["every"])
            yield from (at for at in minutes(first, last) if (at - anchor) % every == timedelta(0))
        case _:
            listed = [part["at"]] if part["type"] == "once" else part["at"]
            yield from (at for at in map(datetime.fromisoformat, listed) if first <= at <= last)


def _span(text: str) -> timedelta:
    return sum((int(n) * _UNITS[unit] for n, unit in re.findall(r"(\d+)([dhm])", text)), timedelta(0))


def _cron_times(expression: str, zone: ZoneInfo, first: datetime, last: datetime) -> Iterator[datetime]:
    """Where the hour begins with a star: whenever the clock shows one of the times. Otherwise each time of the clock
    once: when the clock first shows it or has gone past it."""
    fields = expression.split()
    keeps_real_time = fields[1].startswith("*")
    begins = first - 2 * DAY  # since then the furthest that the clock has gone is sure
    reached = begins.astimezone(zone).replace(tzinfo=None)
    for at in minutes(begins + MINUTE, last):
        shown = at.astimezone(zone).replace(tzinfo=None)
        passed = minutes(shown if keeps_real_time else reached + MINUTE, shown)
        if any(_names(fields, wall) for wall in passed) and at >= first:
            yield at
        reached = max(reached, shown)


def _names(fields: Sequence[str], wall: datetime) -> bool:
    minute, hour, day, month, weekday = fields
    if not (_has(minute, wall.minute) and _has(hour, wall.hour) and _has(month, wall.month, least=1)):
        return False
    days = [
        any(_is_day(text, wall) for text in day.split(",")),
        _has(weekday, wall.isoweekday()) or _has(weekday, wall.isoweekday() % 7),  # 0 and 7 are Sunday
    ]
    # Either will do where both are narrowed.
    return any(days) if day not in "*?" and weekday not in "*?" else all(days)


def _has(text: str, value: int, least: int = 0) -> bool:
    """Whether a field of numbers, days of the week, spans and steps has the value."""
    for item in text.split(","):
        span, _, step = item.partition("/")
        low, _, high = span.partition("-")
        if low in "*?":
            low, high = str(least), "59"
        begin, end = _number(low), _number(high or ("59" if step else low))
        if begin <= value <= end and (value - begin) % int(step or 1) == 0:
            return True
    return False


def _number(text: str) -> int:
    return WEEKDAYS.index(text) if text in WEEKDAYS else int(text)


def _is_day(text: str, wall: datetime) -> bool:
    """``15``, ``1-5``, ``L``, ``15W`` and ``LW``, of the month; W is the nearest Monday to Friday in the same month."""
    if not text.endswith(("L", "W")):
        return _has(text, wall.day, least=1)
    month = [day for day in (wall.replace(day=1) + n * DAY for n in range(31)) if day.month == wall.month]
    meant = month[-1].day if text.startswith("L") else int(text[:-1])
    if not text.endswith("W"):
        return wall.day == meant
    weekdays = [day.day for day in month if day.isoweekday() <= 5]
    return wall.day == min(weekdays, key=lambda day: abs(day - meant))


# Windows and calendars


def _fires_since(
    trigger: Mapping[str, Any],
    parts: Sequence[Mapping[str, Any]],
    at: datetime,
    versions: Sequence[tuple[datetime, Calendars]],
) -> datetime | None:
    """When the time could fire first: a day that is left out is over only at its end, and may be let in until then."""
    for window in trigger.get("exclude", ()):
        if datetime.fromisoformat(window["from"]) <= at < datetime.fromisoformat(window["to"]):
            return None
    use = trigger.get("calendars")
    if use is None:
        return at
    zones = {part.get("timezone", "UTC") for part in parts if part["type"] == "cron"}
    zone = ZoneInfo(use.get("timezone") or (zones.pop() if len(zones) == 1 else "UTC"))
    day = at.astimezone(zone).date()
    _, in_force = max((version for version in versions if version[0] <= at), key=lambda version: version[0])
    if _counts(use, in_force, day):
        return at
    for edited_at, calendars in versions:
        if edited_at > at and _counts(use, calendars, day) and _lasts(at, edited_at, day, zone):
            return edited_at
    return None


def _lasts(at: datetime, until: datetime, day: date, zone: ZoneInfo) -> bool:
    return all(moment.astimezone(zone).date() == day for moment in minutes(at, until))


def _counts(use: Mapping[str, Any], calendars: Calendars, day: date) -> bool:
    is_in = [has_day(calendars[name], day) for name in use.get("only", ())]
    return all(is_in) and not any(has_day(calendars[name], day) for name in use.get("except", ()))


def has_day(calendar: Mapping[str, Any], day: date) -> bool:
    is_weekday = any(_is_weekday(text, day) for text in calendar.get("weekdays", ()))
    left_out = any(_is_listed(text, day) for text in calendar.get("exclude", ()))
    return (is_weekday and not left_out) or any(_is_listed(text, day) for text in calendar.get("include", ()))


def _is_weekday(text: str, day: date) -> bool:
    first, _, last = text.partition("-")
    begin, end = WEEKDAYS.index(first), WEEKDAYS.index(last or first)
    return (day.isoweekday() - begin) % 7 <= (end - begin) % 7


def _is_listed(text: str, day: date) -> bool:
    """``2030-12-24``, ``2030-12-24/2031-01-01``, ``--12-25``."""
    if text.startswith("--"):
        return day.isoformat()[4:] == text[1:]
    first, _, last = text.partition("/")
    return first <= day.isoformat() <= (last or first)
