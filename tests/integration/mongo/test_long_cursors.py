"""Whatever reads a great many documents, slice by slice, leaves the server no limit for all slices together."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from pymongo import AsyncMongoClient
from pymongo.monitoring import CommandListener

from hascheduler.model.collection import Collection
from hascheduler.model.documents.job import new_job_document
from hascheduler.model.documents.lean_fields import MIRRORED
from hascheduler.model.values.instants import WallMs
from hascheduler.mongo.check.pace import ScanPace
from hascheduler.mongo.connection import Database, open_database
from hascheduler.mongo.routing import MongoRoutingStore
from hascheduler.mongo.stream.snapshot import SLICE_MAX
from hascheduler.mongo.stream.source import MongoChangeSource
from hascheduler.ports.invariant_scan import THOROUGH
from tests.factories import make_schedule
from tests.integration.mongo.examples import job


class Reads(CommandListener):
    """The commands of a client that begin a cursor or go on with one, as they were sent, by collection."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, dict[str, Any]]] = []

    def started(self, event: Any) -> None:
        if event.command_name in ("find", "getMore"):
            collection = event.command.get("collection", event.command[event.command_name])
            self.sent.append((collection, dict(event.command)))

    def succeeded(self, event: Any) -> None:
        pass

    def failed(self, event: Any) -> None:
        pass

    def of(self, collection: Collection) -> list[dict[str, Any]]:
        return [command for name, command in self.sent if name == collection.value]


@pytest.fixture
async def reads() -> Reads:
    return Reads()


@pytest.fixture
async def watched(database: Database, mongodb_uri: str, reads: Reads) -> AsyncIterator[Database]:
    async with AsyncMongoClient[dict[str, Any]](mongodb_uri, event_listeners=[reads]) as client:
        yield open_database(client, database.name)


async def test_the_snapshot_of_a_replica(watched: Database, reads: Reads) -> None:
    await watched.jobs.insert_many([new_job_document(job(f"j{number}")) for number in range(SLICE_MAX + 1)])
    stream = await MongoChangeSource(watched).open(None)
    found = sum([len(changes) async for changes in stream.snapshot()])
    await stream.close()
    assert found == SLICE_MAX + 1
    assert [next(iter(command)) for command in reads.of(Collection.JOBS)] == ["find", "getMore"]
    for collection in MIRRORED:
        if collection is not Collection.JOURNAL:  # of which a document is read at a time
            assert all("maxTimeMS" not in command for command in reads.of(collection)), collection


async def test_a_scan_of_the_check(watched: Database, reads: Reads) -> None:
    await watched.jobs.insert_many([{"_id": number} for number in range(5)])
    pace = ScanPace(THOROUGH, lambda *_: None)
    assert [len(some) async for some in pace.batches("jobs", watched.jobs.find({}), 3)] == [3, 2]
    assert reads.of(Collection.JOBS)
    assert all("maxTimeMS" not in command for command in reads.of(Collection.JOBS))


async def test_the_names_of_schedules_that_are_reserved(watched: Database, reads: Reads) -> None:
    await watched.schedules.insert_one(make_schedule())
    await MongoRoutingStore(watched).reserve_names(WallMs(1))
    assert await watched[Collection.NAMES.value].count_documents({}) == 1
    assert reads.of(Collection.SCHEDULES)
    assert all("maxTimeMS" not in command for command in reads.of(Collection.SCHEDULES))
