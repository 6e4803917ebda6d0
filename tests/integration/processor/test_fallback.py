"""MongoDB stands in for a broker that is away, or whose message did not come; on real servers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from hascheduler.model.message import Message, MessageKind
from hascheduler.mongo import fallback
from hascheduler.mongo.connection import Database
from hascheduler.mongo.fallback import FallbackDeliveries
from hascheduler.mongo.transport import MongoDeliveries
from hascheduler.rabbitmq.deliveries import RabbitDeliveries
from hascheduler.rabbitmq.publisher import RabbitTransport
from tests.integration.processor.test_mongo_deliveries import Inbox, promise
from tests.integration.rabbitmq.conftest import delivered, running, until
from tests.integration.rabbitmq.wire import wire_to


def _run(job_id: str) -> Message:
    return Message(MessageKind.RUN, job_id, 1)


@asynccontextmanager
async def _falling_back(database: Database, url: str, id: str, inbox: Inbox) -> AsyncIterator[RabbitDeliveries]:
    broker = RabbitDeliveries(url, id, 1)
    deliveries = FallbackDeliveries(broker, MongoDeliveries(database, id))
    async with running(lambda: deliveries.run(inbox.sink)):
        await until(lambda: broker.consuming)
        assert deliveries.consuming
        yield broker


async def test_while_the_broker_is_away_jobs_are_found_in_the_database(
    database: Database, amqp_url: str, database_name: str
) -> None:
    id, inbox = f"p.{database_name}", Inbox()
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
    monkeypatch.setattr(fallback, "LOOK_S", 0.2)
    id, inbox = f"p.{database_name}", Inbox()
    async with _falling_back(database, amqp_url, id, inbox) as broker:
        await promise(database, "lost", id)
        assert await inbox.seen(1) == {_run("lost")}
        assert broker.consuming
        await broker.delete()


async def test_without_an_outage_what_is_dispatched_just_now_is_left_to_its_message(
    database: Database, amqp_url: str, database_name: str
) -> None:
    inbox = Inbox()
    await promise(database, "new", "p")
    looking = MongoDeliveries(database, "p")
    seen = await looking.sweep(inbox.sink, among=set())
    assert inbox.queue.empty()
    assert await looking.sweep(inbox.sink, among=seen) == seen
    assert await asyncio.wait_for(inbox.seen(1), 20) == {_run("new")}
