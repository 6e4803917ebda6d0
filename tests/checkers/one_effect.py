"""A job is accepted as succeeded once, by an attempt whose handler ran to its end; no attempt runs twice."""

from collections import Counter

from hascheduler.model.collection import Collection
from hascheduler.model.job import JobState
from tests.checkers.evidence import Evidence


def one_effect(evidence: Evidence) -> list[str]:
    wrong = []
    runs = Counter((effect.job_id, effect.attempt) for effect in evidence.effects)
    wrong += [f"attempt {attempt} of {job} ran {count} times" for (job, attempt), count in runs.items() if count > 1]
    ended_s = {
        (effect.job_id, effect.attempt): effect.ended_s for effect in evidence.effects if effect.ended_s is not None
    }
    successes: Counter[str] = Counter()
    for commit in evidence.of(Collection.JOBS):
        after = commit.after or {}
        was = (commit.before or {}).get("state")
        if after.get("state") == JobState.SUCCEEDED and was != JobState.SUCCEEDED:
            successes[commit.id] += 1
            if ended_s.get((commit.id, after["attempt"]), float("inf")) > commit.at_s:
                wrong.append(f"{commit.id} succeeded by attempt {after['attempt']}, which had not ended")
    wrong += [f"{job} succeeded {count} times" for job, count in successes.items() if count > 1]
    return wrong
