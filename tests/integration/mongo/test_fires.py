"""Fires on a real server: their traces, and a job that the driver or the server refuses for good."""

from typing import Any

import bson
import pytest

from hascheduler.dispatch.decisions import Settlement
from hascheduler.model.collection import Collection
from hascheduler.model.documents import fired_job
from hascheduler.model.documents.fired_job import JobMaker
from hascheduler.model.documents.job import new_job_document
from hascheduler.model.job import ScheduleId
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import FireCounts, Verdict
from hascheduler.mongo.apply.claims import MongoClaimStore
from hascheduler.mongo.connection import Database
from hascheduler.mongo.verdicts import MongoVerdictStore
from tests.factories import NOW, make_fire, make_schedule, make_template

DOCUMENT_BYTES_MAX = 16 * 1024 * 1024
AT_MS = WallMs(NOW + 1_000)


def a_little_larger() -> dict[str, Any]:
    """A schedule that can be stored, and whose job is one byte larger than a document may be."""
    schedule = make_schedule("little", payload="")
    [job] = JobMaker("little", schedule).fired(AT_MS)
    room = DOCUMENT_BYTES_MAX - len(bson.encode(new_job_document(job)))
    schedule["payload"] = "x" * (room + 1)
    assert len(bson.encode(schedule)) <= DOCUMENT_BYTES_MAX
    return schedule


async def test_a_job_that_is_larger_than_a_document_is_refused_and_the_others_fire(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver refuses what is far larger, the server what is a little larger."""
    monkeypatch.setattr(fired_job, "PAYLOAD_BYTES_MAX", 10**9)
    far = make_schedule("far", template=make_template(target="t" * 256), payload="${target}" * 80_000, render=True)
    schedules = database[Collection.SCHEDULES.value]
    for schedule in (make_schedule("first"), far, make_schedule("good"), a_little_larger(), make_schedule("last")):
        await schedules.insert_one(schedule)
    names = ("first", "far", "good", "little", "last")
    fires = [make_fire(1, schedule=name, tally=FireCounts(fired=1)) for name in names]
    settled = await MongoClaimStore(database, 600_000).apply(fires, AT_MS, majority=True)
    done, refused = Settlement.DONE, Settlement.REFUSED
    assert settled == [done, refused, done, refused, done]
    for name, settlement in zip(names, settled, strict=True):
        which = ScheduleId(name, "tenant", NOW)
        records = await MongoVerdictStore(database).list(which, frozenset(Verdict), NOW, WallMs(AT_MS + 1), 9)
        expected = Verdict.UNSTORABLE if settlement is refused else Verdict.FIRED
        assert [record.run.verdict for record in records] == [expected], name
