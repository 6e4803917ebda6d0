"""Fixed intervals with an anchored phase: ``anchor + k × every`` for every whole k, before the anchor as well."""

from hascheduler.model.trigger import Interval
from hascheduler.model.values.instants import WallMs

EVERY_MIN_MS = 100


def next_nominal(interval: Interval, after_ms: int) -> WallMs:
    """The first multiple strictly after ``after_ms``, in constant time however long ago that was."""
    return WallMs(interval.anchor_ms + (_multiples(interval, after_ms) + 1) * interval.every_ms)


def latest_nominal(interval: Interval, through_ms: int) -> WallMs:
    return WallMs(interval.anchor_ms + _multiples(interval, through_ms) * interval.every_ms)


def count_nominal(interval: Interval, after_ms: int, through_ms: int) -> int:
    return max(0, _multiples(interval, through_ms) - _multiples(interval, after_ms))


def _multiples(interval: Interval, at_ms: int) -> int:
    return (at_ms - interval.anchor_ms) // interval.every_ms
