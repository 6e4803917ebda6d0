"""Where the fires of a schedule wait for each other, no job is dispatched while one of an earlier fire is left."""

from collections import defaultdict

from hascheduler.model.collection import Collection
from hascheduler.model.job import LIVE, JobState, fired_at, last_job_id
from tests.checkers.evidence import Evidence


def graphs_apart(evidence: Evidence) -> list[str]:
    waiting = {name for name, each in evidence.schedules.items() if each.graph and each.policy.overlap.is_serial}
    left: dict[str, dict[str, int]] = defaultdict(dict)
    wrong = []
    for commit in evidence.of(Collection.JOBS):
        after = commit.after or {}
        nominal_ms = fired_at(last_job_id(commit.id))
        if nominal_ms is None or (commit.after or commit.before or {}).get("schedule") not in waiting:
            continue
        of_schedule = left[str((commit.after or commit.before or {})["schedule"])]
        if after.get("state") == JobState.DISPATCHED and (commit.before or {}).get("state") != JobState.DISPATCHED:
            earlier = [id for id, at_ms in of_schedule.items() if at_ms < nominal_ms]
            wrong += [f"{commit.id} was dispatched at {commit.at_s:.3f} s, before {id} had ended" for id in earlier]
        if after.get("state") in LIVE:
            of_schedule[commit.id] = nominal_ms
        else:
            of_schedule.pop(commit.id, None)
    return wrong
