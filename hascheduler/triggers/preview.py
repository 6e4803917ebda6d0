"""Preview a trigger for people: its next times, the effect of clock changes on them, and remarks.

A remark points out what the author of a cron expression may not have meant. The expression is valid all the same, and
fires as the remark says.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

from hascheduler.errors import InvalidInput
from hascheduler.model.values.instants import WallMs
from hascheduler.schema.trigger import Cron, Trigger
from hascheduler.triggers.due import day_part, due_ms, is_excluded
from hascheduler.triggers.expressions import FIELDS, Field, Item, is_hourly, normal_form, seconds_last, walls_of
from hascheduler.triggers.nominal import latest_nominal, next_nominal
from hascheduler.triggers.zones import DAY_S, OffsetChange, transitions, zone_of

_NOMINAL_SHOWN_MAX = 48


@dataclass(frozen=True, slots=True)
class Upcoming:
    """A nominal time to come; ``excluded`` ones do not fire. ``note`` says what is unusual about its wall time."""

    nominal_ms: WallMs
    due_ms: WallMs
    excluded: bool = False
    note: str | None = None


@dataclass(frozen=True, slots=True)
class ClockChange:
    """A clock change at ``at_ms``; ``nominal_ms`` are times of that local day, at most a few."""

    at_ms: WallMs
    offset_before_s: int
    offset_after_s: int
    kind: str
    explanation: str
    nominal_ms: tuple[WallMs, ...]


def upcoming(schedule: str, trigger: Trigger, after_ms: int, *, fired: int = 0) -> Iterator[Upcoming]:
    """Return the times after ``after_ms``, up to the last of ``max_fires``, of which ``fired`` are done."""
    left = None if trigger.max_fires is None else trigger.max_fires - fired
    nominal_ms = next_nominal(trigger, after_ms)
    while nominal_ms is not None and (left is None or left > 0):
        excluded = is_excluded(trigger, nominal_ms)
        due = due_ms(schedule, trigger, nominal_ms)
        yield Upcoming(nominal_ms, due, excluded, _note(trigger, nominal_ms))
        if left is not None and not excluded:
            left -= 1
        nominal_ms = next_nominal(trigger, nominal_ms)


def clock_changes(trigger: Trigger, after_ms: int, until_ms: int) -> Iterator[ClockChange]:
    """Return the clock changes in that time that affect its cron expressions, and what they do to its times."""
    after_s, until_s = after_ms // 1_000, until_ms // 1_000
    changes = [(change, zone) for zone in trigger.zones for change in transitions(zone_of(zone), after_s, until_s)]
    for change, zone in sorted(changes, key=lambda change: change[0].at_s):
        yield ClockChange(
            WallMs(change.at_s * 1_000),
            change.offset_before_s,
            change.offset_after_s,
            "gap" if change.is_gap else "fold",
            _explanation(trigger, zone, change),
            tuple(_of_that_day(trigger, change)),
        )


def _note(trigger: Trigger, nominal_ms: int) -> str | None:
    """Return which calendar leaves the day out or, at a clock change, which wall time this stands for."""
    left_out_by = None if trigger.calendars is None else day_part(trigger, nominal_ms).left_out_by
    if left_out_by is not None and trigger.calendars is not None:
        return f"the day is {'not ' if left_out_by in trigger.calendars.only else ''}in {left_out_by}"
    crons = [part for part in trigger.parts if isinstance(part, Cron)]
    if len(trigger.parts) > 1:  # those that name it
        crons = [cron for cron in crons if next_nominal(Trigger(cron), nominal_ms - 1) == nominal_ms]
    notes = (_note_of(cron, nominal_ms) for cron in crons)
    return next((note for note in notes if note is not None), None)


def _note_of(cron: Cron, nominal_ms: int) -> str | None:
    zone, at_s = zone_of(cron.timezone), nominal_ms // 1_000
    for change in transitions(zone, at_s - DAY_S, at_s + DAY_S):
        hourly = is_hourly(cron.expression)
        if change.is_gap and change.at_s == at_s and not hourly:
            missing = _missing(cron, change)
            if missing:
                return f"for {missing}, which {'does' if ' ' not in missing else 'do'} not exist that day"
        if not change.is_gap:
            shift_s = change.offset_before_s - change.offset_after_s
            if change.at_s - shift_s <= at_s < change.at_s:
                return "this wall time occurs twice: the first" + ("" if hourly else ", and only this one fires")
            if hourly and change.at_s <= at_s < change.at_s + shift_s:
                return "this wall time occurs twice: the second"
    return None


def _explanation(trigger: Trigger, zone: str, change: OffsetChange) -> str:
    day = f"{_moment(change.wall_before_s):%a %d %b %Y}"
    moves = f"the clock {f'of {zone} ' if len(trigger.zones) > 1 else ''}goes"
    begins = f"{day}: {moves} from {_hand(change.wall_before_s)} to {_reached(change)}"
    crons = [part for part in trigger.parts if isinstance(part, Cron) and part.timezone == zone]
    if len(trigger.parts) == 1:
        return f"{begins}; {_effect(crons[0], change)}"
    # Of several, each with its expression; those that the change does nothing to are left out.
    effects = [f"{cron.expression!r}: {_effect(cron, change)}" for cron in crons if _is_affected(cron, change)]
    return "; ".join([begins, *(effects or ["none of its times is skipped or occurs twice"])])


def _is_affected(cron: Cron, change: OffsetChange) -> bool:
    """Return True if one of its wall times does not exist or occurs twice."""
    walls_s = sorted((change.wall_before_s - 1, change.wall_after_s - 1))
    return walls_of(cron.expression).count(*walls_s) > 0


def _effect(cron: Cron, change: OffsetChange) -> str:
    hourly = is_hourly(cron.expression)
    if change.is_gap:
        if hourly:
            return "it keeps real time and does not catch up on the skipped wall times"
        missing = _missing(cron, change)
        if not missing:
            return "none of its times is skipped"
        verb = "does" if " " not in missing else "do"
        return f"{missing} {verb} not exist; it fires once, right after the gap, at {_reached(change)}"
    walls = walls_of(cron.expression)
    twice = walls.count(change.wall_after_s - 1, change.wall_before_s - 1)
    if not twice:
        return "none of its times occurs twice"
    first = walls.after(change.wall_after_s - 1)
    assert first is not None
    which = _hand(first) if twice == 1 else f"{_hand(first)} and {twice - 1} more"
    verb = "occurs" if twice == 1 else "occur"
    how = "it keeps real time and fires both times" if hourly else "it fires the first time only"
    return f"{which} {verb} twice; {how}"


def _missing(cron: Cron, change: OffsetChange) -> str:
    """Return the wall times in the gap: "02:30", or "02:00 and 5 more"."""
    walls = walls_of(cron.expression)
    count = walls.count(change.wall_before_s - 1, change.wall_after_s - 1)
    first = walls.after(change.wall_before_s - 1)
    if not count or first is None:
        return ""
    return _hand(first) if count == 1 else f"{_hand(first)} and {count - 1} more"


def _of_that_day(trigger: Trigger, change: OffsetChange) -> Iterator[WallMs]:
    """Return the times of the days of the clock change; if there are many, those nearest to it."""
    last_s = change.wall_after_s if change.is_gap else change.wall_before_s - 1
    first_s = min(change.wall_before_s, change.wall_after_s)
    begins_s = first_s - first_s % DAY_S - change.offset_before_s
    ends_ms = (last_s - last_s % DAY_S + DAY_S - change.offset_after_s) * 1_000
    nominal_ms: int | None = change.at_s * 1_000
    for _ in range(_NOMINAL_SHOWN_MAX // 2):
        earlier = latest_nominal(trigger, (nominal_ms or 0) - 1)
        if earlier is None or earlier < begins_s * 1_000:
            break
        nominal_ms = earlier
    nominal_ms = next_nominal(trigger, (nominal_ms or 0) - 1)
    shown = 0
    while nominal_ms is not None and nominal_ms < ends_ms and shown < _NOMINAL_SHOWN_MAX:
        yield WallMs(nominal_ms)
        shown += 1
        nominal_ms = next_nominal(trigger, nominal_ms)


def _moment(wall_s: int) -> datetime:
    return datetime.fromtimestamp(wall_s, UTC)


def _reached(change: OffsetChange) -> str:
    """Return what the clock shows after the change, with the day if it is another one."""
    if change.wall_before_s // DAY_S == change.wall_after_s // DAY_S:
        return _hand(change.wall_after_s)
    return f"{_hand(change.wall_after_s)} on {_moment(change.wall_after_s):%a %d %b}"


def _hand(wall_s: int) -> str:
    moment = _moment(wall_s)
    return f"{moment:%H:%M:%S}" if moment.second else f"{moment:%H:%M}"


_CACHED_MAX = 4_096
_NARROWEST_FIRST = (5, 0, 1)
"""The fields of second, minute and hour."""
_COUNTED = {
    "second": ("second", "minute"),
    "minute": ("minute", "hour"),
    "hour": ("hour", "day"),
    "day of month": ("day", "month"),
    "month": ("month", "year"),
    "day of week": ("day", "week"),
}
"""The unit of a field, and the one in which it starts again."""
_A_YEAR_S = (2_082_758_400, 2_114_380_799)
"""2036: a year in which every zone follows the rule that it keeps."""


def remarks(trigger: Trigger) -> Sequence[str]:
    """Return remarks on each cron expression; empty if nothing is unusual, or if it can't be read."""
    found = (_remarks(part.expression, part.timezone) for part in trigger.parts if isinstance(part, Cron))
    return tuple(dict.fromkeys(remark for remarks in found for remark in remarks))


