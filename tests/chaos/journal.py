"""How long nobody decided anything, and how soon another did: by the times at which the journal was written."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

from hascheduler.model.collection import Collection
from hascheduler.model.leadership import EntryKind
from tests.checkers.evidence import Commit


def decisions(commits: Iterable[Commit]) -> list[tuple[float, int]]:
    """When decisions were committed, in order, and in which term."""
    return [(at_s, entry["term"]) for at_s, entry in _entries(commits, EntryKind.DECISIONS)]


def dispatches(commits: Iterable[Commit]) -> list[tuple[float, int]]:
    """The same of those that give a job to a processor."""
    decided = _entries(commits, EntryKind.DECISIONS)
    return [(at_s, entry["term"]) for at_s, entry in decided if any(row[0] == "dispatch" for row in entry["decisions"])]


def worst_gap_s(decided: Iterable[tuple[float, int]], from_s: float, to_s: float) -> float:
    """The longest span between ``from_s`` and ``to_s`` in which nothing was decided."""
    inside = [from_s, *(at_s for at_s, _ in decided if from_s <= at_s <= to_s), to_s]
    return max(after - before for before, after in pairwise(inside))


def took_over_s(decided: Iterable[tuple[float, int]], moment_s: float, term: int) -> float:
    """How long after that moment the first of a later term came; infinite if none did."""
    return min((at_s - moment_s for at_s, later in decided if later > term and at_s >= moment_s), default=float("inf"))


def terms(commits: Iterable[Commit]) -> int:
    """How many have begun."""
    return sum(1 for _ in _entries(commits, EntryKind.TERM_BEGAN))


def _entries(commits: Iterable[Commit], kind: EntryKind) -> Iterator[tuple[float, Mapping[str, Any]]]:
    for commit in commits:
        entry = commit.after
        if commit.collection is not Collection.JOURNAL or commit.before is not None or entry is None:
            continue
        if entry["kind"] == kind:
            yield commit.at_s, entry
