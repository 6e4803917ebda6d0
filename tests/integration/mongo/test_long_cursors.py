"""Whatever reads a great many documents, slice by slice, leaves the server no limit for all slices together."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from pymongo import AsyncMongoClient

from hascheduler.model.collection import Collection
from hascheduler.model.documents.job import new_job_document
from hascheduler.model.documents.lean_fields import MIRRORED
from hascheduler.mongo.check.context import ScanPace
from hascheduler.mongo.connection import Database, open_database
from hascheduler.mongo.stream.snapshot import SLICE_MAX
from hascheduler.mongo.stream.source import MongoChangeSource
from hascheduler.ports.invariant_scan import THOROUGH
from tests.factories import make_job
from tests.sent_commands import SentCommands


def of(collection: Collection, commands: SentCommands) -> list[dict[str, Any]]:
    """Those that began a cursor there, or went on with one."""
    return [sent for sent in commands.sent if collection.value in (sent.get("find"), sent.get("collection"))]


@pytest.fixture
async def commands() -> SentCommands:
    return SentCommands()


@pytest.fixture
async def watched(database: Database, mongodb_uri: str, commands: SentCommands) -> AsyncIterator[Database]:
    async with AsyncMongoClient[dict[str, Any]](mongodb_uri, event_listeners=[commands]) as client:
        yield open_database(client, database.name)


async def test_the_snapshot_of_a_replica(watched: Database, commands: SentCommands) -> None:
    await watched.jobs.insert_many([new_job_document(make_job(f"j{number}")) for number in range(SLICE_MAX + 1)])
    stream = await MongoChangeSource(watched).open(None)
    found = sum([len(changes) async for changes in stream.snapshot()])
    await stream.close()
    assert found == SLICE_MAX + 1
    assert [next(iter(command)) for command in of(Collection.JOBS, commands)] == ["find", "getMore"]
    for collection in MIRRORED:
        if collection is not Collection.JOURNAL:  # of which a document is read at a time
            assert all("maxTimeMS" not in command for command in of(collection, commands)), collection


async def test_a_scan_of_the_check(watched: Database, commands: SentCommands) -> None:
    await watched.jobs.insert_many([{"_id": number} for number in range(5)])
    pace = ScanPace(THOROUGH, lambda *_: None)
    assert [len(some) async for some in pace.batches("jobs", watched.jobs.find({}), 3)] == [3, 2]
    assert of(Collection.JOBS, commands)
    assert all("maxTimeMS" not in command for command in of(Collection.JOBS, commands))
