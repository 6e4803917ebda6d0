"""What several runs of one benchmark come to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

Figures = Mapping[str, Any]
"""By name, units last: numbers, texts, and lists of whole numbers, which are samples."""

SAMPLES_MAX = 1_001
WORST = frozenset({"missed", "doubled", "lost", "failed", "unstarted", "unfinished"})
"""Of these the report has no median: one run in which something went wrong is not outvoted by the others."""


@dataclass(frozen=True, slots=True)
class Summary:
    """``figures`` are medians over the runs, ``spread`` the least and the largest; ``samples`` are of all runs."""

    figures: dict[str, Any]
    spread: dict[str, tuple[float, float]]
    samples: dict[str, list[int]]


def summarize(runs: Sequence[Figures]) -> Summary:
    """Texts are the last run's."""
    summary = Summary({}, {}, {})
    for name, last in runs[-1].items():
        values = [run[name] for run in runs if name in run]
        if isinstance(last, list):
            summary.samples[name] = thinned([sample for samples in values for sample in samples])
        elif isinstance(last, int | float):
            summary.figures[name] = max(values) if name in WORST else _median(values)
            summary.spread[name] = (min(values), max(values))
        else:
            summary.figures[name] = last if isinstance(last, str) else str(last)
    return summary


def thinned(samples: Sequence[int]) -> list[int]:
    """In order, and at most `SAMPLES_MAX`, evenly spaced by rank, the least and the largest among them."""
    ordered = sorted(samples)
    if len(ordered) <= SAMPLES_MAX:
        return ordered
    last = len(ordered) - 1
    return [ordered[rank * last // (SAMPLES_MAX - 1)] for rank in range(SAMPLES_MAX)]


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Of the straight line through ``points`` with the least squares; 0 where there is none."""
    if not points:
        return 0.0
    middle = sum(x for x, _ in points) / len(points)
    width = sum((x - middle) ** 2 for x, _ in points)
    return sum((x - middle) * y for x, y in points) / width if width else 0.0


def _median(values: Sequence[float]) -> float:
    """Whole where all of them are, and it is."""
    middle = median(values)
    return (
        int(middle) if all(isinstance(value, int) for value in values) and middle == int(middle) else round(middle, 3)
    )
