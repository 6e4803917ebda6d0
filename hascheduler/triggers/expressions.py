"""The dialect of cron expressions, and how one is read.

Five fields, or six with the seconds **last**; croniter reads what this grammar lets through::

    field           values                      also
    minute          0-59
    hour            0-23
    day of month    1-31                        L (the last day), L-3 (three days before it), 15W (the weekday
                                                nearest to the 15th, in that month), LW (the last weekday), L-3W
    month           1-12, jan-dec
    day of week     0-7 (0 and 7: Sunday),      5#2, fri#2 (the second Friday), L5, 5L, friL (the last Friday)
                    sun-sat
    second          0-59

    in each         *   a   a-b   a-b/n   */n   a/n (from a on), and lists of them such as 0,30-40
    in day fields   ?   which is *
    instead         @yearly @annually @monthly @weekly @daily @midnight @hourly

Upper and lower case are one. A range may wrap: 22-2, fri-mon. ``n`` is at most the number of values of its field, and
counts from the field's first value (``*/n``) or from ``a``, again in each range. ``a/n`` goes on to the field's last
value, which is 7 of the days of the week: ``5/1`` is Friday to Sunday, as to crontab(5) and cronsim.

A day field that is not ``*`` is restricted. When both are, a day need match only one of them (``0 0 13 * 5``: each
13th, and each Friday). ``*/2`` is restricted, other than in Vixie cron. A field that spells out all of its values is
restricted too (``0 0 1 * 0-6`` is each day), unless the other day field has a star in it (``0 0 */2 * 0-6``: odd days).
``31W`` and ``L-30`` name nothing in shorter months.

Not in it, because readers differ about the meaning: ``5-5``, ``*`` in a list, a step over a range that wraps
(croniter 7 makes 22-2/3 the hours 22 and 2), steps longer than the field, and a day of month beside ``5#2`` or ``L5``
(croniter would demand both). Nor years, ``@reboot``, a zone before the fields (``CRON_TZ=…``), and croniter's hashed
(``H``) and random (``R``) forms, which would not be the same on every replica. Go's ``@every 90s`` is an interval
(`hascheduler.triggers.cron.read_pattern`). Where the seconds stand first, as in Quartz and robfig/cron, and the
expression can't be read with the seconds last, the error says how it would be written here; where it can, `remarks`
do (`hascheduler.triggers.preview`).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

from croniter import croniter

from hascheduler.errors import InvalidInput
from hascheduler.model.values.instants import format_duration, parse_duration
from hascheduler.schema.trigger import EVERY_MIN_MS
from hascheduler.triggers.walls import DayOfMonth, Walls

EXPRESSION_CHARACTERS_MAX = 256
_EXPECTED = "five cron fields, or six with the seconds last, such as '*/5 * * * *'"
_ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_ITEM = re.compile(r"(?:\*|(?P<low>[a-z0-9]+)(?:-(?P<high>[a-z0-9]+))?)(?:/(?P<step>[0-9]{1,9}))?", re.ASCII)
_DAY_OF_MONTH = re.compile(r"(?:l(?:-(?P<before>[0-9]{1,2}))?|(?P<day>[0-9]{1,2})(?=w))(?P<weekday>w)?", re.ASCII)
_WEEKDAY = rf"[0-7]|{'|'.join(_WEEKDAYS)}"
_DAY_OF_WEEK = re.compile(rf"(?:{_WEEKDAY})#[1-5]|l[0-7]|(?P<last>{_WEEKDAY})l", re.ASCII)
_CACHED_MAX = 4_096


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a field: ``*``, a number or a range, perhaps with a step. ``low`` is above ``high`` if it wraps."""

    low: int
    high: int
    step: int = 1


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    low: int
    high: int
    size: int
    special: re.Pattern[str] | None = None
    words: tuple[str, ...] = ()
    also: str = ""

    def number(self, text: str) -> int | None:
        """Return the number that one end of a range stands for."""
        if text in self.words:
            return self.low + self.words.index(text)
        number = int(text) if text.isdigit() and len(text) <= 2 else -1
        return number if self.low <= number <= self.high else None

    def item(self, text: str) -> Item | None:
        """Return the item, or None for forms of days that are not numbers; `normal_form` has accepted the text."""
        match = _ITEM.fullmatch(text)
        if match is None or (self.special is not None and self.special.fullmatch(text)):
            return None
        step = int(match["step"] or 1)
        if match["low"] is None:
            return Item(self.low, self.low + self.size - 1, step)
        low = self.number(match["low"]) or 0
        if match["high"] is None:
            return Item(low, self.high if match["step"] else low, step)
        return Item(low, self.number(match["high"]) or 0, step)

    @property
    def values(self) -> str:
        return f"{self.low} to {self.high}" + (f", {self.words[0]} to {self.words[-1]}" if self.words else "")


