"""Documents that can't be read are set aside, and no other one suffers."""

from typing import Any

import pytest

from hascheduler.mirror.changes import (
    Change,
    JobGone,
    JobSeen,
    Quarantined,
)
from hascheduler.mirror.mirror import QUARANTINE_MAX, Mirror
from hascheduler.model.collection import Collection
from hascheduler.model.documents.journal import journal_id
from tests.unit.mirror.nouns import (
    delete,
    entry_fields,
    job_fields,
    patch,
    put,
)

JOBS = Collection.JOBS
KEY = (JOBS, "j")


def mirror_of(*changes: Change) -> Mirror:
    mirror = Mirror()
    mirror.fold(changes)
    return mirror


def kinds(facts: list[Any]) -> list[type]:
    return [type(fact) for fact in facts]


def test_a_document_that_cannot_be_read_is_set_aside_with_the_reason_and_the_others_go_on() -> None:
    mirror = Mirror()
    facts = mirror.fold([put(JOBS, "bad", job_fields(priority="high")), put(JOBS, "good", job_fields())]).facts
    assert kinds(facts) == [JobGone, Quarantined, JobSeen]
    assert "priority" in mirror.quarantine[(JOBS, "bad")]
    assert set(mirror.nouns(JOBS)) == {"good"}


def test_a_document_that_becomes_unreadable_leaves() -> None:
    mirror = mirror_of(put(JOBS, "j", job_fields()))
    assert kinds(mirror.fold([patch(JOBS, "j", rev=2, priority="high")]).facts) == [JobGone, Quarantined]
    assert not mirror.nouns(JOBS)
    assert mirror.digest == Mirror().digest


@pytest.mark.parametrize(
    "mending",
    [
        [put(JOBS, "j", job_fields(rev=2))],
        [delete(JOBS, "j")],
        [patch(JOBS, "j", rev=2, state="cancelled")],
    ],
)
def test_a_mended_or_deleted_document_leaves_the_quarantine(mending: list[Change]) -> None:
    mirror = mirror_of(put(JOBS, "j", job_fields(priority="high")))
    mirror.fold(mending)
    assert mirror.quarantine == {}


def test_a_patch_of_a_document_in_quarantine_has_it_read() -> None:
    mirror = mirror_of(put(JOBS, "j", job_fields(priority="high")))
    mirror.fold([patch(JOBS, "j", rev=2, priority=5)])
    assert mirror.fold([]).wanted == [KEY]
    mirror.fold_fetched([KEY], [put(JOBS, "j", job_fields(rev=2))])
    assert mirror.quarantine == {}
    assert mirror.nouns(JOBS)["j"].rev == 2


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
