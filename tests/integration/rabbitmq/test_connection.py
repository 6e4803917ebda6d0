"""One connection's end: whatever the broker does, nothing of it is left to the garbage collector."""

import asyncio

import pytest
from aio_pika.abc import AbstractConnection

from hascheduler.rabbitmq.connection import BrokerConnection
from tests.integration.rabbitmq.wire import Wire


async def test_a_connection_that_the_broker_does_not_close_in_time_is_closed(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hascheduler.rabbitmq.connection._CLOSE_LIMIT_S", 0.05)
    async with BrokerConnection(wire.url, "test").session() as session:
        wire.silent = True
    assert session.connection.is_closed


async def test_one_that_is_cancelled_while_it_closes_is_closed_too(wire: Wire) -> None:
    connected: asyncio.Future[AbstractConnection] = asyncio.get_running_loop().create_future()

    async def use() -> None:
        async with BrokerConnection(wire.url, "test").session() as session:
            wire.silent = True
            connected.set_result(session.connection)

    task = asyncio.create_task(use())
    connection = await connected
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
    assert connection.is_closed
