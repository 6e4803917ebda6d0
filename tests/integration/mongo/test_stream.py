"""The change stream on a real server; errors of the driver become ours, name the failed action, and hide the URI."""

import asyncio
import gc
from collections.abc import AsyncIterator
from typing import Any

import bson
import pytest
from bson.raw_bson import RawBSONDocument

from hascheduler.errors import HistoryLost, StoreUnavailable
from hascheduler.mirror.changes import Change, Quarantined
from hascheduler.mirror.mirror import Mirror
from hascheduler.model.collection import Collection
from hascheduler.model.documents.job import new_job_document
from hascheduler.mongo.connection import Database
from hascheduler.mongo.faults import faults, local_faults
from hascheduler.mongo.jobs.store import MongoJobStore
from hascheduler.mongo.stream import source as stream_module
from hascheduler.mongo.stream.source import MongoChangeSource, MongoChangeStream
from tests.contract.backends import RETENTION_MS
from tests.contract.following import PATIENCE_MS, changes_through, opened
from tests.factories import make_job

_PATIENCE_MS = 10_000


@pytest.fixture
async def stream(database: Database) -> AsyncIterator[MongoChangeStream]:
    stream = await MongoChangeSource(database).open(None)
    yield stream
    await stream.close()


async def received(stream: MongoChangeStream, count: int) -> list[Change]:
    changes: list[Change] = []
    while len(changes) < count:
        batch = await stream.next_batch(_PATIENCE_MS)
        assert batch.changes, f"silence after {changes}"
        changes += batch.changes
    assert len(changes) == count
    return changes


async def test_a_document_that_is_hard_to_decode_is_quarantined_and_the_others_go_on(
    database: Database, stream: MongoChangeStream
) -> None:
    broken = bson.encode({"_id": "broken", "rev": 1, "target": "XX"}).replace(b"XX", b"\xff\xfe")
    far = bson.encode({"_id": "far", "rev": bson.DatetimeMS(10**15)})
    odd = {"_id": "odd", "rev": {"$ref": 5, "$id": 1}}
    jobs = database.jobs
    for document in (RawBSONDocument(broken), RawBSONDocument(far), odd, {"_id": 7, "rev": 1}):
        await jobs.insert_one(document)
    await MongoJobStore(database, RETENTION_MS).submit(make_job("fine"))
    mirror = Mirror()
    facts = mirror.fold(await received(stream, 5)).facts
    assert [fact.id for fact in facts if isinstance(fact, Quarantined)] == ["broken", "far", "odd", "7"]
    assert set(mirror.nouns(Collection.JOBS)) == {"fine"}


@pytest.mark.parametrize("loss", ["rename away", "rename onto", "drop the database"])
async def test_a_lost_collection_ends_the_stream(database: Database, stream: MongoChangeStream, loss: str) -> None:
    match loss:
        case "rename away":
            await database.definitions.rename("elsewhere")
        case "rename onto":
            await database.other.insert_one({})
            await database.other.rename("definitions", dropTarget=True)
        case _:
            await database.client.drop_database(database.name)
    with pytest.raises(HistoryLost):
        await received(stream, 1)


async def test_a_resync_after_a_dropped_collection_creates_it_with_its_indexes(database: Database) -> None:
    made = await database.processors.index_information()
    source = MongoChangeSource(database)
    stream = await source.open(None)
    await database.processors.drop()
    await database.processors.insert_one({"_id": "p"})
    with pytest.raises(HistoryLost):
        await received(stream, 1)
    await stream.close()
    await (await source.open(None)).close()
    assert len(made) > 1
    assert await database.processors.index_information() == made


COUNT = 7


async def transacted(database: Database) -> None:
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


# The driver leaves its socket to the collector when it is interrupted while it connects.
leaves_sockets = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"
)


async def slow_query(database: Database) -> dict[str, Any]:
    """It takes the server some seconds, and finds nothing."""
    await database.jobs.insert_many([{"_id": number} for number in range(1_000)])
    summed = {"$sum": {"$map": {"input": {"$range": [0, 100_000]}, "in": "$$this"}}}
    return {"$expr": {"$eq": [summed, -1]}}


@leaves_sockets
async def test_an_exchange_and_a_slice_end_in_time(database: Database) -> None:
    slow = await slow_query(database)
    with pytest.raises(StoreUnavailable, match=r"dawdle: .*(?i:time)"), faults("dawdle", 0.2):
        await database.jobs.find_one(slow)
    with pytest.raises(StoreUnavailable, match="dawdle: no answer in time"):
        async with local_faults("dawdle", 0.2):
            await database.jobs.find(slow).to_list(1)


@leaves_sockets
async def test_a_cancellation_is_never_lost_in_the_driver(database: Database) -> None:
    async def exchange_for_ever() -> None:
        while True:
            with faults("exchange"):
                await database.command("ping")

    for turns in range(30):
        task = asyncio.create_task(exchange_for_ever())
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=10)
        assert done
        assert task.cancelled()
    gc.collect()
