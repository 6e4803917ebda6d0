"""The nominal times of a trigger within its bounds, whatever its pattern.

Those of an interval are ``anchor + k × every`` for every whole k, before the anchor as well.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from hascheduler.model.trigger import AnyOf, Cron, Interval, Once, Part, Pattern, Times, Trigger
from hascheduler.model.values.instants import LATEST_MS, WallMs
from hascheduler.triggers import cron
from hascheduler.triggers.day_bits import count_distinct


def next_nominal(trigger: Trigger, after_ms: int) -> WallMs | None:
    """The first nominal time strictly after ``after_ms``, or None when there will be no other."""
    start_at_ms, end_at_ms = trigger.start_at_ms, trigger.end_at_ms
    # `Any`, so that it stays the object that schedules of one cron expression share (see `cron`).
    nominal_ms: Any = _next(trigger.pattern, max(after_ms, (start_at_ms or 0) - 1, -1))
    is_none = nominal_ms is None or nominal_ms >= LATEST_MS or (end_at_ms is not None and nominal_ms > end_at_ms)
    return None if is_none else nominal_ms


def latest_nominal(trigger: Trigger, through_ms: int) -> WallMs | None:
    """The newest nominal time at or before ``through_ms``, or None when there was none."""
    nominal_ms = _latest(trigger.pattern, min(through_ms, _last_ms(trigger)))
    return nominal_ms if nominal_ms is not None and nominal_ms >= _first_ms(trigger) else None


def count_nominal(trigger: Trigger, after_ms: int, through_ms: int) -> int:
    """How many nominal times there are after ``after_ms`` through ``through_ms``."""
    after_ms, through_ms = max(after_ms, _first_ms(trigger) - 1), min(through_ms, _last_ms(trigger))
    if isinstance(trigger.pattern, AnyOf):
        return _count_any(trigger.pattern.parts, after_ms, through_ms)
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


def _count(pattern: Part, after_ms: int, through_ms: int) -> int:
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


def _count_any(parts: Sequence[Part], after_ms: int, through_ms: int) -> int:
    """A time that several parts name is counted once."""
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