FIELDS = (
    Field("minute", 0, 59, 60),
    Field("hour", 0, 23, 24),
    Field("day of month", 1, 31, 31, _DAY_OF_MONTH, also=", ?, L, L-3, 15W, LW"),
    Field("month", 1, 12, 12, words=_MONTHS),
    Field("day of week", 0, 7, 7, _DAY_OF_WEEK, _WEEKDAYS, also=", ?, fri#2, L5, 5L"),
    Field("second", 0, 59, 60),
)


@lru_cache(_CACHED_MAX)
def normal_form(expression: str) -> str:
    """Return the five or six fields in lower case with single spaces.

    Raise `InvalidInput` (without a path) if the expression is invalid.
    """
    if len(expression) > EXPRESSION_CHARACTERS_MAX:
        raise InvalidInput((), f"{len(expression)} characters", f"at most {EXPRESSION_CHARACTERS_MAX}")
    if not expression.isprintable() or not expression.isascii():
        raise InvalidInput((), f"{expression[:64]!r} contains a character that cron expressions do not have", _EXPECTED)
    fields = expression.split()
    if fields and fields[0].startswith("@"):
        return _alias(expression.strip())
    if fields and fields[0].lower().startswith(("cron_tz=", "tz=")):
        zone = fields[0].partition("=")[2]
        raise InvalidInput(
            (), f"{fields[0][:64]!r} can't be part of the expression", f"the field timezone: {zone[:64]}"
        )
    if len(fields) not in (5, 6):
        problem = f"{expression[:64]!r} has {len(fields)} field{'' if len(fields) == 1 else 's'}"
        raise _unless_turned(fields, InvalidInput((), problem, _EXPECTED))
    try:
        return _normal(fields)
    except InvalidInput as error:
        raise _unless_turned(fields, error) from None


def seconds_last(fields: Sequence[str]) -> str | None:
    """Return fields that begin with the second in the order used here; None if they can't be read so.

    A second of 0 is left out, and so is a year that says nothing.
    """
    if len(fields) == 7 and fields[6] in ("*", "?"):
        fields = fields[:6]
    if len(fields) != 6:
        return None
    second, *rest = fields
    turned = [*rest, *([] if second == "0" else [second])]
    try:
        _normal(turned)
    except InvalidInput:
        return None
    return " ".join(turned)


def interval_of(expression: str) -> int | None:
    """Return the ms of ``@every 90s``, or None for any other text.

    Raise `InvalidInput` (without a path) if the interval is invalid.
    """
    first, _, span = expression.strip().partition(" ")
    if first.lower() != "@every":
        return None
    every_ms = parse_duration(span.strip())
    if every_ms < EVERY_MIN_MS:
        problem = f"{span.strip()[:64]} is too short"
        raise InvalidInput((), problem, f"at least {format_duration(EVERY_MIN_MS)}")
    return every_ms


def _alias(text: str) -> str:
    every_ms = interval_of(text)
    if every_ms is not None:
        every = format_duration(every_ms)
        raise InvalidInput((), f"{text[:64]!r} is an interval", f'a trigger of the type interval, every "{every}"')
    form = _ALIASES.get(text.lower())
    if form is None:
        raise InvalidInput((), f"{text[:64]!r} is unknown", f"{', '.join(_ALIASES)}, or @every 90s")
    return form


def _normal(fields: Sequence[str]) -> str:
    formed = []
    for field, text in zip(FIELDS, fields, strict=False):
        items = text.split(",")
        formed.append(",".join(_item_form(field, item, alone=len(items) == 1) for item in items))
    return " ".join(formed)


def _item_form(field: Field, typed: str, *, alone: bool) -> str:
    """Return the item in lower case; errors repeat it as it was ``typed``."""
    item = typed.lower()
    special = None if field.special is None else field.special.fullmatch(item)
    if special is not None:
        return _special_form(field, typed, special)
    if item == "?" and alone and field.special is not None:
        return "*"
    match = _ITEM.fullmatch(item)
    if match is None:
        raise InvalidInput(
            (), f"{typed[:64]!r} is not a valid {field.name}", f"{field.values}, * or a range{field.also}"
        )
    if item == "*" and not alone:
        raise InvalidInput((), f"* is combined with other values as the {field.name}", "* alone, or other values")
    ends = [end for end in ("low", "high") if match[end] is not None]
    numbers = [field.number(match[end]) for end in ends]
    for end, number in zip(ends, numbers, strict=True):
        if number is None:
            text = typed[slice(*match.span(end))]
            raise InvalidInput((), f"{text[:64]!r} is not a valid {field.name}", field.values + field.also)
    step = match["step"]
    if step is not None and not 1 <= int(step) <= field.size:
        raise InvalidInput((), f"{typed[:64]!r} has a step of {int(step)}", f"1 to {field.size} as the {field.name}")
    if len(numbers) == 2:
        _check_range(field, typed, int(numbers[0] or 0), int(numbers[1] or 0), step)
    return item


