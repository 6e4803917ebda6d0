"""The lease changes only as a compare-and-set allows: renewed or released by its holder, or taken with a new term."""

from hascheduler.model.collection import Collection
from tests.checkers.evidence import Evidence


def lease_moves(evidence: Evidence) -> list[str]:
    wrong = []
    for commit in evidence.of(Collection.LEASES):
        before, after = commit.before, commit.after
        if before is None or after is None:
            continue
        was = (before["holder"], before["term"], before["renewals"])
        became = (after["holder"], after["term"], after["renewals"])
        is_next = after["renewals"] == before["renewals"] + 1
        is_own = after["term"] == before["term"] and after["holder"] in (before["holder"], "")
        is_taken = after["term"] > before["term"] and after["holder"] != ""
        if not (is_next and (is_own or is_taken)):
            wrong.append(f"the lease went from {was} to {became} at {commit.at_s:.3f} s")
    return wrong
