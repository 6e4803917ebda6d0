"""Both ends of the transport, each test with a processor id of its own on the one broker."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from hascheduler.model.message import Message, MessageKind
from hascheduler.ports import Confirm, Delivery
from hascheduler.rabbitmq.deliveries import RabbitDeliveries
from hascheduler.rabbitmq.publisher import RabbitTransport
from tests.integration.rabbitmq.wire import Wire, wire_to

LIMIT_S = 20


@asynccontextmanager
async def running(run: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    async def run_it() -> None:
        await run()

    task = asyncio.create_task(run_it())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled():
            task.result()


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what will come about by itself; the limit is far beyond any delay that is to be expected."""
    async with asyncio.timeout(LIMIT_S):
        while not condition():  # noqa: ASYNC110  # what changes knows nothing of those who wait
            await asyncio.sleep(0.01)


async def delivered(transport: RabbitTransport, processor_id: str, message: Message) -> None:
    """Publish until it is confirmed, as the daemon does."""
    async with asyncio.timeout(LIMIT_S):
        while (await transport.publish([(processor_id, message)]))[0] is not Confirm.CONFIRMED:  # noqa: ASYNC110  # a retry
            await asyncio.sleep(0.02)


def run_message(job_id: str, attempt: int = 1) -> Message:
    return Message(MessageKind.RUN, job_id, attempt)


class Inbox:
    def __init__(self) -> None:
        self.queue: asyncio.Queue[Delivery] = asyncio.Queue()

    async def sink(self, delivery: Delivery) -> None:
        self.queue.put_nowait(delivery)

    async def next(self) -> Delivery:
        async with asyncio.timeout(LIMIT_S):
            return await self.queue.get()


@pytest.fixture
def processor_id() -> str:
    return f"test.{secrets.token_hex(4)}"


@pytest.fixture
async def transport(amqp_url: str) -> AsyncIterator[RabbitTransport]:
    transport = RabbitTransport(amqp_url)
    async with running(transport.run):
        await until(lambda: transport.accepting)
        yield transport


@pytest.fixture
async def inbox(amqp_url: str, processor_id: str) -> AsyncIterator[Inbox]:
    inbox = Inbox()
    deliveries = RabbitDeliveries(amqp_url, processor_id, slots=2)
    async with running(lambda: deliveries.run(inbox.sink)):
        yield inbox
    await deliveries.delete()


@pytest.fixture
async def wire(amqp_url: str) -> AsyncIterator[Wire]:
    async with wire_to(amqp_url) as wire:
        yield wire