def _special_form(field: Field, typed: str, special: re.Match[str]) -> str:
    """Return ``5L`` and ``friL`` as ``l5``, the others in lower case."""
    if field.words:
        last = special["last"]
        return typed.lower() if last is None else f"l{field.number(last)}"
    day, before = special["day"], special["before"]
    if day is not None and field.number(day) is None:
        raise InvalidInput((), f"{typed!r} is not a valid {field.name}", "1W to 31W, or LW")
    if before is not None and not 1 <= int(before) <= 30:
        raise InvalidInput((), f"{typed!r} is not a valid {field.name}", "L, or L-1 to L-30")
    return typed.lower()


def _check_range(field: Field, item: str, low: int, high: int, step: str | None) -> None:
    if low == high or (field.words == _WEEKDAYS and (low, high) == (7, 0)):
        raise InvalidInput((), f"{item!r} as the {field.name} is ambiguous: one value or all", f"{low}, or *")
    if low > high and step is not None:
        raise InvalidInput(
            (), f"{item!r} has a step in a range that wraps around", "its values one by one, such as 22,1"
        )


def _unless_turned(fields: Sequence[str], error: InvalidInput) -> InvalidInput:
    """Return the error, with the right expression if only the seconds are in the wrong place."""
    turned = seconds_last(fields)
    if turned is None:
        yearless = seconds_last(fields[:6]) if len(fields) == 7 else None
        if yearless is not None:
            problem = f"{error.problem}: year fields are not supported, and the seconds come last"
            return InvalidInput((), problem, f"{yearless!r} with start_at and end_at")
        return error
    return InvalidInput((), f"{error.problem}: the seconds come last here", f"{turned!r}{_hint_on_weekdays(fields)}")


def _hint_on_weekdays(fields: Sequence[str]) -> str:
    """Return a hint for Quartz, which counts weekdays from 1 and writes ``?``; robfig/cron counts them as here."""
    is_numbered = any(sign.isdigit() for sign in fields[5].partition("#")[0])
    return " (1 is Monday here, in Quartz Sunday)" if is_numbered and "?" in fields else ""


@lru_cache(_CACHED_MAX)
def walls_of(expression: str) -> Walls:
    """Return what the expression names, read once; raise `InvalidInput` (without a path) if it can't be read."""
    fields = normal_form(expression).split()
    days = fields[2].split(",")
    special = [_day_of_month(match) for match in map(_DAY_OF_MONTH.fullmatch, days) if match is not None]
    # What croniter does not know is left out for it; where nothing else is, any day stands there and is dropped.
    plain = [day for day in days if not _DAY_OF_MONTH.fullmatch(day)]
    fields[2] = ",".join(plain) or "1"
    fields[4] = ",".join(map(_through_sunday, fields[4].split(",")))
    try:
        expanded, nth = croniter.expand(" ".join(fields))
        if not plain:
            expanded[2] = []
        if nth and expanded[2] != ["*"]:
            problem = f"{expression[:64]!r} restricts both the day of month and the weekday's place in the month"
            raise InvalidInput((), problem, "* as the day of month")
        return Walls(expanded, cast("dict[int, set[int | str]]", nth), special)
    except (ValueError, KeyError, IndexError) as error:  # croniter's errors are ValueErrors
        raise InvalidInput((), _problem(expression, str(error)), _EXPECTED) from None


def _through_sunday(weekday: str) -> str:
    """Return ``5/1`` as ``5-7/1``: croniter ends at Saturday."""
    first, _, step = weekday.partition("/")
    number = FIELDS[4].number(first)
    if not step or number is None:
        return weekday
    return "0" if number == 7 else f"{number}-7/{step}"


def _day_of_month(match: re.Match[str]) -> DayOfMonth:
    day = -int(match["before"] or 0) if match["day"] is None else int(match["day"])
    return DayOfMonth(day, nearest_weekday=match["weekday"] is not None)


def is_hourly(expression: str) -> bool:
    """Return True if the hour field begins with a star: the expression keeps real time over clock changes."""
    return normal_form(expression).split()[1].startswith("*")


def _problem(expression: str, error: str) -> str:
    """Return croniter's message without its repetition of the whole expression."""
    reason = re.sub(r"\s+", " ", error.replace(expression, "").replace("[]", "")).strip(" .:,")
    return f"{expression[:64]!r} can't be read" + (f": {reason[:120]}" if reason else "")
