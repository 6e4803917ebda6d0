"""Whether what is sent to a processor arrives now, of every transport: what its readiness hangs on."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from hascheduler.mongo.connection import connect, open_database
from hascheduler.mongo.schema.indexes import ensure_collections_and_indexes
from hascheduler.mongo.transport import MongoDeliveries
from hascheduler.ports import Deliveries, Delivery
from hascheduler.rabbitmq.deliveries import RabbitDeliveries
from hascheduler.testing.memory.messages import MemoryBroker, MemoryDeliveries
from tests.integration.rabbitmq.wire import wire_to
from tests.unit.processor.world import until


async def nowhere(_: Delivery) -> None:
    """Nothing is sent here."""


@asynccontextmanager
async def running(deliveries: Deliveries, turned: Callable[[], None] = lambda: None) -> AsyncIterator[None]:
    task = asyncio.create_task(deliveries.run(nowhere, turned))
    try:
        await until(lambda: deliveries.consuming)
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


async def follow(deliveries: Deliveries) -> None:
    """From before it runs until after."""
    turns: list[bool] = []
    assert not deliveries.consuming
    async with running(deliveries, lambda: turns.append(deliveries.consuming)):
        assert deliveries.consuming
    assert not deliveries.consuming
    assert turns == [True, False]


async def test_in_memory() -> None:
    await follow(MemoryDeliveries(MemoryBroker(), "p", 1))


async def test_over_mongodb_until_the_stream_breaks(mongodb_uri: str, database_name: str) -> None:
    client = connect(mongodb_uri)
    try:
        await ensure_collections_and_indexes(open_database(client, database_name))
        await follow(MongoDeliveries(open_database(client, database_name), "p"))
    finally:
        await client.close()


async def test_over_rabbitmq_while_the_connection_lasts(amqp_url: str) -> None:
    async with wire_to(amqp_url) as wire:
        deliveries = RabbitDeliveries(wire.url, "consuming.test", 1)
        await follow(deliveries)
        async with running(deliveries):
            wire.silent = True  # who connects again meanwhile gets no answer, so the loss can be looked at
            wire.reset()
            await until(lambda: not deliveries.consuming)
            wire.silent = False
            await until(lambda: deliveries.consuming)
        await deliveries.delete()
