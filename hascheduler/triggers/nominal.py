"""The nominal times of a trigger within its bounds, whatever its pattern.

The times of an interval are ``anchor + k × every`` for every whole k, before the anchor as well.

Several patterns together have distinct times, which are counted by days. The times of a pattern on one UTC day are the
bits of an integer, one bit a second, so a union is an ``or`` and its size a count of bits. Most days are alike: a cron
expression is determined by its offset and by which local days of a UTC day it names, an interval by its first time.
So each pattern gives the *kind* of each day, and only days of different kinds are computed; the rest are multiplied. A
day with a clock change is a kind of its own. The checks of a trigger make sure that an interval has few kinds of days.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from functools import lru_cache
from itertools import repeat
from typing import Any

from hascheduler.model.values.instants import LATEST_MS, WallMs
from hascheduler.schema.trigger import AnyOf, Cron, Interval, Once, Pattern, Single, Times, Trigger
from hascheduler.triggers import cron
from hascheduler.triggers.expressions import is_hourly, walls_of
from hascheduler.triggers.walls import Walls
from hascheduler.triggers.zones import DAY_S, span_at, transitions, wall_reached, zone_of


def next_nominal(trigger: Trigger, after_ms: int) -> WallMs | None:
    """Return the first nominal time after ``after_ms``, or None if there is no other."""
    start_at_ms, end_at_ms = trigger.start_at_ms, trigger.end_at_ms
    # `Any`, so that it stays the object that schedules of one cron expression share (see `cron`).
    nominal_ms: Any = _next(trigger.pattern, max(after_ms, (start_at_ms or 0) - 1, -1))
    is_none = nominal_ms is None or nominal_ms >= LATEST_MS or (end_at_ms is not None and nominal_ms > end_at_ms)
    return None if is_none else nominal_ms


def latest_nominal(trigger: Trigger, through_ms: int) -> WallMs | None:
    """Return the newest nominal time at or before ``through_ms``, or None if there was none."""
    nominal_ms = _latest(trigger.pattern, min(through_ms, _last_ms(trigger)))
    return nominal_ms if nominal_ms is not None and nominal_ms >= _first_ms(trigger) else None


def count_nominal(trigger: Trigger, after_ms: int, through_ms: int) -> int:
    """Return how many nominal times there are after ``after_ms`` through ``through_ms``."""
    after_ms, through_ms = max(after_ms, _first_ms(trigger) - 1), min(through_ms, _last_ms(trigger))
    if isinstance(trigger.pattern, AnyOf):
        return _count_any(trigger.pattern.of, after_ms, through_ms)
    return _count(trigger.pattern, after_ms, through_ms)


def _next(pattern: Pattern, after_ms: int) -> WallMs | None:
    match pattern:
        case Interval(every_ms, anchor_ms):
            return WallMs(anchor_ms + (_multiples(pattern, after_ms) + 1) * every_ms)
        case Cron():
            return cron.next_nominal(pattern, after_ms)
        case Times(at_ms):
            place = bisect_right(at_ms, after_ms)
            return at_ms[place] if place < len(at_ms) else None
        case Once(once_ms):
            return once_ms if once_ms > after_ms else None
        case AnyOf(parts):
            found = (_next(part, after_ms) for part in parts)
            return min((nominal_ms for nominal_ms in found if nominal_ms is not None), default=None)


def _latest(pattern: Pattern, through_ms: int) -> WallMs | None:
    match pattern:
        case Interval(every_ms, anchor_ms):
            return WallMs(anchor_ms + _multiples(pattern, through_ms) * every_ms)
        case Cron():
            return cron.latest_nominal(pattern, through_ms)
        case Times(at_ms):
            place = bisect_right(at_ms, through_ms)
            return at_ms[place - 1] if place else None
        case Once(once_ms):
            return once_ms if once_ms <= through_ms else None
        case AnyOf(parts):
            found = (_latest(part, through_ms) for part in parts)
            return max((nominal_ms for nominal_ms in found if nominal_ms is not None), default=None)


def _count(pattern: Single, after_ms: int, through_ms: int) -> int:
    match pattern:
        case Interval():
            return max(0, _multiples(pattern, through_ms) - _multiples(pattern, after_ms))
        case Cron():
            return cron.count_nominal(pattern, after_ms, through_ms)
        case Times() | Once():
            return len(_between(pattern, after_ms, through_ms))


def _multiples(interval: Interval, at_ms: int) -> int:
    return (at_ms - interval.anchor_ms) // interval.every_ms


def _between(listed: Times | Once, after_ms: int, through_ms: int) -> Sequence[WallMs]:
    times_ms = listed.at_ms if isinstance(listed, Times) else (listed.at_ms,)
    return times_ms[bisect_right(times_ms, after_ms) : bisect_right(times_ms, through_ms)]


def _count_any(parts: Sequence[Single], after_ms: int, through_ms: int) -> int:
    """Return the count, with a time that several parts name counted once."""
    # Intervals are of whole seconds: two patterns can meet only where both are as far from a whole second.
    meeting: defaultdict[int, list[Cron | Interval]] = defaultdict(list)
    listed: set[WallMs] = set()
    for part in parts:
        match part:
            case Cron():
                meeting[0].append(part)
            case Interval():
                meeting[part.anchor_ms % 1_000].append(part)
            case Times() | Once():
                listed.update(_between(part, after_ms, through_ms))
    count = 0
    for apart_ms, patterns in meeting.items():
        if len(patterns) == 1:
            count += _count(patterns[0], after_ms, through_ms)
        else:
            count += count_distinct(patterns, (after_ms - apart_ms) // 1_000, (through_ms - apart_ms) // 1_000)
    alone = (at for at in listed if not any(_next(part, at - 1) == at for part in meeting[at % 1_000]))
    return count + sum(1 for _ in alone)


def _first_ms(trigger: Trigger) -> int:
    return max(trigger.start_at_ms or 0, 0)


def _last_ms(trigger: Trigger) -> int:
    return LATEST_MS - 1 if trigger.end_at_ms is None else min(trigger.end_at_ms, LATEST_MS - 1)


_DAY_BITS = (1 << DAY_S) - 1
# Of 10 KiB each at most.
_CACHED_MAX = 256

Kind = Hashable


def count_distinct(patterns: Sequence[Cron | Interval], after_s: int, through_s: int) -> int:
    """Return how many instants after ``after_s`` through ``through_s``, both from 1970 on, any of the parts names.

    Their times are whole seconds, or all as far from one.
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
    """Return the kinds of the UTC days from ``first`` through ``last``."""
    if isinstance(pattern, Interval):
        every_s, anchor_s = pattern.every_ms // 1_000, pattern.anchor_ms // 1_000
        if DAY_S % every_s == 0:
            return [anchor_s % every_s] * (last - first + 1)
        return [min((anchor_s - day * DAY_S) % every_s, DAY_S) for day in range(first, last + 1)]
    return _kinds_of_cron(pattern, first, last)


def _kinds_of_cron(cron: Cron, first: int, last: int) -> Sequence[Kind]:
    """Return the offset and which of the two local days are named; the day's number if the clock changes."""
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
    """Return the bits 0, ``every_s``, twice that, and so on."""
    found, reach = 1, every_s
    while reach < DAY_S:
        found |= found << reach
        reach *= 2
    return found & _DAY_BITS


@lru_cache(_CACHED_MAX)
def _of_plain_day(expression: str, offset_s: int, is_first: int, is_second: int) -> int:
    """Return the bits of a day that begins this far into a local day, and ends as far into the next one."""
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
    """Return the times from ``first_s`` through ``last_s`` on the wall; bit 0 is ``first_s``."""
    first, last = first_s // DAY_S, last_s // DAY_S
    found = 0
    for place, is_named in enumerate(walls.named_days(first, last)):
        if is_named:
            found |= walls.day_bits << place * DAY_S
    return found >> first_s - first * DAY_S & (1 << last_s - first_s + 1) - 1
