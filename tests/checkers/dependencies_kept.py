"""No job is dispatched before what it waits for has succeeded, or has ended where it ignores failures.

Of a batch it waits for the jobs at least that were there when it was submitted.
"""

from collections import defaultdict
from collections.abc import Iterable

from hascheduler.model.collection import Collection
from hascheduler.model.job import TERMINAL, JobState
from tests.checkers.caps_kept import occupies
from tests.checkers.evidence import Commit, Evidence


def dependencies_kept(evidence: Evidence) -> list[str]:
    return waited_for(evidence.of(Collection.JOBS))


def waited_for(commits: Iterable[Commit]) -> list[str]:
    succeeded: set[str] = set()
    ended: set[str] = set()
    of_batch: defaultdict[str, set[str]] = defaultdict(set)
    there_before: dict[tuple[str, str], set[str]] = {}
    wrong = []
    for commit in commits:
        job = commit.after or {}
        if job.get("state") in TERMINAL:
            ended.add(commit.id)
        if job.get("state") == JobState.SUCCEEDED:
            succeeded.add(commit.id)
        awaited: set[str] = set()
        for id in job.get("waits_for", ()):
            if id.startswith("batch:"):
                awaited |= there_before.setdefault((commit.id, id), set(of_batch[id]))
            elif id != commit.id:
                awaited.add(id)
        if job.get("batch"):
            of_batch[job["batch"]].add(commit.id)
        missing = awaited - (ended if job.get("ignores_failures") else succeeded)
        if missing and occupies(commit.after):
            wrong.append(
                f"{commit.id} was dispatched at {commit.at_s:.3f} s, before {sorted(missing)}, its dependencies"
            )
    return wrong
