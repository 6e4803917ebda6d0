"""The fold, one case at a time; documents that can't be read are set aside, and no other one suffers."""

from typing import Any

import pytest

from hascheduler.mirror.changes import (
    Change,
    DefinitionGone,
    DefinitionSeen,
    JobGone,
    JobSeen,
    LeaseGone,
    LeaseSeen,
    ProcessorGone,
    ProcessorSeen,
    Quarantined,
    ScheduleGone,
    ScheduleSeen,
)
from hascheduler.mirror.mirror import QUARANTINE_MAX, Mirror
from hascheduler.model.collection import Collection
from hascheduler.model.documents.leadership import journal_id
from hascheduler.model.job import JobState
from tests.unit.mirror.nouns import (
    delete,
    entry_fields,
    job_fields,
    lease_fields,
    patch,
    processor_fields,
    put,
    schedule_fields,
)

JOBS, SCHEDULES = Collection.JOBS, Collection.SCHEDULES
DEFINITION = {"rev": 1, "max_concurrency": None, "attempts_max": 5}
KEY = (JOBS, "j")


def mirror_of(*changes: Change) -> Mirror:
    mirror = Mirror()
    mirror.fold(changes)
    return mirror


def kinds(facts: list[Any]) -> list[type]:
    return [type(fact) for fact in facts]


# The ordinary life of a document


def test_a_job_is_told_from_its_insert_to_its_end() -> None:
    mirror = Mirror()
    [seen] = mirror.fold([put(JOBS, "j", job_fields())]).facts
    assert isinstance(seen, JobSeen)
    assert (seen.job.id, seen.job.state, seen.job.rev) == ("j", JobState.PENDING, 1)
    [seen] = mirror.fold(
        [patch(JOBS, "j", rev=2, state="dispatched", attempt=1, processor="p", dispatched_at_ms=9)]
    ).facts
    assert isinstance(seen, JobSeen)
    assert (seen.job.state, seen.job.attempt, seen.job.processor) == (JobState.DISPATCHED, 1, "p")
    assert mirror.nouns(JOBS) == {"j": seen.job}
    assert mirror.fold([patch(JOBS, "j", rev=3, state="succeeded", processor=None)]).facts == [
        JobGone("j", JobState.SUCCEEDED)
    ]
    assert mirror.nouns(JOBS) == {}
    assert mirror.digest == Mirror().digest


@pytest.mark.parametrize(
    ("collection", "fields", "seen", "gone"),
    [
        (JOBS, job_fields(), JobSeen, JobGone),
        (SCHEDULES, schedule_fields(), ScheduleSeen, ScheduleGone),
        (Collection.DEFINITIONS, DEFINITION, DefinitionSeen, DefinitionGone),
        (Collection.PROCESSORS, processor_fields(), ProcessorSeen, ProcessorGone),
        (Collection.LEASES, lease_fields(), LeaseSeen, LeaseGone),
    ],
)
def test_every_noun_comes_and_goes(collection: Collection, fields: dict[str, Any], seen: type, gone: type) -> None:
    mirror = Mirror()
    empty = mirror.digest
    assert kinds(mirror.fold([put(collection, "x", fields)]).facts) == [seen]
    assert mirror.fold([put(collection, "x", fields)]).facts == []
    assert kinds(mirror.fold([delete(collection, "x")]).facts) == [gone]
    assert mirror.digest == empty


# What can't be followed is asked for


@pytest.mark.parametrize(
    "overtaking", [delete(JOBS, "j"), put(JOBS, "j", job_fields(rev=8)), patch(JOBS, "j", rev=6, state="cancelled")]
)
def test_a_read_that_the_stream_overtook_changes_nothing(overtaking: Change) -> None:
    mirror = mirror_of(put(JOBS, "j", job_fields(rev=5)))
    mirror.want(JOBS, "j")
    mirror.fold([])
    mirror.fold([overtaking])
    after = dict(mirror.nouns(JOBS))
    assert mirror.fold_fetched([KEY], [put(JOBS, "j", job_fields(rev=5))]).facts == []
    assert mirror.nouns(JOBS) == after
    assert mirror.fold([]).wanted == []


# Written by hand


def test_a_change_by_hand_that_raised_no_revision_has_the_document_read() -> None:
    mirror = mirror_of(put(JOBS, "j", job_fields(rev=5)))
    assert mirror.fold([patch(JOBS, "j", state="cancelled")]).facts == []
    assert mirror.fold([]).wanted == [KEY]
    assert mirror.fold_fetched([KEY], [put(JOBS, "j", job_fields(rev=5, state="cancelled"))]).facts == [
        JobGone("j", JobState.CANCELLED)
    ]


# Digests


def test_a_document_that_cannot_be_read_is_set_aside_with_the_reason_and_the_others_go_on() -> None:
    mirror = Mirror()
    facts = mirror.fold([put(JOBS, "bad", job_fields(priority="high")), put(JOBS, "good", job_fields())]).facts
    assert kinds(facts) == [JobGone, Quarantined, JobSeen]
    assert "priority" in mirror.quarantine[(JOBS, "bad")]
    assert set(mirror.nouns(JOBS)) == {"good"}


@pytest.mark.parametrize("id", [1, None, "", {"a": [1]}, b"j", 2.5])
def test_an_id_that_is_no_text_is_set_aside_until_it_is_deleted(id: object) -> None:
    mirror = Mirror()
    assert kinds(mirror.fold([put(JOBS, id, job_fields())]).facts) == [Quarantined]
    assert len(mirror.quarantine) == 1
    mirror.fold([delete(JOBS, id)])
    assert mirror.quarantine == {}


@pytest.mark.parametrize("kind", [None, "vote", [], {"$ne": 1}])
def test_a_journal_entry_that_cannot_be_read_is_set_aside(kind: object) -> None:
    mirror = Mirror()
    facts = mirror.fold([put(Collection.JOURNAL, journal_id("a", 1), entry_fields(kind=kind))]).facts
    assert kinds(facts) == [Quarantined]
    assert mirror.journal_head("a") is None


def test_the_quarantine_is_bounded_and_keeps_the_newest() -> None:
    mirror = Mirror()
    mirror.fold(put(JOBS, f"j{i}", {}) for i in range(QUARANTINE_MAX + 10))
    assert len(mirror.quarantine) == QUARANTINE_MAX
    assert (JOBS, "j9") not in mirror.quarantine
    assert (JOBS, f"j{QUARANTINE_MAX + 9}") in mirror.quarantine
