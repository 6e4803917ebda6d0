"""How many distinct times several patterns have together.

The times of a pattern on one UTC day are the bits of an integer, a bit a second, so a union is an ``or`` and its size
a count of bits. Most days are alike: whether a cron expression names the local days that a UTC day lies on, and at
which offset, says all about it, and of an interval the first time does. So each pattern gives the *kind* of each day,
days of the same kinds are counted together, and only days of different kinds are looked at. A day on which a clock
changes is a kind of its own. The checks of a trigger see to it that an interval has few kinds of days.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from functools import lru_cache
from itertools import repeat

from hascheduler.model.trigger import Cron, Interval
from hascheduler.triggers.expressions import is_hourly, walls_of
from hascheduler.triggers.walls import Walls
from hascheduler.triggers.zones import DAY_S, span_at, transitions, wall_reached, zone_of

_DAY_BITS = (1 << DAY_S) - 1
# Of 10 KiB each at most.
_CACHED_MAX = 256

Kind = Hashable


def count_distinct(patterns: Sequence[Cron | Interval], after_s: int, through_s: int) -> int:
    """How many instants from ``after_s`` (left out) through ``through_s``, both from 1970 on, any of them names.

    The times of each are whole seconds, or as far from one as those of all others.
    """
    if through_s <= after_s:
        return 0
    (first, begin), (last, end) = divmod(after_s + 1, DAY_S), divmod(through_s, DAY_S)
    kinds = list(zip(*(_kinds(pattern, first, last) for pattern in patterns), strict=True))
    count = 0
    for kind, days in Counter(kinds).items():
        count += _union(patterns, kind).bit_count() * days
    before = _union(patterns, kinds[0]) & ((1 << begin) - 1)
    behind = _union(patterns, kinds[-1]) >> (end + 1)
    return count - before.bit_count() - behind.bit_count()


def _union(patterns: Sequence[Cron | Interval], kinds: Sequence[Kind]) -> int:
    found = 0
    for pattern, kind in zip(patterns, kinds, strict=True):
        found |= _bits(pattern, kind)
    return found


def _kinds(pattern: Cron | Interval, first: int, last: int) -> Sequence[Kind]:
    """Of the UTC days from ``first`` through ``last``."""
    if isinstance(pattern, Interval):
        every_s, anchor_s = pattern.every_ms // 1_000, pattern.anchor_ms // 1_000
        if DAY_S % every_s == 0:
            return [anchor_s % every_s] * (last - first + 1)
        return [min((anchor_s - day * DAY_S) % every_s, DAY_S) for day in range(first, last + 1)]
    return _kinds_of_cron(pattern, first, last)


def _kinds_of_cron(cron: Cron, first: int, last: int) -> Sequence[Kind]:
    """The offset, and whether the two local days are named; the number of the day where the clock changes."""
    zone = zone_of(cron.timezone)
    named = walls_of(cron.expression).named_days(first - 1, last + 1)
    kinds: list[Kind] = list(range(first, last + 1))
    at_s, end_s = first * DAY_S, (last + 1) * DAY_S
    while at_s < end_s:
        span = span_at(zone, at_s)
        begins, ends = max(-(-span.from_s // DAY_S), first), min(span.to_s, end_s) // DAY_S
        if begins < ends:
            # A clock behind UTC still shows the day before.
            place = begins - first + (span.offset_s >= 0)
            kinds[begins - first : ends - first] = zip(
                repeat(span.offset_s), named[place : place + ends - begins], named[place + 1 :], strict=False
            )
        at_s = span.to_s
    for change in transitions(zone, (first - 1) * DAY_S, end_s):
        back_s = max(0, change.offset_before_s - change.offset_after_s)
        for day in range(change.at_s // DAY_S, (change.at_s + back_s) // DAY_S + 1):
            if first <= day <= last:
                kinds[day - first] = day
    return kinds


def _bits(pattern: Cron | Interval, kind: Kind) -> int:
    if isinstance(pattern, Interval):
        assert isinstance(kind, int)
        return _each(pattern.every_ms // 1_000) << kind & _DAY_BITS if kind < DAY_S else 0
    if isinstance(kind, int):
        return _of_changed_day(pattern, kind)
    assert isinstance(kind, tuple)
    return _of_plain_day(pattern.expression, *kind)


@lru_cache(_CACHED_MAX)
def _each(every_s: int) -> int:
    """The bits 0, ``every_s``, twice that, and so on."""
    found, reach = 1, every_s
    while reach < DAY_S:
        found |= found << reach
        reach *= 2
    return found & _DAY_BITS


@lru_cache(_CACHED_MAX)
def _of_plain_day(expression: str, offset_s: int, is_first: int, is_second: int) -> int:
    """Of a day that begins so far into a local day, and ends as far into the next one."""
    bits, into_s = walls_of(expression).day_bits, offset_s % DAY_S
    first = bits >> into_s if is_first else 0
    second = bits << DAY_S - into_s & _DAY_BITS if is_second and into_s else 0
    return first | second


def _of_changed_day(cron: Cron, day: int) -> int:
    walls, zone, hourly = walls_of(cron.expression), zone_of(cron.timezone), is_hourly(cron.expression)
    at_s = begin_s = day * DAY_S
    reached_s = wall_reached(zone, begin_s - 1)
    found = 0
    while at_s < begin_s + DAY_S:
        span = span_at(zone, at_s)
        end_s = min(span.to_s, begin_s + DAY_S)
        first_s, last_s = at_s + span.offset_s, end_s - 1 + span.offset_s
        if not hourly:
            # What a gap swallows fires at its end, and what comes a second time does not.
            if walls.count(reached_s, first_s):
                found |= 1 << at_s - begin_s
            first_s, reached_s = max(first_s, reached_s + 1), max(last_s, reached_s)
        if first_s <= last_s:
            found |= _on_the_wall(walls, first_s, last_s) << first_s - span.offset_s - begin_s
        at_s = end_s
    return found


def _on_the_wall(walls: Walls, first_s: int, last_s: int) -> int:
    """The times from ``first_s`` through ``last_s`` on the wall; bit 0 is ``first_s``."""
    first, last = first_s // DAY_S, last_s // DAY_S
    found = 0
    for place, is_named in enumerate(walls.named_days(first, last)):
        if is_named:
            found |= walls.day_bits << place * DAY_S
    return found >> first_s - first * DAY_S & (1 << last_s - first_s + 1) - 1
