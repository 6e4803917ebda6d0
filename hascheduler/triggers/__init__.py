"""When: the nominal times of a trigger.

`next_nominal` answers the one question the core asks: which nominal time comes after this one? It is computed from
the previous nominal time, never from now, so every replica and every restart gets the same list. One file a kind.
"""

from hascheduler.model.instants import WallMs
from hascheduler.model.trigger import IntervalTrigger, OnceTrigger, Trigger
from hascheduler.triggers import interval, once

__all__ = ["next_nominal"]


def next_nominal(trigger: Trigger, after_ms: int) -> WallMs | None:
    """The first nominal time strictly after ``after_ms``, or None when there will be no other."""
    match trigger:
        case IntervalTrigger():
            return interval.next_nominal(trigger, after_ms)
        case OnceTrigger():
            return once.next_nominal(trigger, after_ms)
