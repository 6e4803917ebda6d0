"""What the two ends promise, on a real broker, and that nothing is left of a connection that ends."""

import asyncio
import secrets
from collections.abc import AsyncIterator

import aio_pika
import pytest
from aio_pika.exceptions import ChannelClosed

from hascheduler.errors import BrokerUnavailable
from hascheduler.model.message import Message, MessageKind, decode_message
from hascheduler.ports import Confirm
from hascheduler.rabbitmq.connection import DISPATCH_EXCHANGE, PARKED_QUEUE, BrokerConnection, queue_name
from hascheduler.rabbitmq.deliveries import RabbitDeliveries
from hascheduler.rabbitmq.publisher import RabbitTransport
from tests.integration.rabbitmq.conftest import Inbox, delivered, run_message, running, until
from tests.integration.rabbitmq.wire import Wire


@pytest.fixture
async def channel(amqp_url: str) -> AsyncIterator[aio_pika.abc.AbstractChannel]:
    connection = await aio_pika.connect(amqp_url)
    yield await connection.channel()
    await connection.close()


async def test_what_the_broker_can_not_be_asked_to_carry_is_unknown(transport: RabbitTransport) -> None:
    assert await transport.publish([("p" * 300, run_message("a")), ("p", run_message("j" * 300))]) == [
        Confirm.UNKNOWN,
        Confirm.UNKNOWN,
    ]


async def test_one_message_id_twice_is_never_confirmed_for_nothing(transport: RabbitTransport) -> None:
    nobody = f"nobody.{secrets.token_hex(4)}"
    twice = [(nobody, run_message("a")), (nobody, Message(MessageKind.CANCEL, "a", 1))]
    assert await transport.publish(twice) == [Confirm.UNKNOWN, Confirm.UNKNOWN]


async def test_garbage_is_parked_with_its_reason_and_the_others_go_on(
    transport: RabbitTransport,
    inbox: Inbox,
    processor_id: str,
    channel: aio_pika.abc.AbstractChannel,
) -> None:
    await delivered(transport, processor_id, run_message("first"))
    exchange = await channel.get_exchange(DISPATCH_EXCHANGE)
    await exchange.publish(aio_pika.Message(b"\xff not json"), routing_key=processor_id)
    await delivered(transport, processor_id, run_message("last"))
    await (await inbox.next()).ack()
    garbage = await inbox.next()
    await garbage.park("not JSON")
    await (await inbox.next()).ack()
    async with asyncio.timeout(20), (await channel.get_queue(PARKED_QUEUE)).iterator() as parked:
        async for message in parked:
            await message.ack()
            if message.headers["processor"] == processor_id:
                break
    assert message.body == b"\xff not json"
    assert message.headers["reason"] == "not JSON"


async def test_more_messages_than_the_prefetch_arrive_once_the_first_are_acknowledged(
    transport: RabbitTransport, inbox: Inbox, processor_id: str
) -> None:
    prefetch = 2 * 2 + 16
    for n in range(prefetch + 5):
        await delivered(transport, processor_id, run_message(f"job-{n}"))
    first = [await inbox.next() for _ in range(prefetch)]
    assert inbox.queue.empty()
    for delivery in first:
        await delivery.ack()
    for _ in range(5):
        await (await inbox.next()).ack()


@pytest.mark.parametrize("deleted", ["the exchange", "a binding"])
async def test_bindings_that_were_deleted_come_back_without_a_restart(
    deleted: str, transport: RabbitTransport, amqp_url: str, processor_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hascheduler.rabbitmq.deliveries.DECLARED_WITHIN_S", 0.2)
    inbox = Inbox()
    deliveries = RabbitDeliveries(amqp_url, processor_id, slots=2)
    connection = await aio_pika.connect(amqp_url)
    async with running(lambda: deliveries.run(inbox.sink)):
        await delivered(transport, processor_id, run_message("before"))
        await (await inbox.next()).ack()
        channel = await connection.channel()
        if deleted == "the exchange":
            await channel.exchange_delete(DISPATCH_EXCHANGE)
        else:
            queue = await channel.get_queue(queue_name(processor_id))
            await queue.unbind(DISPATCH_EXCHANGE, routing_key=processor_id)
        await delivered(transport, processor_id, run_message("after"))
        assert decode_message((await inbox.next()).body).job_id == "after"
    await connection.close()
    await deliveries.delete()


async def test_a_queue_that_may_not_be_declared_again_is_not_consumed(
    wire: Wire, processor_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hascheduler.rabbitmq.deliveries.DECLARED_WITHIN_S", 0.2)
    deliveries = RabbitDeliveries(wire.url, processor_id, slots=2)
    turns: list[bool] = []
    async with running(lambda: deliveries.run(Inbox().sink, lambda: turns.append(deliveries.consuming))):
        await until(lambda: turns == [True])

        async def refused(*_: object) -> None:
            raise ChannelClosed(403, "no configure permission")

        monkeypatch.setattr("hascheduler.rabbitmq.deliveries.declare_processor_queue", refused)
        await until(lambda: turns == [True, False])
        monkeypatch.undo()
        await until(lambda: turns == [True, False, True])
    await deliveries.delete()


async def test_both_ends_come_back_after_their_connections_were_cut(wire: Wire, processor_id: str) -> None:
    inbox = Inbox()
    transport = RabbitTransport(wire.url)
    turns: list[bool] = []
    deliveries = RabbitDeliveries(wire.url, processor_id, slots=2)
    async with (
        running(lambda: transport.run(lambda: turns.append(transport.accepting))),
        running(lambda: deliveries.run(inbox.sink)),
    ):
        await delivered(transport, processor_id, run_message("before"))
        unacknowledged = await inbox.next()
        wire.silent = True  # who connects again meanwhile gets no answer, so the loss can be looked at
        wire.reset()
        await until(lambda: not transport.accepting)
        assert await transport.publish([(processor_id, run_message("meanwhile"))]) == [Confirm.UNKNOWN]
        with pytest.raises(BrokerUnavailable):
            await unacknowledged.ack()
        wire.silent = False
        await delivered(transport, processor_id, run_message("after"))
        seen = {decode_message((await inbox.next()).body).job_id for _ in range(2)}
        assert turns == [True, False, True]
    assert seen == {"before", "after"}  # the first one again, as nobody acknowledged it
    await deliveries.delete()


async def test_a_cut_in_the_middle_of_a_batch_leaves_no_confirmation_that_was_not_given(
    wire: Wire, processor_id: str
) -> None:
    inbox = Inbox()
    transport = RabbitTransport(wire.url)
    deliveries = RabbitDeliveries(wire.url, processor_id, slots=5_000)
    async with running(transport.run), running(lambda: deliveries.run(inbox.sink)):
        await delivered(transport, processor_id, run_message("first"))
        wire.silent = True
        publishing = asyncio.create_task(
            transport.publish([(processor_id, run_message(f"job-{n}")) for n in range(1_000)])
        )
        await asyncio.sleep(0)
        wire.reset()
        confirms = await publishing
        assert confirms == [Confirm.UNKNOWN] * 1_000
    wire.silent = False
    await deliveries.delete()


async def test_a_connection_that_the_broker_does_not_close_in_time_is_closed(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hascheduler.rabbitmq.connection._CLOSE_LIMIT_S", 0.05)
    async with BrokerConnection(wire.url, "test").session() as session:
        wire.silent = True
    assert session.connection.is_closed
