"""The nominal times of a trigger within its bounds, whatever its pattern."""

from hascheduler.model.instants import LATEST_MS, WallMs
from hascheduler.model.trigger import Cron, Interval, Once, Times, Trigger
from hascheduler.triggers import cron, interval, times


def next_nominal(trigger: Trigger, after_ms: int) -> WallMs | None:
    """The first nominal time strictly after ``after_ms``, or None when there will be no other."""
    after_ms = max(after_ms, _first_ms(trigger) - 1)
    nominal_ms: WallMs | None
    match trigger.pattern:
        case Interval() as pattern:
            nominal_ms = interval.next_nominal(pattern, after_ms)
        case Cron() as pattern:
            nominal_ms = cron.next_nominal(pattern, after_ms)
        case Times(at_ms):
            nominal_ms = times.next_nominal(at_ms, after_ms)
        case Once(at_ms):
            nominal_ms = times.next_nominal((at_ms,), after_ms)
    return nominal_ms if nominal_ms is not None and nominal_ms <= _last_ms(trigger) else None


def latest_nominal(trigger: Trigger, through_ms: int) -> WallMs | None:
    """The newest nominal time at or before ``through_ms``, or None when there was none."""
    through_ms = min(through_ms, _last_ms(trigger))
    nominal_ms: WallMs | None
    match trigger.pattern:
        case Interval() as pattern:
            nominal_ms = interval.latest_nominal(pattern, through_ms)
        case Cron() as pattern:
            nominal_ms = cron.latest_nominal(pattern, through_ms)
        case Times(at_ms):
            nominal_ms = times.latest_nominal(at_ms, through_ms)
        case Once(at_ms):
            nominal_ms = times.latest_nominal((at_ms,), through_ms)
    return nominal_ms if nominal_ms is not None and nominal_ms >= _first_ms(trigger) else None


def count_nominal(trigger: Trigger, after_ms: int, through_ms: int) -> int:
    """How many nominal times there are after ``after_ms`` through ``through_ms``."""
    after_ms = max(after_ms, _first_ms(trigger) - 1)
    through_ms = min(through_ms, _last_ms(trigger))
    match trigger.pattern:
        case Interval() as pattern:
            return interval.count_nominal(pattern, after_ms, through_ms)
        case Cron() as pattern:
            return cron.count_nominal(pattern, after_ms, through_ms)
        case Times(at_ms):
            return times.count_nominal(at_ms, after_ms, through_ms)
        case Once(at_ms):
            return times.count_nominal((at_ms,), after_ms, through_ms)


def _first_ms(trigger: Trigger) -> int:
    return max(trigger.start_at_ms or 0, 0)


def _last_ms(trigger: Trigger) -> int:
    return LATEST_MS - 1 if trigger.end_at_ms is None else min(trigger.end_at_ms, LATEST_MS - 1)
