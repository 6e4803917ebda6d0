"""The order in which things that need each other may be done: level by level (A. B. Kahn, "Topological sorting of large
networks", CACM 5(11), 1962)."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass

_STEP = 10_000
"""How many needs are gone through at a time."""


@dataclass(frozen=True, slots=True)
class Levels:
    """``levels`` are places, each after all that it needs; ``in_circles`` are those that can never come."""

    levels: Sequence[Sequence[int]]
    in_circles: Sequence[int]


def levels(needs: Sequence[Sequence[int]]) -> Generator[None, None, Levels]:
    """``needs[place]`` are the places that come before ``place``. For `hascheduler.api.turns.in_turns`."""
    missing: list[int] = []
    needed_by: list[list[int]] = [[] for _ in needs]
    work = 0
    for place, each in enumerate(needs):
        distinct = set(each)
        missing.append(len(distinct))
        for other in distinct:
            needed_by[other].append(place)
        work += len(each)
        if work >= _STEP:
            work = 0
            yield
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
            work += len(needed_by[place])
            if work >= _STEP:
                work = 0
                yield
        level = sorted(after)
    return Levels(found, [place for place, count in enumerate(missing) if count])
