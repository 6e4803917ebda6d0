"""A term decides nothing that was decided and carried out before it began: it knows everything up to its beginning."""

from collections.abc import Iterator
from typing import Any

from hascheduler.model.collection import Collection
from hascheduler.model.job import fire_job_id
from hascheduler.model.leadership import EntryKind
from tests.checkers.evidence import Evidence


def decided_once(evidence: Evidence) -> list[str]:
    wrong = []
    attempts: dict[str, int] = {}
    # By shard: each has terms of its own.
    attempts_at_beginning: dict[str, dict[str, int]] = {}
    for commit in evidence.commits:
        if commit.collection is Collection.JOBS and commit.after is not None:
            attempts[commit.id] = max(attempts.get(commit.id, 0), commit.after["attempt"])
        if commit.collection is not Collection.JOURNAL or commit.after is None or commit.before is not None:
            continue
        if commit.after["kind"] == EntryKind.TERM_BEGAN:
            attempts_at_beginning[commit.after["_id"]["shard"]] = dict(attempts)
            continue
        known = attempts_at_beginning.get(commit.after["_id"]["shard"], {})
        for job_id, attempt in claims_in(commit.after["decisions"]):
            if known.get(job_id, -1) >= attempt:
                wrong.append(
                    f"{job_id}, attempt {attempt}, was decided again in term {commit.after['term']},"
                    f" entry {commit.after['_id']['seq']}"
                )
    return wrong


def claims_in(decisions: Any) -> Iterator[tuple[str, int]]:
    """The jobs and attempts of an entry's decisions. A fire makes attempt 0."""
    for kind, *fields in decisions:
        if kind == "fire":
            yield fire_job_id(fields[0], fields[1]), 0
        elif kind == "dispatch":
            yield fields[0], fields[1]
