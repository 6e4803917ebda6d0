"""A calendar: a named set of local days that schedules share, such as business days or the holidays of a country.

A day is a whole number, counted from 1970-01-01, without a time zone: the trigger that uses the calendar sets the zone.
Written, days are ``2030-12-24``, a span ``2030-12-24/2031-01-01`` (both ends included), or ``--12-25``, also
``12-25``, for each year.
"""

import re
from bisect import bisect_right
from calendar import isleap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from operator import itemgetter
from typing import Annotated, Any

from pydantic import Field

from hascheduler.errors import InvalidInput
from hascheduler.model.values.error_texts import quoted
from hascheduler.model.values.fields import is_integer
from hascheduler.schema.forms import Form
from hascheduler.schema.noun import Noun, Owner, Part

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
DAYS_MAX = 1_000
"""The most days and spans in each list of a calendar."""
DAYS_EXPECTED = "a day (2030-12-24), a span of days (2030-12-24/2031-01-01), or a day of each year (--12-25)"
_WEEKDAYS_EXPECTED = f"days ({', '.join(WEEKDAYS)}) or ranges of them, such as mon-fri"
_WEEKDAYS_MAX = 14

_EPOCH = date(1970, 1, 1)
_LAST = date(2099, 12, 31)
# A local clock may show the day before the first or after the last.
_BITS = (_LAST - _EPOCH).days + 3
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_YEARLY = re.compile(r"(?:--)?(\d\d)-(\d\d)", re.ASCII)
_LEAP_YEAR = 2000


@dataclass(frozen=True, slots=True)
class Days:
    """A list of days.

    ``spans`` of days, first and last, ascend and do not overlap; ``yearly`` are months and days of the month.
    """

    spans: tuple[tuple[int, int], ...] = ()
    yearly: tuple[tuple[int, int], ...] = ()

    def has(self, day: int) -> bool:
        place = bisect_right(self.spans, day, key=itemgetter(0))
        if place and day <= self.spans[place - 1][1]:
            return True
        if not self.yearly:
            return False
        when = _EPOCH + timedelta(days=day)
        place = bisect_right(self.yearly, (when.month, when.day))
        return place > 0 and self.yearly[place - 1] == (when.month, when.day)

    def bits(self) -> int:
        """Return the days as `Calendar.bits` does."""
        digits = bytearray(b"0" * _BITS)
        if self.yearly:
            yearly = set(self.yearly)
            of_years = [bytes(b"01"[day in yearly] for day in days) for days in _DAYS_OF_YEARS]
            digits[1:-1] = b"".join(of_years[isleap(year)] for year in range(_EPOCH.year, _LAST.year + 1))
            digits[0], digits[-1] = of_years[0][-1], of_years[0][0]
        for first, last in self.spans:
            digits[first + 1 : last + 2] = b"1" * (last - first + 1)
        return _from_bits(digits)

    def texts(self) -> list[str]:
        spans = [_text(first) if first == last else f"{_text(first)}/{_text(last)}" for first, last in self.spans]
        return [*spans, *(f"--{month:02d}-{day:02d}" for month, day in self.yearly)]


NO_DAYS = Days()


