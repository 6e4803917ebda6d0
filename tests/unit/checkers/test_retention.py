"""What only long and real runs have: jobs and entries that are deleted when their time to be kept is over."""

from typing import Any

import pytest

from hascheduler.model.collection import Collection
from tests.checkers.evidence import Commit, Evidence, Submitted
from tests.checkers.journal_fenced import journal_fenced
from tests.checkers.legal_moves import legal_moves
from tests.checkers.nothing_extra import nothing_extra
from tests.checkers.nothing_lost import nothing_lost

KEPT_MS = 600_000


def job(**fields: Any) -> dict[str, Any]:
    made = {"_id": "j", "state": "pending", "attempt": 0, "rev": 1, "nominal_ms": None, "finished_at_ms": None}
    return {**made, **fields}


ENDED = job(state="succeeded", attempt=1, rev=4, finished_at_ms=1_000)


def deleted_job(at_s: float, before: dict[str, Any] = ENDED) -> Evidence:
    """It was submitted, acknowledged, has come to ``before``, and was deleted then."""
    return Evidence(
        commits=[Commit(0.5, Collection.JOBS, None, before), Commit(at_s, Collection.JOBS, before, None)],
        submits=[Submitted("j", 0.0, acknowledged=True)],
        jobs_kept_ms=KEPT_MS,
        documents={Collection.JOBS: {}, Collection.VERDICTS: {}},
    )


def test_a_job_may_be_deleted_when_its_time_is_over() -> None:
    evidence = deleted_job(at_s=601.0)
    assert nothing_lost(evidence) == nothing_extra(evidence) == []


@pytest.mark.parametrize(
    "evidence",
    [
        deleted_job(at_s=600.9),
        deleted_job(at_s=10_000.0, before=job(state="running", attempt=1, rev=3)),
        deleted_job(at_s=10_000.0, before=job()),
    ],
)
def test_a_job_that_is_deleted_before_is_lost(evidence: Evidence) -> None:
    assert nothing_lost(evidence) == ["j was acknowledged and is gone"]
    assert [text.partition(" at")[0] for text in nothing_extra(evidence)] == ["j was deleted"]


def test_where_nothing_is_to_be_deleted_nothing_may_be() -> None:
    evidence = deleted_job(at_s=10_000.0)
    evidence.jobs_kept_ms = None
    assert nothing_lost(evidence)
    assert nothing_extra(evidence)


def entry(seq: int, at_ms: int) -> dict[str, Any]:
    id = {"shard": "default", "seq": seq}
    return {"_id": id, "term": 1, "kind": "term_began" if seq == 1 else "decisions", "holder": "r", "at_ms": at_ms}


@pytest.mark.parametrize(
    ("seq", "at_s", "kept_ms", "wrong"),
    [
        (1, 601.0, KEPT_MS, False),
        (1, 599.0, KEPT_MS, True),
        (1, 10_000.0, None, True),
        # The newest stays: the next leader's seq and term follow from it.
        (2, 10_000.0, KEPT_MS, True),
    ],
)
def test_old_entries_may_be_trimmed_but_for_the_newest(seq: int, at_s: float, kept_ms: int | None, wrong: bool) -> None:
    first, second = entry(1, at_ms=0), entry(2, at_ms=100)
    deleted = first if seq == 1 else second
    evidence = Evidence(
        commits=[
            Commit(0.0, Collection.JOURNAL, None, first),
            Commit(0.1, Collection.JOURNAL, None, second),
            Commit(at_s, Collection.JOURNAL, deleted, None),
        ],
        journal_kept_ms=kept_ms,
    )
    assert bool(journal_fenced(evidence)) is wrong


@pytest.mark.parametrize(
    ("fields", "legal"),
    [
        ({}, True),
        ({"nominal_ms": 5, "state": "dispatched", "attempt": 1}, True),
        ({"state": "dispatched", "attempt": 1}, False),
        ({"nominal_ms": 5, "state": "dispatched", "attempt": 2}, False),
        ({"nominal_ms": 5, "state": "running", "attempt": 1}, False),
    ],
)
def test_only_a_fire_may_begin_as_dispatched(fields: dict[str, Any], legal: bool) -> None:
    evidence = Evidence(commits=[Commit(0.0, Collection.JOBS, None, job(**fields))])
    assert (legal_moves(evidence) == []) is legal
