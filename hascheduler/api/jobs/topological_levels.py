"""Topological levels: in which order to insert jobs that depend on each other.

Source: A. B. Kahn, "Topological sorting of large networks", CACM 5(11), 1962. Unlike `graphlib` it yields between
slices of the work, as a batch may have a hundred thousand dependencies, and it finds every job on or behind a cycle.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass

_STEP = 10_000
"""Dependencies in a slice."""


@dataclass(frozen=True, slots=True)
class TopologicalLevels:
    """``levels`` are indexes, each after all its dependencies; ``in_cycles`` are the indexes on or behind a cycle."""

    levels: Sequence[Sequence[int]]
    in_cycles: Sequence[int]


def topological_levels(dependencies: Sequence[Sequence[int]]) -> Generator[None, None, TopologicalLevels]:
    """``dependencies[index]`` are the indexes on which ``index`` depends. To be run by `run_in_slices`."""
    missing: list[int] = []
    dependents: list[list[int]] = [[] for _ in dependencies]
    work = 0
    for index, each in enumerate(dependencies):
        distinct = set(each)
        missing.append(len(distinct))
        for other in distinct:
            dependents[other].append(index)
        work += len(each)
        if work >= _STEP:
            work = 0
            yield
    found: list[list[int]] = []
    level = [index for index, count in enumerate(missing) if count == 0]
    while level:
        found.append(level)
        after: list[int] = []
        for index in level:
            for other in dependents[index]:
                missing[other] -= 1
                if missing[other] == 0:
                    after.append(other)
            work += len(dependents[index])
            if work >= _STEP:
                work = 0
                yield
        level = sorted(after)
    return TopologicalLevels(found, [index for index, count in enumerate(missing) if count])
