"""`Transport` and `Deliveries`: a message arrives as it was sent, its trace beside it, with any headers."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

import aio_pika
import pytest

from hascheduler.model.message import Message, MessageKind, decode_message, encode_message
from hascheduler.model.trace import TraceContext
from hascheduler.ports import Confirm, Deliveries, Delivery, Transport
from hascheduler.rabbitmq.connection import DISPATCH_EXCHANGE
from hascheduler.rabbitmq.deliveries import RabbitDeliveries
from hascheduler.rabbitmq.publisher import RabbitTransport
from hascheduler.testing.memory.messages import MemoryBroker, MemoryDeliveries, MemoryTransport

LIMIT_S = 20
GOOD = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
MESSAGE = Message(MessageKind.RUN, "fire:tick:1700000000000", 3)
HOSTILE: list[dict[str, Any]] = [
    {},
    {"traceparent": "x" * 10_240},
    {"traceparent": f"{GOOD}{'0' * 10_240}"},
    {"traceparent": bytearray(GOOD.encode())},
    {"traceparent": bytearray(b"\xff\xfe")},
    {"traceparent": 7},
    {"traceparent": -1.5},
    {"traceparent": True},
    {"traceparent": None},
    {"traceparent": [GOOD, GOOD]},
    {"traceparent": {"traceparent": GOOD}},
    {"traceparent": datetime(2030, 1, 1, tzinfo=UTC)},
    {"traceparent": "", "tracestate": "a=1"},
    {"Traceparent": GOOD},
    {f"name-{number}": "x" * 100 for number in range(200)},
]


@dataclass(frozen=True)
class Ends:
    """``put`` is what a stranger with access to the broker can do."""

    transport: Transport
    arrived: asyncio.Queue[Delivery]
    processor_id: str
    put: Callable[[bytes, Mapping[str, Any]], Awaitable[None]]

    async def sent(self, message: Message) -> Delivery:
        async with asyncio.timeout(LIMIT_S):
            while await self.transport.publish([(self.processor_id, message)]) != [Confirm.CONFIRMED]:  # noqa: ASYNC110  # a retry
                await asyncio.sleep(0.02)
        return await self.next()

    async def next(self) -> Delivery:
        async with asyncio.timeout(LIMIT_S):
            delivery = await self.arrived.get()
        await delivery.ack()
        return delivery


@pytest.fixture(params=["memory", pytest.param("rabbitmq", marks=pytest.mark.real)])
def ends(request: pytest.FixtureRequest) -> Ends:
    return cast(Ends, request.getfixturevalue(f"{request.param}_ends"))


@pytest.fixture
async def memory_ends() -> AsyncIterator[Ends]:
    broker = MemoryBroker()

    async def put(body: bytes, headers: Mapping[str, Any]) -> None:
        broker.put("p1", body, headers)

    async with _running(MemoryTransport(broker), MemoryDeliveries(broker, "p1", 8)) as arrived:
        yield Ends(MemoryTransport(broker), arrived, "p1", put)


@pytest.fixture
async def rabbitmq_ends(amqp_url: str) -> AsyncIterator[Ends]:
    processor_id = f"test.{secrets.token_hex(4)}"
    connection = await aio_pika.connect(amqp_url)
    exchange = await (await connection.channel()).declare_exchange(DISPATCH_EXCHANGE, durable=True)

    async def put(body: bytes, headers: Mapping[str, Any]) -> None:
        await exchange.publish(aio_pika.Message(body, headers=dict(headers)), routing_key=processor_id)

    transport, deliveries = RabbitTransport(amqp_url), RabbitDeliveries(amqp_url, processor_id, 8)
    async with _running(transport, deliveries) as arrived:
        yield Ends(transport, arrived, processor_id, put)
    await deliveries.delete()
    await connection.close()


@asynccontextmanager
async def _running(transport: Transport, deliveries: Deliveries) -> AsyncIterator[asyncio.Queue[Delivery]]:
    arrived: asyncio.Queue[Delivery] = asyncio.Queue(1_000)
    async with asyncio.TaskGroup() as tasks:
        loops = [tasks.create_task(transport.run()), tasks.create_task(deliveries.run(arrived.put))]
        yield arrived
        for loop in loops:
            loop.cancel()


@pytest.mark.parametrize(
    "trace", [None, TraceContext(GOOD), TraceContext(GOOD, "vendor=1,other=2"), TraceContext(GOOD, "x" * 512)]
)
async def test_a_trace_travels_beside_an_unchanged_body(ends: Ends, trace: TraceContext | None) -> None:
    delivery = await ends.sent(Message(MESSAGE.kind, MESSAGE.job_id, MESSAGE.attempt, trace))
    assert delivery.trace == trace
    assert delivery.body == encode_message(MESSAGE)
    assert decode_message(delivery.body) == MESSAGE


@pytest.mark.parametrize("headers", HOSTILE, ids=lambda headers: repr(headers)[:50])
async def test_a_message_with_any_headers_is_delivered(ends: Ends, headers: dict[str, Any]) -> None:
    await ends.sent(Message(MessageKind.RUN, "before", 1))
    await ends.put(encode_message(MESSAGE), headers)
    delivery = await ends.next()
    assert delivery.trace is None
    assert decode_message(delivery.body) == MESSAGE
