"""Fixed intervals with an anchored phase: ``anchor + k × every`` for every whole k, before the anchor as well."""

from hascheduler.model.instants import WallMs
from hascheduler.model.trigger import IntervalTrigger


def next_nominal(trigger: IntervalTrigger, after_ms: int) -> WallMs:
    """The first multiple strictly after ``after_ms``, in constant time however long ago that was."""
    passed = (after_ms - trigger.anchor_ms) // trigger.every_ms
    return WallMs(trigger.anchor_ms + (passed + 1) * trigger.every_ms)
