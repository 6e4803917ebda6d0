"""No job of a schedule exists before its nominal time, by the true clock and what the clocks may be wrong."""

from hascheduler.model.collection import Collection
from tests.checkers.evidence import Evidence


def never_early(evidence: Evidence) -> list[str]:
    wrong = []
    for commit in evidence.of(Collection.JOBS):
        if commit.before is not None or commit.after is None or commit.after.get("nominal_ms") is None:
            continue
        now_ms = evidence.epoch_ms + commit.at_s * 1000
        early_ms = commit.after["nominal_ms"] - now_ms - evidence.skew_ms
        if early_ms > 0:
            wrong.append(f"{commit.id} was there {early_ms:.0f} ms early")
    return wrong
