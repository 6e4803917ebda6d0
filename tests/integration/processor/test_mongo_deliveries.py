"""The transport that needs nothing but MongoDB, and stands in for a broker that is away, with both drivers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from motor.motor_asyncio import AsyncIOMotorClient

from hascheduler.dispatch.decisions import Dispatch
from hascheduler.model.message import Message, MessageKind, decode_message
from hascheduler.model.values.instants import WallMs
from hascheduler.mongo import fallback
from hascheduler.mongo.apply.claims import MongoClaimStore
from hascheduler.mongo.connection import Database, connect, open_database
from hascheduler.mongo.fallback import FallbackDeliveries
from hascheduler.mongo.jobs.store import MongoJobStore
from hascheduler.mongo.transport import MongoDeliveries
from hascheduler.rabbitmq.deliveries import RabbitDeliveries
from hascheduler.rabbitmq.publisher import RabbitTransport
from tests.factories import make_job
from tests.integration.rabbitmq.conftest import Inbox, delivered, running, until
from tests.integration.rabbitmq.wire import wire_to

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


class Seen(Inbox):
    def __init__(self) -> None:
        super().__init__()
        self._seen: set[Message] = set()

    async def seen(self, count: int) -> set[Message]:
        """What has been delivered, once it is so many different messages."""
        while len(self._seen) < count:
            delivery = await self.next()
            self._seen.add(decode_message(delivery.body))
            await delivery.ack()
        return self._seen


async def test_what_is_promised_before_and_while_it_watches_is_delivered(database: Database) -> None:
    inbox = Seen()
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
    inbox = Seen()
    watching = asyncio.create_task(MongoDeliveries(database, "p.1").run(inbox.sink))
    await promise(database, "a", "p.1")
    await inbox.seen(1)
    await database["jobs"].drop()
    await promise(database, "b", "p.1")
    assert {message.job_id for message in await inbox.seen(2)} == {"a", "b"}
    watching.cancel()
    await asyncio.wait({watching})


def _run(job_id: str) -> Message:
    return Message(MessageKind.RUN, job_id, 1)


@asynccontextmanager
async def _falling_back(database: Database, url: str, id: str, inbox: Seen) -> AsyncIterator[RabbitDeliveries]:
    broker = RabbitDeliveries(url, id, 1)
    deliveries = FallbackDeliveries(broker, MongoDeliveries(database, id))
    async with running(lambda: deliveries.run(inbox.sink)):
        await until(lambda: broker.consuming)
        assert deliveries.consuming
        yield broker


async def test_while_the_broker_is_away_jobs_are_found_in_the_database(
    database: Database, amqp_url: str, database_name: str
) -> None:
    id, inbox = f"p.{database_name}", Seen()
    async with wire_to(amqp_url) as wire, _falling_back(database, wire.url, id, inbox) as broker:
        wire.silent = True
        wire.reset()
        await promise(database, "away", id)
        assert await inbox.seen(1) == {_run("away")}
        assert not broker.consuming
        # The stream goes on: no look of every few seconds is needed for the next one.
        await promise(database, "still away", id)
        assert await inbox.seen(2) == {_run("away"), _run("still away")}
        wire.silent = False
        await until(lambda: broker.consuming)
        transport = RabbitTransport(amqp_url)
        async with running(transport.run):
            await delivered(transport, id, _run("back"))
        assert _run("back") in await inbox.seen(3)
        await broker.delete()


async def test_a_job_whose_message_does_not_come_is_found_at_the_second_look(
    database: Database, amqp_url: str, database_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fallback, "SWEEP_EVERY_S", 0.2)
    id, inbox = f"p.{database_name}", Seen()
    async with _falling_back(database, amqp_url, id, inbox) as broker:
        await promise(database, "lost", id)
        assert await inbox.seen(1) == {_run("lost")}
        assert broker.consuming
        await broker.delete()
