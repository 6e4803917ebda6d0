"""While everything is paused nothing is decided about nominal times, and no job is dispatched.

A leader heeds a pause once its stream has shown it, and a process may stand still between a decision and its entry: so
only entries count that came long after the pause began. What is decided again was promised before.
"""

from hascheduler.model.collection import Collection
from hascheduler.schema.pause import EVERYTHING
from tests.checkers.evidence import Evidence

HEEDED_S = 9.0
"""A process or a stream stands still for 8 s at most."""
_OF_TIMES = frozenset({"fire", "pass_over"})


def pauses_kept(evidence: Evidence) -> list[str]:
    wrong: list[str] = []
    paused_s: float | None = None
    held = frozenset[str]()
    promised: set[str] = set()
    for commit in evidence.commits:
        if commit.collection is Collection.PAUSES and commit.id == EVERYTHING:
            if commit.after is None:
                paused_s = None
            elif commit.before is None:
                paused_s = commit.at_s
                held = _OF_TIMES if commit.after["schedules_only"] else _OF_TIMES | {"dispatch"}
        if commit.collection is not Collection.JOURNAL or commit.before is not None or commit.after is None:
            continue
        for row in commit.after["decisions"] or ():
            is_new = str(row[:4]) not in promised
            promised.add(str(row[:4]))
            if is_new and paused_s is not None and commit.at_s > paused_s + HEEDED_S and row[0] in held:
                wrong.append(f"{row[:4]} at {commit.at_s:.3f} s, and all is paused since {paused_s:.3f} s")
    return wrong
