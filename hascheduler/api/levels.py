"""The order in which things that need each other may be done: level by level (A. B. Kahn, "Topological sorting of large
networks", CACM 5(11), 1962)."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Levels:
    """``levels`` are places, each after all that it needs; ``in_circles`` are those that can never come."""

    levels: Sequence[Sequence[int]]
    in_circles: Sequence[int]


def levels(needs: Sequence[Sequence[int]]) -> Levels:
    """``needs[place]`` are the places that come before ``place``."""
    missing = [len(set(each)) for each in needs]
    needed_by: list[list[int]] = [[] for _ in needs]
    for place, each in enumerate(needs):
        for other in set(each):
            needed_by[other].append(place)
    found: list[list[int]] = []
    level = [place for place, count in enumerate(missing) if count == 0]
    while level:
        found.append(level)
        after: list[int] = []
        for place in level:
            for other in needed_by[place]:
                missing[other] -= 1
                if missing[other] == 0:
                    after.append(other)
        level = sorted(after)
    return Levels(found, [place for place, count in enumerate(missing) if count])
