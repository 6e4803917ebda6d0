"""The transport that needs nothing but MongoDB, on a real one and with both drivers."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from motor.motor_asyncio import AsyncIOMotorClient

from hascheduler.dispatch.decisions import Dispatch
from hascheduler.model.message import Message, MessageKind, decode_message
from hascheduler.model.values.instants import WallMs
from hascheduler.mongo.apply.claims import MongoClaimStore
from hascheduler.mongo.connection import Database, connect, open_database
from hascheduler.mongo.jobs.store import MongoJobStore
from hascheduler.mongo.transport import MongoDeliveries
from hascheduler.ports import Delivery
from tests.factories import make_job

RETENTION_MS = 600_000


@pytest.fixture(params=["pymongo", "motor"])
async def database(request: pytest.FixtureRequest, mongodb_uri: str, ready_database: str) -> AsyncIterator[Any]:
    plain = connect(mongodb_uri)
    if request.param == "motor":
        motor: Any = AsyncIOMotorClient(mongodb_uri, serverSelectionTimeoutMS=2_000)
        yield open_database(motor, ready_database)
        motor.close()
    else:
        yield open_database(plain, ready_database)
    await plain.close()


async def promise(database: Database, job_id: str, processor_id: str) -> None:
    payload = {"large": "x" * 2_000 if job_id.startswith("large") else ""}
    await MongoJobStore(database, RETENTION_MS).submit(make_job(job_id, payload=payload))
    claim = Dispatch(job_id, 1, processor_id)
    await MongoClaimStore(database, RETENTION_MS).apply([claim], WallMs(2), majority=True)


class Inbox:
    def __init__(self) -> None:
        self.queue: asyncio.Queue[Delivery] = asyncio.Queue()
        self._seen: set[Message] = set()

    async def sink(self, delivery: Delivery) -> None:
        self.queue.put_nowait(delivery)

    async def seen(self, count: int) -> set[Message]:
        """What has been delivered, once it is so many different messages."""
        async with asyncio.timeout(20):
            while len(self._seen) < count:
                delivery = await self.queue.get()
                self._seen.add(decode_message(delivery.body))
                await delivery.ack()
        return self._seen


async def test_what_is_promised_before_and_while_it_watches_is_delivered(database: Database) -> None:
    inbox = Inbox()
    await promise(database, "before", "p.1")
    await promise(database, "not ours", "p.2")
    deliveries, turns = MongoDeliveries(database, "p.1"), list[bool]()
    watching = asyncio.create_task(deliveries.run(inbox.sink, lambda: turns.append(deliveries.consuming)))
    assert await inbox.seen(1) == {Message(MessageKind.RUN, "before", 1)}
    for n in range(10):
        await promise(database, f"small-{n}", "p.1")
        await promise(database, f"large-{n}", "p.1")
    told = {message.job_id for message in await inbox.seen(21)}
    assert told == {"before", *(f"{size}-{n}" for size in ("small", "large") for n in range(10))}
    watching.cancel()
    await asyncio.wait({watching})
    assert watching.cancelled()
    assert turns == [True, False], "its readiness hangs on that"


async def test_it_outlives_a_collection_that_is_dropped(database: Database) -> None:
    inbox = Inbox()
    watching = asyncio.create_task(MongoDeliveries(database, "p.1").run(inbox.sink))
    await promise(database, "a", "p.1")
    await inbox.seen(1)
    await database["jobs"].drop()
    await promise(database, "b", "p.1")
    assert {message.job_id for message in await inbox.seen(2)} == {"a", "b"}
    watching.cancel()
    await asyncio.wait({watching})
