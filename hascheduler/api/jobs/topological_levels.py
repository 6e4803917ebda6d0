"""Topological levels: in which order to insert jobs that depend on each other.

Source: A. B. Kahn, "Topological sorting of large networks", CACM 5(11), 1962. Unlike `graphlib` it yields between
slices of the work, as a batch may have a hundred thousand dependencies, and it finds every place on or behind a cycle.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass

_STEP = 10_000
"""Dependencies in a slice."""


@dataclass(frozen=True, slots=True)
class Levels:
    """``levels`` are places, each after all its dependencies; ``in_cycles`` are the places on or behind a cycle."""

    levels: Sequence[Sequence[int]]
    in_cycles: Sequence[int]


def levels(needs: Sequence[Sequence[int]]) -> Generator[None, None, Levels]:
    """``needs[place]`` are the places on which ``place`` depends. To be run by `run_in_slices`."""
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
