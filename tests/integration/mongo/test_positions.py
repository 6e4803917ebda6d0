"""Positions on a real server, where several writes have one cluster time."""

import asyncio
import time

import pytest

from hascheduler.mirror.mirror import Mirror
from hascheduler.model.collection import Collection
from hascheduler.model.documents.job import new_job_document
from hascheduler.mongo.connection import Database
from hascheduler.mongo.stream import source as stream_module
from hascheduler.mongo.stream.source import MongoChangeSource
from tests.contract.following import PATIENCE_MS, changes_through, opened
from tests.factories import make_job

COUNT = 7


async def transacted(database: Database) -> None:
    """A few jobs, written at one time; then a mark."""
    async with database.client.start_session() as session, await session.start_transaction():
        for number in range(COUNT):
            await database.jobs.insert_one(new_job_document(make_job(f"job-{number}")), session=session)
    await database.definitions.insert_one({"_id": "the end", "rev": 1})


async def test_the_writes_of_a_transaction_have_one_time_and_positions_of_their_own(database: Database) -> None:
    async with opened(MongoChangeSource(database)) as stream:
        await transacted(database)
        jobs = [change for change in await changes_through(stream, "the end") if change.collection is Collection.JOBS]
    assert len({change.position[:21] for change in jobs}) == 1
    assert [change.position for change in jobs] == sorted({change.position for change in jobs})
    assert [event.id for event in Mirror().fold(jobs).events] == [change.position for change in jobs]


async def test_a_stream_that_is_resumed_in_the_middle_of_one_time_counts_on(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = MongoChangeSource(database)
    async with opened(source) as stream:
        resume = (await stream.next_batch(0)).resume
        await transacted(database)
        whole = {change.id: change.position for change in await changes_through(stream, "the end")}
    monkeypatch.setattr(stream_module, "BATCH_MAX", 1)
    in_parts: dict[object, str] = {}
    while "the end" not in in_parts:
        async with opened(source, resume) as stream:
            batch = await stream.next_batch(PATIENCE_MS)
            assert len(batch.changes) == 1
            in_parts |= {change.id: change.position for change in batch.changes}
            resume = batch.resume
    assert in_parts == whole


async def test_a_change_has_the_time_when_the_server_took_it(database: Database) -> None:
    async with opened(MongoChangeSource(database)) as stream:
        before_ms = time.time_ns() // 1_000_000
        await asyncio.sleep(0.1)  # the clock that the server takes this from ticks every ten milliseconds
        await transacted(database)
        changes = await changes_through(stream, "the end")
        after_ms = time.time_ns() // 1_000_000
    assert all(change.at_ms is not None and before_ms <= change.at_ms <= after_ms for change in changes)
