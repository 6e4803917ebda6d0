"""Whether things happened in the order in which they should have."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from itertools import groupby
from typing import Any


def pairs_in_order(started: Iterable[tuple[int, Any]]) -> tuple[int, int]:
    """Of all pairs of ``(instant, key)``: how many happened in the order of their keys, and how many the other way.

    Pairs with one key, or at one instant, are in no order.
    """
    right = wrong = 0
    earlier: list[Any] = []
    for _, group in groupby(sorted(started, key=lambda one: one[0]), key=lambda one: one[0]):
        keys = [key for _, key in group]
        for key in keys:
            right += bisect_left(earlier, key)
            wrong += len(earlier) - bisect_right(earlier, key)
        for key in keys:
            insort(earlier, key)
    return right, wrong


def percent_in_order(started: Iterable[tuple[int, Any]]) -> float:
    """Of the pairs that are in any order; 100 where there are none. By chance it is 50."""
    right, wrong = pairs_in_order(started)
    return round(100 * right / (right + wrong), 2) if right + wrong else 100.0