@lru_cache(_CACHED_MAX)
def _remarks(expression: str, timezone: str) -> tuple[str, ...]:
    try:
        form = normal_form(expression)
        zone = zone_of(timezone)
    except InvalidInput:
        return ()
    written = expression.split()
    fields = written if len(written) > 1 else form.split()
    parts = [part for field, text in zip(FIELDS, fields, strict=False) for part in _of_field(field, text)]
    return (*_seconds_first(expression, written), *_quartz(written), *parts, *_silent(fields[1], zone))


def _seconds_first(expression: str, fields: list[str]) -> Iterator[str]:
    turned = seconds_last(fields) if len(fields) == 6 else None
    if turned is not None and [*fields[1:], fields[0]] != fields and _may_be_seconds_first(fields):
        yield (
            f"{expression.strip()!r} fires {_in_words(normal_form(expression).split())}, as the seconds come last; "
            f"did you mean {turned!r}?"
        )


def _may_be_seconds_first(fields: Sequence[str]) -> bool:
    """Return True if its author may have written the second first, although it can be read both ways."""
    first, hour, last = fields[0], fields[2], fields[5]
    if last == "*":
        return True  # each second of a few minutes is rarely intended
    if first == "*" or "*" in last:
        return False
    # One second a minute is what those write who know the order, unless two fields of 0 come before an hour.
    return not last.isdigit() or (first.isdigit() and hour != "*")


