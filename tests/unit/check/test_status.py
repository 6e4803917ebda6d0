"""Digest marks and check results in heartbeats: additive fields that can never make a heartbeat unreadable."""

from typing import Any

import pytest

from hascheduler.model.values.instants import WallMs
from hascheduler.schema.noun import document_of, read_document
from hascheduler.schema.replica import LastCheck, ReplicaStatus
from tests.factories import make_replica

MARKS = (("one.ab12/4", "00ff"), ("two.cd=e/8", "ffee"))


@pytest.mark.parametrize("marks", [(), MARKS[:1], MARKS])
@pytest.mark.parametrize("last_check", [None, LastCheck(WallMs(5)), LastCheck(WallMs(7), {"overdue": 2, "index": 1})])
def test_it_is_read_back_as_it_was_written(marks: tuple[tuple[str, str], ...], last_check: LastCheck | None) -> None:
    status = make_replica(marks=marks, last_check=last_check)
    stored = document_of(status)
    assert read_document(ReplicaStatus, stored["_id"], stored) == status
    # The stream delivers a text whole; of an array it may deliver a part.
    assert isinstance(stored["marks"], str)


def test_a_heartbeat_of_an_older_release_has_no_marks_and_no_last_check() -> None:
    stored = document_of(make_replica(marks=MARKS, last_check=LastCheck(WallMs(5))))
    del stored["marks"], stored["audited"]
    assert read_document(ReplicaStatus, stored["_id"], stored) == make_replica()


@pytest.mark.parametrize(
    "nonsense", [None, 5, [], {}, "", " ", "a", "=", "a=b=c d", "at=", "at=x", "at=1 x", "at=-1", "at=" + "9" * 99]
)
def test_malformed_marks_or_checks_do_not_make_a_heartbeat_unreadable(nonsense: Any) -> None:
    stored = document_of(make_replica()) | {"marks": nonsense, "audited": nonsense}
    status = read_document(ReplicaStatus, stored["_id"], stored)
    assert status.id == "r1"
    assert all(isinstance(text, str) for mark in status.marks for text in mark)
    assert status.last_check in (None, LastCheck(WallMs(1)))
