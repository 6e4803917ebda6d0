"""Nominal times that are listed one by one."""

from bisect import bisect_right
from collections.abc import Sequence

from hascheduler.model.values.instants import WallMs

TIMES_MAX = 10_000


def next_nominal(times_ms: Sequence[WallMs], after_ms: int) -> WallMs | None:
    place = bisect_right(times_ms, after_ms)
    return times_ms[place] if place < len(times_ms) else None


def latest_nominal(times_ms: Sequence[WallMs], through_ms: int) -> WallMs | None:
    place = bisect_right(times_ms, through_ms)
    return times_ms[place - 1] if place else None


def count_nominal(times_ms: Sequence[WallMs], after_ms: int, through_ms: int) -> int:
    return max(0, bisect_right(times_ms, through_ms) - bisect_right(times_ms, after_ms))


def between(times_ms: Sequence[WallMs], after_ms: int, through_ms: int) -> Sequence[WallMs]:
    """Those after ``after_ms`` through ``through_ms``."""
    return times_ms[bisect_right(times_ms, after_ms) : bisect_right(times_ms, through_ms)]
