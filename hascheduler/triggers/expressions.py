"""The dialect of cron expressions, and how one is read.

Five fields, or six with the seconds **last**; croniter reads what this grammar lets through::

    field           values                      also
    minute          0-59
    hour            0-23
    day of month    1-31                        L (the last day)
    month           1-12, jan-dec
    day of week     0-7 (0 and 7: Sunday),      5#2, fri#2 (the second Friday), L5 (the last Friday)
                    sun-sat
    second          0-59

    in each         *   a   a-b   a-b/n   */n   a/n (from a on), and lists of them such as 0,30-40
    instead         @yearly @annually @monthly @weekly @daily @midnight @hourly

Upper and lower case are one. A range may wrap: 22-2, fri-mon. ``n`` is at most the number of values of its field, and
counts from the field's first value (``*/n``) or from ``a``, again in each range.

A day field that is not ``*`` is restricted. When both are, a day need match only one of them (``0 0 13 * 5``: each
13th, and each Friday). ``*/2`` is restricted, other than in Vixie cron. A field that spells out all of its values is
restricted too (``0 0 1 * 0-6`` is each day), unless the other day field has a star in it (``0 0 */2 * 0-6``: odd days).

Not in it, because readers differ about the meaning: ``5-5``, ``*`` in a list, a step over a range that wraps
(croniter 7 makes 22-2/3 the hours 22 and 2), steps longer than the field, and a day of month beside ``5#2`` or ``L5``
(croniter would demand both). Nor years, ``?``, ``W``, ``@reboot``, and croniter's hashed (``H``) and random (``R``)
forms, which would not be the same on every replica.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

from croniter import croniter

from hascheduler.errors import InvalidInput
from hascheduler.triggers.walls import Walls

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
_CACHED_MAX = 4_096


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    low: int
    high: int
    size: int
    special: re.Pattern[str] | None = None
    words: tuple[str, ...] = ()

    def number(self, text: str) -> int | None:
        """What one end of a range stands for."""
        if text in self.words:
            return self.low + self.words.index(text)
        number = int(text) if text.isdigit() and len(text) <= 2 else -1
        return number if self.low <= number <= self.high else None

    @property
    def values(self) -> str:
        return f"{self.low} to {self.high}" + (f", {self.words[0]} to {self.words[-1]}" if self.words else "")


_FIELDS = (
    _Field("minute", 0, 59, 60),
    _Field("hour", 0, 23, 24),
    _Field("day of month", 1, 31, 31, re.compile("l")),
    _Field("month", 1, 12, 12, words=_MONTHS),
    _Field("day of week", 0, 7, 7, re.compile(rf"(?:[0-7]|{'|'.join(_WEEKDAYS)})#[1-5]|l[0-7]"), _WEEKDAYS),
    _Field("second", 0, 59, 60),
)


@lru_cache(_CACHED_MAX)
def normal_form(expression: str) -> str:
    """The five or six fields, in lower case, with single spaces; `InvalidInput` (without a path) if it is not one."""
    if len(expression) > EXPRESSION_CHARACTERS_MAX:
        raise InvalidInput((), f"{len(expression)} characters", f"at most {EXPRESSION_CHARACTERS_MAX}")
    if not expression.isprintable() or not expression.isascii():
        raise InvalidInput((), f"{expression[:64]!r} holds a character that is not in cron expressions", _EXPECTED)
    text = expression.strip().lower()
    if text.startswith("@"):
        if text not in _ALIASES:
            raise InvalidInput((), f"{text[:64]!r} is unknown", ", ".join(_ALIASES))
        return _ALIASES[text]
    fields = text.split()
    if len(fields) not in (5, 6):
        problem = f"{expression[:64]!r} has {len(fields)} field{'' if len(fields) == 1 else 's'}"
        raise InvalidInput((), problem, _EXPECTED)
    for field, text in zip(_FIELDS, fields, strict=False):
        items = text.split(",")
        for item in items:
            _check_item(field, item, alone=len(items) == 1)
    return " ".join(fields)


def _check_item(field: _Field, item: str, *, alone: bool) -> None:
    if field.special is not None and field.special.fullmatch(item):
        return
    match = _ITEM.fullmatch(item)
    if match is None:
        raise InvalidInput((), f"{item[:64]!r} can't be the {field.name}", f"{field.values}, * or a range")
    if item == "*" and not alone:
        raise InvalidInput((), f"* stands beside others as the {field.name}", "* alone, or the others alone")
    ends = [text for text in (match["low"], match["high"]) if text is not None]
    numbers = [field.number(text) for text in ends]
    for text, number in zip(ends, numbers, strict=True):
        if number is None:
            raise InvalidInput((), f"{text[:64]!r} can't be the {field.name}", field.values)
    step = match["step"]
    if step is not None and not 1 <= int(step) <= field.size:
        raise InvalidInput((), f"{item[:64]!r} has a step of {int(step)}", f"1 to {field.size} as the {field.name}")
    if len(numbers) == 2:
        _check_range(field, item, int(numbers[0] or 0), int(numbers[1] or 0), step)


def _check_range(field: _Field, item: str, low: int, high: int, step: str | None) -> None:
    if low == high or (field.words is _WEEKDAYS and (low, high) == (7, 0)):
        raise InvalidInput((), f"{item!r} as the {field.name} is read as one or as all", f"{low}, or *")
    if low > high and step is not None:
        raise InvalidInput((), f"{item!r} steps over a range that wraps", "its values one by one, such as 22,1")


@lru_cache(_CACHED_MAX)
def walls_of(expression: str) -> Walls:
    """What the expression names; read once. `InvalidInput` (without a path) where it can't be read."""
    form = normal_form(expression)
    try:
        expanded, nth = croniter.expand(form)
        if nth and expanded[2] != ["*"]:
            problem = f"{expression[:64]!r} restricts the day of month beside a weekday's place in the month"
            raise InvalidInput((), problem, "* as the day of month")
        return Walls(expanded, cast("dict[int, set[int | str]]", nth))
    except (ValueError, KeyError, IndexError) as error:  # croniter's errors are ValueErrors
        raise InvalidInput((), _said(expression, str(error)), _EXPECTED) from None


def is_hourly(expression: str) -> bool:
    """Whether its hour field begins with a star: such an expression keeps real time over clock changes."""
    return normal_form(expression).split()[1].startswith("*")


def _said(expression: str, error: str) -> str:
    """croniter's words, without its repetition of the whole expression."""
    reason = re.sub(r"\s+", " ", error.replace(expression, "").replace("[]", "")).strip(" .:,")
    return f"{expression[:64]!r} can't be read" + (f": {reason[:120]}" if reason else "")