def _weekdays(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or len(value) > _WEEKDAYS_MAX:
        raise InvalidInput((), f"{quoted(value)} is not a list of days of the week", _WEEKDAYS_EXPECTED)
    return tuple(sorted({day for text in value for day in _weekday_span(text)}))


def _weekday_span(text: Any) -> list[int]:
    first, dash, last = text.lower().partition("-") if isinstance(text, str) and len(text) < 10 else ("", "", "")
    if first not in WEEKDAYS or (dash and last not in WEEKDAYS):
        raise InvalidInput((), f"{quoted(text)} is not a day of the week", _WEEKDAYS_EXPECTED)
    begin = WEEKDAYS.index(first)
    length = (WEEKDAYS.index(last) - begin) % len(WEEKDAYS) if dash else 0
    return [(begin + step) % len(WEEKDAYS) for step in range(length + 1)]


def _stored_weekdays(value: Any) -> tuple[int, ...]:
    is_listed = isinstance(value, list | tuple) and len(value) <= len(WEEKDAYS)
    if not is_listed or not all(is_integer(day) and 0 <= day < len(WEEKDAYS) for day in value):
        raise InvalidInput((), f"{str(value)[:64]}", "a list of numbers from 0 (Monday) to 6")
    return tuple(sorted(set(value)))


def _shown_weekdays(days: tuple[int, ...]) -> list[str]:
    return [WEEKDAYS[day] for day in days]


def _day_list(value: Any) -> Days:
    if isinstance(value, Days):
        return value
    if not isinstance(value, list):
        raise InvalidInput((), f"{quoted(value)} is not a list of days", f"a list of: {DAYS_EXPECTED}")
    return read_days(value)


_TEXTS = {"type": "array", "items": {"type": "string"}}
Weekdays = Annotated[
    tuple[int, ...],
    Form(_weekdays, _shown_weekdays, _stored_weekdays, {**_TEXTS, "maxItems": _WEEKDAYS_MAX}, _TEXTS, "DAY,…", list),
]
DayList = Annotated[
    Days,
    Form(_day_list, Days.texts, _day_list, {**_TEXTS, "maxItems": DAYS_MAX}, _TEXTS, "DAY,…", Days.texts),
]


class CalendarBody(Part):
    """A set of local days; an omitted or null list is empty."""

    weekdays: Weekdays = Field(default=(), examples=[["mon", "tue", "wed", "thu", "fri"]])
    """Days of each week in the calendar, such as `mon` or `mon-fri`; default none"""
    include: DayList = Field(default=NO_DAYS, examples=[["2030-12-28"]])
    """Further days in the calendar: `2030-12-24`, a span `2030-12-24/2031-01-01` with both ends, or `--12-25` for
    each year; at most 1000, default none"""
    exclude: DayList = Field(default=NO_DAYS, examples=[["2030-12-24/2031-01-01", "--05-01"]])
    """Days of `weekdays` to leave out, written as in `include`; at most 1000, default none"""
    owner: Owner = None


class Calendar(CalendarBody, Noun):
    """A named set of local days: those in `include`, and those in `weekdays` that are not in `exclude`."""

    always_stored = ("rev", "weekdays", "include", "exclude")

    def has(self, day: int) -> bool:
        # 1970-01-01 was a Thursday.
        is_weekday = (day + 3) % 7 in self.weekdays
        return (is_weekday and not self.exclude.has(day)) or self.include.has(day)

    @cached_property
    def bits(self) -> int:
        """Return its days as the bits of a number, from the day before 1970 on, so that a walk over days is a step."""
        weekdays = 0
        for weekday in self.weekdays:
            weekdays |= _WEEKDAY_BITS[weekday]
        return weekdays & ~self.exclude.bits() | self.include.bits()


def read_days(texts: Sequence[object]) -> Days:
    """Return the days in the texts, in normal form; raise `InvalidInput` with the index of an invalid text."""
    if len(texts) > DAYS_MAX:
        raise InvalidInput((), f"{len(texts)} days and spans", f"at most {DAYS_MAX}")
    spans: list[tuple[int, int]] = []
    yearly: set[tuple[int, int]] = set()
    for place, text in enumerate(texts):
        try:
            named = _YEARLY.fullmatch(text) if isinstance(text, str) else None
            if named is not None:
                month, day = int(named[1]), int(named[2])
                date(_LEAP_YEAR, month, day)
                yearly.add((month, day))
            else:
                spans.append(_span(text))
        except ValueError:
            raise InvalidInput((place,), f"{quoted(text)} is not a day", DAYS_EXPECTED) from None
    return Days(_apart(spans), tuple(sorted(yearly)))


def _from_bits(digits: bytearray) -> int:
    return int(digits[::-1], 2)


# Bit 0 is a Wednesday.
_WEEKDAY_BITS = [
    _from_bits((bytearray(b"0" * ((day - 2) % 7) + b"1").ljust(7, b"0") * (_BITS // 7 + 1))[:_BITS]) for day in range(7)
]


def _days_of_year(year: int) -> list[tuple[int, int]]:
    days = (date(year, 1, 1) + timedelta(days=number) for number in range(365 + isleap(year)))
    return [(day.month, day.day) for day in days]


_DAYS_OF_YEARS = (_days_of_year(_LEAP_YEAR + 1), _days_of_year(_LEAP_YEAR))


def _span(text: object) -> tuple[int, int]:
    if not isinstance(text, str) or len(text) > 2 * len("2030-12-24/"):
        raise ValueError
    first, _, last = text.partition("/")
    span = _number(first), _number(last if "/" in text else first)
    if span[1] < span[0]:
        raise ValueError
    return span


def _number(text: str) -> int:
    if not _DAY.fullmatch(text):
        raise ValueError
    day = date.fromisoformat(text)
    if not _EPOCH <= day <= _LAST:
        raise ValueError
    return (day - _EPOCH).days


def _text(day: int) -> str:
    return (_EPOCH + timedelta(days=day)).isoformat()


def _apart(spans: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return the spans ascending, overlapping ones joined; neighbours stay as they were written."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return tuple(found)
