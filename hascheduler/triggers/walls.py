"""The wall times that a cron expression names, on a calendar without time zones, in whole seconds since 1970.

The times of a day are a product of its fields, so the next one, the newest one and their count come from bisection
instead of stepping; the days come from the day fields, a month at a time.
"""

from bisect import bisect_left, bisect_right
from calendar import monthrange
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal

from hascheduler.model.values.instants import LATEST_MS
from hascheduler.triggers.zones import DAY_S

Values = list[int | Literal["*", "l"]]

_EPOCH = date(1970, 1, 1)
# Wall times are up to half a day ahead of instants, or behind them.
_LAST_DAY = LATEST_MS // 1_000 // DAY_S + 1


@dataclass(frozen=True, slots=True)
class DayOfMonth:
    """The day ``day``; if 0 or less, counted back from the last day. Or the weekday of that month nearest to it."""

    day: int
    nearest_weekday: bool

    def number(self, first: int, length: int) -> int | None:
        """Return its number in a month whose 1st is the weekday ``first`` (Monday is 0); None if it has none."""
        number = self.day if self.day > 0 else length + self.day
        if not 1 <= number <= length:
            return None
        weekday = (first + number - 1) % 7
        if self.nearest_weekday and weekday == 5:
            return number - 1 if number > 1 else number + 2
        if self.nearest_weekday and weekday == 6:
            return number + 1 if number < length else number - 2
        return number


