"""What of a cron expression its author may not have meant, in words for people.

A remark changes nothing: the expression is sound, and fires as the remark says.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from zoneinfo import ZoneInfo

from hascheduler.errors import InvalidInput
from hascheduler.model.trigger import Cron, Trigger
from hascheduler.triggers.expressions import FIELDS, Field, Item, normal_form, seconds_last
from hascheduler.triggers.zones import transitions, zone_of

_CACHED_MAX = 4_096
_NARROWEST_FIRST = (5, 0, 1)
"""Second, minute, hour."""
_COUNTED = {
    "second": ("second", "minute"),
    "minute": ("minute", "hour"),
    "hour": ("hour", "day"),
    "day of month": ("day", "month"),
    "month": ("month", "year"),
    "day of week": ("day", "week"),
}
"""The unit of a field, and the one that it starts again with."""
_A_YEAR_S = (2_082_758_400, 2_114_380_799)
"""2036: a year by which each zone has come to the rule that it keeps."""


def remarks(trigger: Trigger) -> Sequence[str]:
    """Of each of its cron expressions. Empty where nothing is odd, and where one can't be read."""
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
    """Whether its author may have written the second first, of what can be read both ways."""
    first, hour, last = fields[0], fields[2], fields[5]
    if last == "*":
        return True  # each second of a few minutes is hardly ever meant
    if first == "*" or "*" in last:
        return False
    # One second a minute is what those write who know the order, unless two fields of 0 come before an hour.
    return not last.isdigit() or (first.isdigit() and hour != "*")


def _quartz(fields: Sequence[str]) -> Iterator[str]:
    weekday = fields[4] if len(fields) > 4 else ""
    if "?" in fields[2:5] and any(sign.isdigit() for sign in weekday.partition("#")[0]):
        yield f"{weekday!r} as the day of week counts from 1 for Monday, other than in Quartz; names leave no doubt"


def _of_field(field: Field, text: str) -> Iterator[str]:
    for part in text.split(","):
        item = field.item(part.lower())
        if item is None:
            continue
        if item.low > item.high and part[0].isdigit():  # who writes fri-mon means that
            last = field.low + field.size - 1
            yield (
                f"{part!r} as the {field.name} wraps around: "
                f"it is {_span(item.low, last)} and {_span(field.low, item.high)}"
            )
        elif item.step > 1 and item.low + item.step > item.high:
            yield f"{part!r} as the {field.name} is {item.low} alone: the next step would be beyond {item.high}"
        elif item.step > 1 and "-" not in part:
            yield from _starts_again(field, part, item)


def _starts_again(field: Field, part: str, item: Item) -> Iterator[str]:
    """Say if fires come closer than a step where the next wider field begins."""
    last = item.high - (item.high - item.low) % item.step
    first = item.low
    # Sunday is 0 and 7, and a month that has 31 days is as long as any.
    gap = first + field.size - last
    if gap < item.step:
        unit, wider = _COUNTED[field.name]
        plural = "" if gap == 1 else "s"
        yield (
            f"{part!r} as the {field.name} starts again with each {wider}: "
            f"after {last} comes {first}, {gap} {unit}{plural} later"
        )


def _silent(hours: str, zone: ZoneInfo) -> Iterator[str]:
    """Say which hours of a range fire once while the clock shows them twice; with ``*`` an hour fires both times."""
    items = [item for item in map(FIELDS[1].item, hours.split(",")) if item is not None]
    if hours.startswith("*") or not any(item.low != item.high for item in items):
        return
    twice = {change.wall_after_s // 3_600 % 24 for change in transitions(zone, *_A_YEAR_S) if not change.is_gap}
    for hour in sorted(twice):
        if any(_is_in(hour, item) for item in items):
            yield (
                f"{hours!r} as the hour fires once in the hour from {hour:02}:00 that comes twice when the clock of "
                f"{zone.key} is put back; * fires both times"
            )


def _is_in(hour: int, item: Item) -> bool:
    high = item.high if item.low <= item.high else item.high + 24
    return any(each % 24 == hour for each in range(item.low, high + 1, item.step))


def _span(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}"


def _in_words(fields: Sequence[str]) -> str:
    """``each second of every 15th minute``, of six fields; what names each hour, day or month is left out."""
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
