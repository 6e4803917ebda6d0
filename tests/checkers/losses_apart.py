"""A loss is no failure: each of a job's two counts rises when an attempt ended so that ran, and only then."""

from collections.abc import Mapping
from typing import Any

from hascheduler.model.collection import Collection
from hascheduler.model.job import TERMINAL, JobState
from tests.checkers.evidence import Evidence

_ENDS = {"failures": "failed", "losses": "lost"}


def losses_apart(evidence: Evidence) -> list[str]:
    wrong = []
    for commit in evidence.of(Collection.JOBS):
        before, after = commit.before, commit.after
        if before is None or after is None or before["state"] in TERMINAL:
            continue
        ended = _ended(before, after)
        for name, end in _ENDS.items():
            more = after.get(name, 0) - before.get(name, 0)
            if more != (ended == end):
                wrong.append(f"{commit.id}, attempt {after['attempt']}, ended {ended}: {name} grew by {more}")
    return wrong


def _ended(before: Mapping[str, Any], after: Mapping[str, Any]) -> str | None:
    """How the attempt ended that ran before this change; None: none did."""
    if before["state"] != JobState.RUNNING or after["state"] == JobState.RUNNING:
        return None
    return str(after["attempts"][-1]["outcome"])