class Walls:
    """What one expression of five or six fields names, with its fields as `croniter.expand` returns them.

    ``nth`` are the places in the month (1 to 5, or "l" for the last) to which its weekdays are restricted; ``special``
    are days of the month besides those in its field.
    """

    def __init__(
        self,
        expanded: Sequence[Values],
        nth: Mapping[int, Collection[int | str]],
        special: Collection[DayOfMonth] = (),
    ) -> None:
        minute, hour, day, month, weekday = expanded[:5]
        self._seconds = _numbers(expanded[5], 60) if len(expanded) > 5 else [0]
        self._minutes = _numbers(minute, 60)
        self._hours = _numbers(hour, 24)
        self._months = frozenset(_numbers(month, 13))
        self._days = None if day == ["*"] else frozenset(day)
        self._special = special
        self._weekdays = None if weekday == ["*"] else frozenset(weekday)
        self._nth = nth
        self.seconds_named = len(self._seconds)
        self._per_hour = self.seconds_named * len(self._minutes)
        self._per_day = self._per_hour * len(self._hours)
        # By the weekday of the 1st and the length: 28 kinds of month at most, kept as small numbers.
        self._known: dict[tuple[int, int], tuple[int, ...]] = {}

    def after(self, wall_s: int) -> int | None:
        """Return the first one after ``wall_s``; None if there is none before the end of time."""
        day, second = divmod(wall_s, DAY_S)
        if self._is_day(day):
            rank = self._rank(second)
            if rank < self._per_day:
                return day * DAY_S + self._of_rank(rank)
        following = next(self._days_from(day + 1), None)
        return None if following is None else following * DAY_S + self._of_rank(0)

    def through(self, wall_s: int) -> int | None:
        """Return the newest one at or before ``wall_s``; None if there is none since 1970."""
        day, second = divmod(wall_s, DAY_S)
        if self._is_day(day):
            rank = self._rank(second)
            if rank:
                return day * DAY_S + self._of_rank(rank - 1)
        before = next(self._days_back_from(day - 1), None)
        return None if before is None else before * DAY_S + self._of_rank(self._per_day - 1)

    def count(self, after_s: int, through_s: int) -> int:
        """Return how many there are after ``after_s`` through ``through_s``."""
        if through_s <= after_s:
            return 0
        first, first_second = divmod(after_s, DAY_S)
        last, last_second = divmod(through_s, DAY_S)
        before = self._rank(first_second) if self._is_day(first) else 0
        whole_days = self._count_days(first, last - 1)
        return whole_days * self._per_day - before + (self._rank(last_second) if self._is_day(last) else 0)

    @property
    def day_bits(self) -> int:
        """Return the times of a named day, one bit a second."""
        minute = sum(1 << second for second in self._seconds)
        hour = sum(minute << number * 60 for number in self._minutes)
        return sum(hour << number * 3_600 for number in self._hours)

    @property
    def in_every_hour(self) -> bool:
        """Return True if each hour of a named day is named."""
        return len(self._hours) == 24

    def named_days(self, first: int, last: int) -> bytes:
        """Return for each day from ``first`` through ``last`` 1 if it is named, else 0."""
        found = bytearray(last - first + 1)
        for day in self._days_from(max(first, 0)):
            if day > last:
                break
            found[day - first] = 1
        return bytes(found)

    # Within a day

    def _of_rank(self, rank: int) -> int:
        """Return the time of a day with ``rank`` times of the day before it."""
        hour, rest = divmod(rank, self._per_hour)
        minute, second = divmod(rest, self.seconds_named)
        return self._hours[hour] * 3_600 + self._minutes[minute] * 60 + self._seconds[second]

    def _rank(self, second: int) -> int:
        """Return how many of a day's times are at or before ``second``."""
        hour, rest = divmod(second, 3_600)
        minute, second = divmod(rest, 60)
        hours = bisect_left(self._hours, hour)
        rank = hours * self._per_hour
        if hours < len(self._hours) and self._hours[hours] == hour:
            minutes = bisect_left(self._minutes, minute)
            rank += minutes * self.seconds_named
            if minutes < len(self._minutes) and self._minutes[minutes] == minute:
                rank += bisect_right(self._seconds, second)
        return rank

    # Days, counted from 1970

    def _is_day(self, day: int) -> bool:
        if not 0 <= day <= _LAST_DAY:
            return False
        when = _EPOCH + timedelta(days=day)
        return when.day in self._month(when.year, when.month)[1]

    def _days_from(self, day: int) -> Iterator[int]:
        if day > _LAST_DAY:
            return
        when = _EPOCH + timedelta(days=max(day, 0))
        year, month = when.year, when.month
        while date(year, month, 1) <= _EPOCH + timedelta(days=_LAST_DAY):
            before, named = self._month(year, month)
            for number in named[bisect_left(named, day - before) :]:
                yield before + number
            year, month = (year, month + 1) if month < 12 else (year + 1, 1)

    def _days_back_from(self, day: int) -> Iterator[int]:
        if day < 0:
            return
        when = _EPOCH + timedelta(days=min(day, _LAST_DAY))
        year, month = when.year, when.month
        while year >= _EPOCH.year:
            before, named = self._month(year, month)
            for number in reversed(named[: bisect_right(named, day - before)]):
                yield before + number
            year, month = (year, month - 1) if month > 1 else (year - 1, 12)

    def _count_days(self, first: int, last: int) -> int:
        count = 0
        day = max(first, 0)
        while day <= min(last, _LAST_DAY):
            when = _EPOCH + timedelta(days=day)
            before, named = self._month(when.year, when.month)
            count += bisect_right(named, last - before) - bisect_left(named, day - before)
            day += monthrange(when.year, when.month)[1] - when.day + 1
        return count

    def _month(self, year: int, month: int) -> tuple[int, tuple[int, ...]]:
        """Return the day before the 1st, and which numbers of that month are named."""
        before = date(year, month, 1).toordinal() - _EPOCH.toordinal() - 1
        if month not in self._months:
            return before, ()
        weekday, length = monthrange(year, month)
        named = self._known.get((weekday, length))
        if named is None:
            special = {day.number(weekday, length) for day in self._special}
            named = self._known[(weekday, length)] = tuple(
                # Python's weekdays begin with Monday, those of cron with Sunday.
                number
                for number in range(1, length + 1)
                if self._names(number, (weekday + number) % 7, length, is_special=number in special)
            )
        return before, named

    def _names(self, number: int, weekday: int, length: int, *, is_special: bool) -> bool:
        """Return True if the day fields name the day ``number`` of a month of this ``length``."""
        is_day = self._days is None or number in self._days or is_special
        if self._days is None or self._weekdays is None:
            return is_day and self._names_weekday(number, weekday, length)
        return is_day or self._names_weekday(number, weekday, length)

    def _names_weekday(self, number: int, weekday: int, length: int) -> bool:
        if self._weekdays is None:
            return True
        if weekday not in self._weekdays:
            return False
        places = self._nth.get(weekday)
        return not self._nth or (
            places is not None and ((number + 6) // 7 in places or (number + 7 > length and "l" in places))
        )


def _numbers(field: Values, end: int) -> list[int]:
    if field == ["*"]:
        return list(range(1 if end == 13 else 0, end))
    return sorted(number for number in field if isinstance(number, int))
