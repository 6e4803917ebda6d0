"""Several messages for one processor travel as one, and neither end notices, on a real broker."""

import asyncio
import secrets
from functools import partial

import aio_pika

from hascheduler.model.message import Message, MessageKind, decode_message
from hascheduler.model.trace import TraceContext
from hascheduler.ports import Confirm
from hascheduler.rabbitmq.connection import DISPATCH_EXCHANGE, queue_name
from hascheduler.rabbitmq.deliveries import RabbitDeliveries
from hascheduler.rabbitmq.publisher import RabbitTransport
from tests.integration.rabbitmq.conftest import LIMIT_S, Inbox, delivered, run_message, running

TRACE = TraceContext("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")


async def test_each_message_of_a_bundle_is_a_delivery_of_its_own(
    transport: RabbitTransport, inbox: Inbox, processor_id: str
) -> None:
    await delivered(transport, processor_id, run_message("first"))
    await (await inbox.next()).ack()
    runs = [run_message("a"), Message(MessageKind.RUN, "b", 2, TRACE), run_message("c", 3)]
    cancel = Message(MessageKind.CANCEL, "d", 1)
    confirms = await transport.publish([(processor_id, message) for message in (*runs, cancel)])
    assert confirms == [Confirm.CONFIRMED] * 4
    deliveries = [await inbox.next() for _ in range(4)]
    assert {decode_message(delivery.body).message_id for delivery in deliveries} == {"a/1", "b/2", "c/3", "d/1"}
    traced = [delivery.trace for delivery in deliveries if decode_message(delivery.body).job_id == "b"]
    assert traced == [TRACE]


async def test_a_bundle_comes_again_until_all_of_it_is_acknowledged(
    transport: RabbitTransport, amqp_url: str, processor_id: str
) -> None:
    async def got(count: int, acknowledged: int, *publish: str) -> list[str]:
        inbox = Inbox()
        async with running(partial(RabbitDeliveries(amqp_url, processor_id, slots=2).run, inbox.sink)):
            if publish:
                await delivered(transport, processor_id, run_message(publish[0]))
                await transport.publish([(processor_id, run_message(job)) for job in publish[1:]])
            deliveries = [await inbox.next() for _ in range(count)]
            for delivery in deliveries[:acknowledged]:
                await delivery.ack()
            return [decode_message(delivery.body).job_id for delivery in deliveries]

    assert await got(4, 2, "first", "a", "b", "c") == ["first", "a", "b", "c"]
    assert await got(3, 3) == ["a", "b", "c"]
    assert await got(1, 1, "last") == ["last"]


async def test_a_processor_that_does_not_know_bundles_gets_its_messages_one_by_one(
    transport: RabbitTransport, amqp_url: str
) -> None:
    processor_id = f"old.{secrets.token_hex(4)}"
    connection = await aio_pika.connect(amqp_url)
    async with connection:
        channel = await connection.channel()
        queue = await channel.declare_queue(queue_name(processor_id), durable=True, arguments={"x-expires": 60_000})
        await queue.bind(DISPATCH_EXCHANGE, routing_key=processor_id)
        for jobs in ("abc", "def"):
            confirms = await transport.publish([(processor_id, run_message(job)) for job in jobs])
            assert confirms == [Confirm.CONFIRMED] * 3
            got = []
            async with asyncio.timeout(LIMIT_S), queue.iterator() as arriving:
                async for message in arriving:
                    await message.ack()
                    got.append(decode_message(message.body).job_id)
                    if len(got) == 3:
                        break
            assert got == list(jobs)
        await queue.delete()
