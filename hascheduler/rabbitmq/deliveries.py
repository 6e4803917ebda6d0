"""Receive messages: a processor's own queue, consumed again after any failure, and the queue of unreadable ones."""

import asyncio
import ssl
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from random import uniform

import structlog
from aio_pika import DeliveryMode
from aio_pika import Message as AmqpMessage
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage

from hascheduler.errors import BrokerUnavailable
from hascheduler.model.message import decode_bundle, encode_message
from hascheduler.model.trace import TraceContext, trace_from_headers
from hascheduler.ports import Delivery
from hascheduler.rabbitmq.connection import (
    PARKED_QUEUE,
    BrokerConnection,
    Session,
    declare_parked,
    declare_processor_queue,
    queue_name,
)
from hascheduler.rabbitmq.faults import faults

log = structlog.get_logger(__name__)

DECLARED_WITHIN_S = 15.0
"""How soon a deleted binding is declared again, at most."""
_REASON_CHARACTERS_MAX = 1_000


Sink = Callable[[Delivery], Awaitable[None]]


class RabbitDeliveries:
    """`hascheduler.ports.Deliveries`. What was delivered before a reconnect is forgotten: it comes again."""

    def __init__(self, url: str, processor_id: str, slots: int, tls: ssl.SSLContext | None = None) -> None:
        self._link = BrokerConnection(url, f"hascheduler processor {processor_id}", tls)
        # A connection for each parked message: it is rare, and consuming connections must never publish.
        self._parking = BrokerConnection(url, f"hascheduler parking {processor_id}", tls)
        self._one_parked_at_a_time = asyncio.Lock()
        self._processor_id = processor_id
        # More than can run, so that requests to cancel get through while every slot is taken.
        self._prefetch = 2 * slots + 16
        self._session: Session | None = None

    async def run(self, sink: Sink, turned: Callable[[], None] = lambda: None) -> None:
        await self._link.run(lambda session: self._consume(session, sink, turned))

    @property
    def consuming(self) -> bool:
        return self._session is not None and not self._session.lost.is_set()

    async def delete(self) -> None:
        async with faults("delete the queue"), self._link.session() as session:
            channel = await session.channel(confirms=False)
            await channel.queue_delete(queue_name(self._processor_id))

    async def park(self, body: bytes, reason: str) -> None:
        """Park an unreadable message where people find it, and return once the broker has it safe.

        Raise `BrokerUnavailable` if that is not known.
        """
        async with faults("park a message"), self._one_parked_at_a_time, self._parking.session() as session:
            channel = await session.channel(confirms=True)
            await declare_parked(channel)
            await channel.default_exchange.publish(
                AmqpMessage(
                    body,
                    headers={
                        "reason": reason[:_REASON_CHARACTERS_MAX],
                        "processor": self._processor_id,
                        "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
                    },
                    delivery_mode=DeliveryMode.PERSISTENT,
                ),
                routing_key=PARKED_QUEUE,
                mandatory=True,
            )

    async def _consume(self, session: Session, sink: Sink, turned: Callable[[], None]) -> None:
        arrived: deque[AbstractIncomingMessage] = deque()
        news = asyncio.Event()

        async def arrive(message: AbstractIncomingMessage) -> None:
            arrived.append(message)  # at most as many as the prefetch: the broker holds the rest
            news.set()

        async def lose() -> None:
            await session.lost.wait()
            news.set()  # a loss is news too

        async with faults("consume the queue"):
            channel = await session.channel(confirms=False)
            await channel.set_qos(prefetch_count=self._prefetch)
            queue = await declare_processor_queue(channel, self._processor_id)
            underlay = await channel.get_underlay_channel()
            # The broker cancels a consumer whose queue is deleted, and leaves the channel open.
            underlay.on_consumer_cancel_callbacks.add(lambda _: session.lost.set())
            await queue.consume(arrive)
        log.info("consumer_started", queue=queue.name)
        self._session = session
        turned()
        try:
            async with asyncio.TaskGroup() as tasks:
                loss = tasks.create_task(lose())
                declaring = tasks.create_task(self._keep_declared(session, channel))
                while not session.lost.is_set():
                    await news.wait()
                    news.clear()
                    while arrived and not session.lost.is_set():
                        for delivery in self._deliveries(arrived.popleft()):
                            await sink(delivery)
                loss.cancel()
                declaring.cancel()
        finally:
            self._session = None
            turned()

    async def _keep_declared(self, session: Session, channel: AbstractChannel) -> None:
        """Declare everything again now and then: a consumer is not notified of deleted bindings or exchanges.

        If that is refused, or the queue has no consumer any more, the session ends.
        """
        while not session.lost.is_set():
            await asyncio.sleep(uniform(0.5, 1) * DECLARED_WITHIN_S)  # noqa: S311  # no secret
            try:
                async with faults("declare the queue again"):
                    queue = await declare_processor_queue(channel, self._processor_id)
            except BrokerUnavailable as error:
                log.warning("queue_declare_failed", queue=queue_name(self._processor_id), error=str(error))
                session.lost.set()
            else:
                if not queue.declaration_result.consumer_count:
                    session.lost.set()

    def _deliveries(self, message: AbstractIncomingMessage) -> list[Delivery]:
        """Return one delivery, or those of a bundle, which is acknowledged when all of them are."""

        async def ack() -> None:
            async with faults("acknowledge"):
                await message.ack()

        runs = decode_bundle(message.body)
        if runs is None:
            return [self._delivery(message, message.body, ack, trace_from_headers(message.headers))]
        left = len(runs)

        async def ack_one() -> None:
            nonlocal left
            left -= 1
            if left == 0:
                await ack()

        return [self._delivery(message, encode_message(run), ack_one, run.trace) for run in runs]

    def _delivery(
        self,
        message: AbstractIncomingMessage,
        body: bytes,
        ack: Callable[[], Awaitable[None]],
        trace: TraceContext | None,
    ) -> Delivery:
        async def park(reason: str) -> None:
            try:
                await self.park(body, reason)
            except BrokerUnavailable:
                with suppress(BrokerUnavailable):
                    async with faults("requeue"):
                        await message.nack(requeue=True)
                raise
            await ack()

        return Delivery(body, ack, park, trace)
