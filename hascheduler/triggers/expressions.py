"""The dialect of cron expressions, and how one is read.

Five fields, or six with the seconds **last**; croniter reads them::

    field           values                      also
    minute          0-59
    hour            0-23
    day of month    1-31                        L (the last day)
    month           1-12, jan-dec
    day of week     0-7 (0 and 7: Sunday),      5#2 (the second Friday), L5 (the last Friday)
                    sun-sat
    second          0-59

    in each         *   a,b   a-b   a-b/n   */n   a/n (from a on)       ranges may wrap: 22-2, fri-mon
    instead         @yearly @annually @monthly @weekly @daily @midnight @hourly

When both day fields are restricted a day need match only one of them (``0 0 13 * 5``: each 13th, and each Friday);
``*`` alone is unrestricted, and so is whatever names all days. ``*/2`` is restricted, other than in Vixie cron.

Not in it: years, ``?``, ``W``, ``@reboot``, a day of month beside ``5#2`` or ``L5`` (croniter would demand both), and
croniter's hashed (``H``) and random (``R``) forms, which would not be the same on every replica.
"""

import re
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
_FIELD = re.compile(r"[0-9a-z*,/#-]+\Z", re.ASCII)
_WORD = re.compile(r"[a-z]+")
_MONTHS = frozenset(["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"])
_WEEKDAYS = frozenset(["sun", "mon", "tue", "wed", "thu", "fri", "sat"])
_NAMES = ("minute", "hour", "day of month", "month", "day of week", "second")
_WORDS = (frozenset[str](), frozenset[str](), frozenset("l"), _MONTHS, _WEEKDAYS | {"l"}, frozenset[str]())
_CACHED_MAX = 4_096


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
    for name, words, field in zip(_NAMES, _WORDS, fields, strict=False):
        unknown = [word for word in _WORD.findall(field) if word not in words]
        if not _FIELD.match(field) or unknown:
            raise InvalidInput((), f"{field[:64]!r} is not a {name}", _EXPECTED)
    return " ".join(fields)


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
