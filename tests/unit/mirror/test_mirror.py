"""The fold, one case at a time; documents that can't be read are set aside, and no other one suffers."""

from typing import Any

import pytest

from hascheduler.mirror.changes import (
    Change,
    DefinitionGone,
    DefinitionSeen,
    JobGone,
    JobSeen,
    JournalSeen,
    LeaseGone,
    LeaseSeen,
    Operation,
    ProcessorGone,
    ProcessorSeen,
    Quarantined,
    ScheduleGone,
    ScheduleSeen,
)
from hascheduler.mirror.mirror import QUARANTINE_MAX, Mirror
from hascheduler.model.collection import Collection
from hascheduler.model.documents.job import decode_job
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


def test_a_job_that_ends_leaves_whatever_else_its_last_patch_says() -> None:
    mirror = mirror_of(put(JOBS, "j", job_fields()))
    assert mirror.fold([patch(JOBS, "j", rev=2, state="failed", processor=7)]).facts == [JobGone("j", JobState.FAILED)]
    assert not mirror.quarantine


def test_a_state_that_is_no_text_is_no_end() -> None:
    unknown = Mirror().fold([patch(JOBS, "j", rev=2, state=["failed"])])
    assert (unknown.facts, unknown.wanted) == ([], [KEY])
    mirror = mirror_of(put(JOBS, "j", job_fields()))
    assert kinds(mirror.fold([patch(JOBS, "j", rev=2, state=["failed"])]).facts) == [JobGone, Quarantined]


def test_the_end_of_a_job_is_told_even_if_it_was_never_seen() -> None:
    assert Mirror().fold([put(JOBS, "j", job_fields(state="failed"))]).facts == [JobGone("j", JobState.FAILED)]
    assert Mirror().fold([patch(JOBS, "j", rev=7, state="failed")]).facts == [JobGone("j", JobState.FAILED)]
    assert Mirror().fold([delete(JOBS, "j")]).facts == [JobGone("j")]


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


def test_an_older_version_tells_nothing() -> None:
    mirror = mirror_of(put(JOBS, "j", job_fields(rev=5, priority=9)))
    assert mirror.fold([put(JOBS, "j", job_fields(rev=4)), patch(JOBS, "j", rev=5, priority=1)]).facts == []
    assert mirror.nouns(JOBS)["j"].priority == 9
    assert mirror.fold([]).wanted == []


def test_a_cursor_advances_without_an_edit_and_never_back() -> None:
    mirror = mirror_of(put(SCHEDULES, "s", schedule_fields(cursor_ms=1_000)))
    assert kinds(mirror.fold([patch(SCHEDULES, "s", cursor_ms=2_000)]).facts) == [ScheduleSeen]
    assert mirror.fold([patch(SCHEDULES, "s", cursor_ms=1_500)]).facts == []
    assert mirror.nouns(SCHEDULES)["s"].cursor_ms == 2_000
    assert mirror.fold([]).wanted == []


def test_a_gap_in_the_revisions_has_the_document_read() -> None:
    mirror = mirror_of(put(JOBS, "j", job_fields(rev=1)))
    assert mirror.fold([patch(JOBS, "j", rev=3, priority=1)]).facts == []
    assert mirror.nouns(JOBS)["j"].rev == 1
    assert mirror.fold([]).wanted == [KEY]
    mirror.fold_fetched([KEY], [put(JOBS, "j", job_fields(rev=4))])
    assert mirror.nouns(JOBS)["j"].rev == 4


def test_the_newest_journal_entry_of_each_shard_is_known() -> None:
    mirror = Mirror()
    for shard, seq in (("a", 4), ("b", 1), ("a", 6), ("a", 5)):
        mirror.fold([put(Collection.JOURNAL, journal_id(shard, seq), entry_fields(term=seq))])
    heads = [mirror.journal_head(shard) for shard in ("a", "b", "c")]
    assert [head and head.seq for head in heads] == [6, 1, None]
    again = mirror.fold([put(Collection.JOURNAL, journal_id("a", 7), entry_fields(term=7))]).facts
    assert kinds(again) == [JournalSeen]


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


def test_an_answer_that_nobody_asked_for_is_ignored() -> None:
    assert Mirror().fold_fetched([], [put(JOBS, "j", job_fields())]).facts == []


# Written by hand


def test_a_change_by_hand_that_raised_no_revision_has_the_document_read() -> None:
    mirror = mirror_of(put(JOBS, "j", job_fields(rev=5)))
    assert mirror.fold([patch(JOBS, "j", state="cancelled")]).facts == []
    assert mirror.fold([]).wanted == [KEY]
    assert mirror.fold_fetched([KEY], [put(JOBS, "j", job_fields(rev=5, state="cancelled"))]).facts == [
        JobGone("j", JobState.CANCELLED)
    ]


def test_a_read_tells_what_changed_under_the_same_revision() -> None:
    mirror = mirror_of(put(JOBS, "j", job_fields(rev=5)))
    mirror.want(JOBS, "j")
    facts = mirror.fold_fetched(mirror.fold([]).wanted, [put(JOBS, "j", job_fields(rev=5, priority=10))]).facts
    assert facts == [JobSeen(decode_job("j", job_fields(rev=5, priority=10)))]


# Digests


def test_heartbeats_leave_the_digest_alone() -> None:
    mirror = mirror_of(put(JOBS, "a", job_fields()))
    before = mirror.digest
    mirror.fold([put(Collection.PROCESSORS, "p", processor_fields()), patch(Collection.PROCESSORS, "p", beat=2)])
    mirror.fold([put(Collection.LEASES, "default", lease_fields())])
    assert mirror.digest == before


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


def test_what_was_read_beside_the_stream_makes_the_mirror_ahead() -> None:
    mirror = Mirror()
    mirror.fold([Change(SCHEDULES, Operation.PUT, "s", schedule_fields(), position="1.1", ahead=True)])
    assert mirror.ahead == 1
    mirror.fold_fetched([], [])
    assert mirror.ahead == 2
