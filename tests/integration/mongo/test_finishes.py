"""Attempts that this process started end without a pipeline, in the same documents as with one."""

import asyncio
from typing import Any

from hascheduler.dispatch.decisions import Dispatch
from hascheduler.model.job import JobState
from hascheduler.model.values.instants import WallMs
from hascheduler.mongo.apply.claims import MongoClaimStore
from hascheduler.mongo.connection import Database
from hascheduler.mongo.jobs.store import MongoJobStore
from hascheduler.mongo.work.store import MongoWorkStore
from hascheduler.ports import AttemptOutcome, FinishAnswer
from tests.factories import NOW
from tests.integration.mongo.examples import RETENTION_MS, job

RESULTS: list[Any] = [None, None, "done", {"a": [1, {"b": None}]}, "$state", {"$add": [1, 2]}, {"a.b": 1}]


async def running(database: Database, ids: list[str], work: MongoWorkStore) -> None:
    for id in ids:
        await MongoJobStore(database, RETENTION_MS).submit(job(id))
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


async def test_a_job_with_an_idempotency_key_is_kept_as_long_as_its_key(database: Database) -> None:
    work = MongoWorkStore(database, RETENTION_MS)
    ids = [str(number) for number in range(len(RESULTS))]
    await running(database, ids, work)
    forever = (await database.command("hello"))["localTime"].replace(year=2099, microsecond=0)
    await database.jobs.update_one({"_id": "0"}, {"$set": {"kept_until": forever}})
    await ended(database, ids, work)
    document = await database.jobs.find_one({"_id": "0"})
    assert document is not None
    assert document["expire_at"] == forever