def _quartz(fields: Sequence[str]) -> Iterator[str]:
    weekday = fields[4] if len(fields) > 4 else ""
    if "?" in fields[2:5] and any(sign.isdigit() for sign in weekday.partition("#")[0]):
        yield f"{weekday!r} as the day of week counts from 1 for Monday, unlike Quartz; use names to avoid doubt"


def _of_field(field: Field, text: str) -> Iterator[str]:
    for part in text.split(","):
        item = field.item(part.lower())
        if item is None:
            continue
        if item.low > item.high and part[0].isdigit():  # who writes fri-mon means that
            last = field.low + field.size - 1
            yield (
                f"{part!r} as the {field.name} wraps around: it means {_span(item.low, last)} and "
                f"{_span(field.low, item.high)}"
            )
        elif item.step > 1 and item.low + item.step > item.high:
            yield f"{part!r} as the {field.name} means only {item.low}: the next step would exceed {item.high}"
        elif item.step > 1 and "-" not in part:
            yield from _starts_again(field, part, item)


def _starts_again(field: Field, part: str, item: Item) -> Iterator[str]:
    """Return a remark if fires come closer than one step at the start of the next wider field."""
    last = item.high - (item.high - item.low) % item.step
    first = item.low
    # Sunday is 0 and 7, and a month that has 31 days is as long as any.
    gap = first + field.size - last
    if gap < item.step:
        unit, wider = _COUNTED[field.name]
        plural = "" if gap == 1 else "s"
        yield (
            f"{part!r} as the {field.name} restarts with each {wider}: {first} follows {last} after only {gap} "
            f"{unit}{plural}"
        )


def _silent(hours: str, zone: ZoneInfo) -> Iterator[str]:
    """Return which hours of a range fire once while the clock shows them twice; with ``*`` an hour fires both times."""
    items = [item for item in map(FIELDS[1].item, hours.split(",")) if item is not None]
    if hours.startswith("*") or not any(item.low != item.high for item in items):
        return
    twice = {change.wall_after_s // 3_600 % 24 for change in transitions(zone, *_A_YEAR_S) if not change.is_gap}
    for hour in sorted(twice):
        if any(_is_in(hour, item) for item in items):
            yield (
                f"{hours!r} as the hour fires only once in the hour from {hour:02}:00, which occurs twice when the "
                f"clock of {zone.key} is put back; * fires both times"
            )


def _is_in(hour: int, item: Item) -> bool:
    high = item.high if item.low <= item.high else item.high + 24
    return any(each % 24 == hour for each in range(item.low, high + 1, item.step))


def _span(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}"


def _in_words(fields: Sequence[str]) -> str:
    """Return six fields as ``each second of every 15th minute``; leave out what names every hour, day or month."""
    words = [_value(place, fields[place]) for place in _NARROWEST_FIRST]
    # The widest that say nothing.
    while fields[_NARROWEST_FIRST[len(words) - 1]] == "*" and len(words) > 1:
        words.pop()
    days = [_value(place, fields[place]) for place in (2, 4) if fields[place] != "*"]
    month = [f"in {_value(3, fields[3])}"] if fields[3] != "*" else []
    on = [f"on {' or '.join(days)}"] if days else []
    how = "" if words[0].startswith(("each", "every")) else "in "
    return " ".join([how + " of ".join(words), *on, *month])


def _value(place: int, text: str) -> str:
    name = FIELDS[place].name
    if text == "*":
        return f"each {name}"
    step = text.removeprefix("*/")
    if step != text and "," not in text:
        return f"every {_ordinal(int(step))} {name}"
    return f"{name} {text.upper()}"


def _ordinal(number: int) -> str:
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
