"""The exchange of events on a real broker: what is bound gets what it asked for, and trouble is said, not hidden."""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aio_pika
import pytest
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage, AbstractQueue

from hascheduler.model.event import Event, EventType
from hascheduler.rabbitmq.publisher import RabbitEventExchange
from tests.integration.rabbitmq.conftest import LIMIT_S, running
from tests.integration.rabbitmq.wire import Wire
from tests.unit.daemon.happenings import happened


class Listener:
    def __init__(self, queue: AbstractQueue) -> None:
        self._queue = queue

    async def next(self) -> AbstractIncomingMessage:
        message: AbstractIncomingMessage | None = None

        async def look() -> bool:
            nonlocal message
            message = await self._queue.get(no_ack=True, fail=False)
            return message is not None

        async with asyncio.timeout(LIMIT_S):
            while not await look():  # noqa: ASYNC110  # the broker is asked
                await asyncio.sleep(0.01)
        assert message is not None
        return message

    async def jobs(self, count: int) -> list[str]:
        return [json.loads((await self.next()).body)["job"] for _ in range(count)]


@pytest.fixture
async def channel(amqp_url: str) -> AsyncIterator[AbstractChannel]:
    connection = await aio_pika.connect(amqp_url)
    yield await connection.channel()
    await connection.close()


@pytest.fixture
async def name(channel: AbstractChannel) -> AsyncIterator[str]:
    name = f"test.events.{secrets.token_hex(4)}"
    yield name
    await channel.exchange_delete(name)


@asynccontextmanager
async def connected(url: str, name: str) -> AsyncIterator[RabbitEventExchange]:
    exchange = RabbitEventExchange(url, name)
    async with running(exchange.run):
        await until_published(exchange, [])
        yield exchange


async def until_published(exchange: RabbitEventExchange, events: list[Event]) -> None:
    async with asyncio.timeout(LIMIT_S):
        while not await exchange.publish(events):  # noqa: ASYNC110  # a retry
            await asyncio.sleep(0.02)


async def listening(channel: AbstractChannel, name: str, pattern: str) -> Listener:
    queue = await channel.declare_queue(exclusive=True)
    await queue.bind(name, routing_key=pattern)
    return Listener(queue)


async def test_each_listener_gets_what_its_pattern_says(amqp_url: str, name: str, channel: AbstractChannel) -> None:
    async with connected(amqp_url, name) as exchange:
        everything = await listening(channel, name, "job.#")
        failures = await listening(channel, name, "job.failed.#")
        of_fetch = await listening(channel, name, "job.*.git.fetch")
        of_git = await listening(channel, name, "job.*.git.#")
        events = [
            happened(1, "a", definition="git.fetch"),
            happened(2, "b", definition="git.fetch", type=EventType.FAILED),
            happened(3, "c", definition="git.gc", type=EventType.FAILED),
            happened(4, "d", definition="log", type=EventType.CANCEL_REQUESTED),
            happened(5, "e", definition=None, type=EventType.CANCELLED),
        ]
        assert await exchange.publish(events)
        assert await everything.jobs(5) == ["a", "b", "c", "d", "e"]
        assert await failures.jobs(2) == ["b", "c"]
        assert await of_fetch.jobs(2) == ["a", "b"]
        assert await of_git.jobs(3) == ["a", "b", "c"]


async def test_a_broker_that_answers_nothing_takes_nothing_and_comes_back(
    wire: Wire, name: str, channel: AbstractChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hascheduler.rabbitmq.publisher.PUBLISH_LIMIT_S", 0.2)
    async with connected(wire.url, name) as exchange:
        listener = await listening(channel, name, "#")
        wire.silent = True
        assert not await exchange.publish([happened(1, "a")])
        wire.reset()
        wire.silent = False
        await until_published(exchange, [happened(1, "a"), happened(2, "b")])
        assert "b" in await listener.jobs(2)
