"""Attempts on a real server: how they start, end and are retried; fires whose job the server refuses."""

import asyncio
import time
from datetime import timedelta
from typing import Any

import bson
import pytest

from hascheduler.dispatch.decisions import Dispatch, Settlement
from hascheduler.model.collection import Collection
from hascheduler.model.documents import fired_job
from hascheduler.model.documents.fired_job import JobMaker
from hascheduler.model.documents.job import new_job_document
from hascheduler.model.job import JobState, ScheduleId
from hascheduler.model.processor import ProcessorRef
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import FireCounts, Verdict
from hascheduler.mongo.apply.claims import MongoClaimStore
from hascheduler.mongo.connection import Database, connect, open_database
from hascheduler.mongo.jobs.store import MongoJobStore
from hascheduler.mongo.state_updates import back_to_pending
from hascheduler.mongo.verdicts import MongoVerdictStore
from hascheduler.mongo.work.store import MongoWorkStore, count_servers
from hascheduler.ports import AttemptOutcome, FinishAnswer
from tests.contract.backends import RETENTION_MS
from tests.factories import NOW, make_fire, make_job, make_schedule, make_template

RESULTS: list[Any] = [None, None, "done", {"a": [1, {"b": None}]}, "$state", {"$add": [1, 2]}, {"a.b": 1}]


async def running(database: Database, ids: list[str], work: MongoWorkStore) -> None:
    for id in ids:
        await MongoJobStore(database, RETENTION_MS).submit(make_job(id))
    claims = [Dispatch(id, 1, "p") for id in ids]
    await MongoClaimStore(database, RETENTION_MS).apply(claims, WallMs(NOW + 2_000), majority=True)
    assert all(await asyncio.gather(*(work.start(id, 1, "p", WallMs(NOW + 3_000)) for id in ids)))


async def ended(database: Database, ids: list[str], work: MongoWorkStore) -> list[FinishAnswer]:
    outcomes = [AttemptOutcome(JobState.SUCCEEDED, result=result) for result in RESULTS]
    finishing = (
        work.finish(id, 1, "p", outcome, WallMs(NOW + 4_000)) for id, outcome in zip(ids, outcomes, strict=True)
    )
    return list(await asyncio.gather(*finishing))


async def test_a_job_ends_the_same_with_and_without_remembered_times(database: Database) -> None:
    starter = MongoWorkStore(database, RETENTION_MS)
    known, unknown = [[f"{name}-{number}" for number in range(len(RESULTS))] for name in ("known", "unknown")]
    await running(database, known + unknown, starter)
    assert await ended(database, known, starter) == [FinishAnswer.DONE] * len(RESULTS)
    # Another process, which has not started these attempts.
    assert await ended(database, unknown, MongoWorkStore(database, RETENTION_MS)) == [FinishAnswer.DONE] * len(RESULTS)
    one, other = [[await database.jobs.find_one({"_id": id}, {"_id": False}) for id in ids] for ids in (known, unknown)]
    assert one == other
    assert [document["result"] for document in one if document] == RESULTS
    assert {document["state"] for document in one if document} == {"succeeded"}


async def test_wrong_remembered_times_end_nothing_and_the_pipeline_is_used(database: Database) -> None:
    work = MongoWorkStore(database, RETENTION_MS)
    ids = [str(number) for number in range(len(RESULTS))]
    await running(database, ids, work)
    await database.jobs.update_one({"_id": "0"}, {"$set": {"attempts": None}})
    await database.jobs.update_one({"_id": "1"}, {"$set": {"started_at_ms": NOW + 2_500}})
    assert await ended(database, ids, work) == [FinishAnswer.DONE] * len(RESULTS)
    assert await ended(database, ids, work) == [FinishAnswer.DONE] * len(RESULTS)  # asked again
    for id, started_at_ms in (("0", NOW + 3_000), ("1", NOW + 2_500), ("2", NOW + 3_000)):
        document = await database.jobs.find_one({"_id": id})
        assert document is not None
        (record,) = document["attempts"]
        assert record["started_at_ms"] == started_at_ms


DAY_MS, PAUSE_MS = 86_400_000, 2_000


@pytest.mark.parametrize("ahead_ms", [0, DAY_MS])
async def test_a_processor_whose_clock_is_ahead_does_not_put_its_jobs_off(
    ahead_ms: int, mongodb_uri: str, database_name: str
) -> None:
    client = connect(mongodb_uri)
    jobs = open_database(client, database_name)["jobs"]
    await jobs.insert_one({"_id": "j", "rev": 3, "attempts": [], "failures": 0})
    now_ms = time.time_ns() // 1_000_000
    at_ms = WallMs(now_ms + ahead_ms)
    retry = back_to_pending("failed", None, at_ms, retry_at_ms=WallMs(at_ms + PAUSE_MS))
    await jobs.update_one({"_id": "j"}, retry)
    job = await jobs.find_one({"_id": "j"})
    await client.close()
    assert job is not None
    assert now_ms + PAUSE_MS <= job["retry_at_ms"] <= time.time_ns() // 1_000_000 + PAUSE_MS


LOG = frozenset({"log"})
DEAD_AFTER_MS = 5_000


async def register(database: Database, id: str, definitions: frozenset[str] = LOG, **more: Any) -> None:
    fields: dict[str, Any] = {"slots": 4, "draining": False, **more}
    processor = ProcessorRef(id=id, name="p", shard="s", definitions=definitions, beat=1, parked=0, **fields)
    await MongoWorkStore(database, 600_000).register(processor)


async def servers(database: Database, *definitions: str) -> int | None:
    return await count_servers(database, frozenset(definitions), DEAD_AFTER_MS)


async def test_those_that_run_one_of_the_definitions_are_counted(database: Database) -> None:
    assert await servers(database, "log") == 0
    await register(database, "p.1")
    await register(database, "p.2", frozenset({"log", "mail"}))
    await register(database, "p.3", frozenset({"*"}))
    assert [await servers(database, *names) for names in (["log"], ["mail", "x"], ["x"], ["*"])] == [3, 2, 1, 3]


async def test_those_that_take_no_jobs_or_show_no_life_are_not(database: Database) -> None:
    for id in ("p.1", "p.2", "p.3"):
        await register(database, id)
    await MongoWorkStore(database, 600_000).beat("p.2", 2, draining=True, parked=0)
    [before] = await database[Collection.PROCESSORS.value].find({"_id": "p.3"}).to_list(None)
    long_ago = before["expire_at"] - timedelta(milliseconds=DEAD_AFTER_MS)
    await database[Collection.PROCESSORS.value].update_one({"_id": "p.3"}, {"$set": {"expire_at": long_ago}})
    assert await servers(database, "log") == 1


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
