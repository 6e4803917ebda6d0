"""Every change of a job is a row of the table, its rev rises by one, its attempt never falls and rises with each new
life."""

from hascheduler.model.collection import Collection
from hascheduler.model.job import TERMINAL, JobState, may_follow
from tests.checkers.evidence import Evidence


def legal_moves(evidence: Evidence) -> list[str]:
    wrong = []
    for commit in evidence.of(Collection.JOBS):
        before, after = commit.before, commit.after
        if after is None:
            continue
        if before is None:
            # A fire whose first attempt is decided too may be inserted as dispatched, in one write.
            is_claimed_fire = after["state"] == JobState.DISPATCHED and after["attempt"] == 1 and after["nominal_ms"]
            if (after["state"] != JobState.PENDING or after["attempt"] != 0) and not is_claimed_fire:
                wrong.append(f"{commit.id} began {after['state']}, attempt {after['attempt']}")
            continue
        was, became = JobState(before["state"]), JobState(after["state"])
        if was is not became and not may_follow(was, became):
            wrong.append(f"{commit.id} went from {was} to {became}")
        if after["rev"] != before["rev"] + 1 and after["rev"] != before["rev"]:
            wrong.append(f"{commit.id} went from rev {before['rev']} to {after['rev']}")
        if after["attempt"] < before["attempt"]:
            wrong.append(f"{commit.id} went from attempt {before['attempt']} to {after['attempt']}")
        is_claim = was is JobState.PENDING and became is JobState.DISPATCHED
        if is_claim and after["attempt"] != before["attempt"] + 1:
            wrong.append(f"{commit.id} was claimed as attempt {after['attempt']} after {before['attempt']}")
        if was in TERMINAL and became is JobState.PENDING and after["attempt"] != before["attempt"] + 1:
            wrong.append(f"{commit.id} was revived as attempt {after['attempt']} after {before['attempt']}")
    return wrong
