"""Messages out: pipelined, each with its own confirm."""

import asyncio
import ssl
from collections.abc import Sequence

import structlog
from aio_pika import DeliveryMode
from aio_pika import Message as AmqpMessage
from aio_pika.abc import AbstractExchange

from hascheduler.errors import BrokerUnavailable
from hascheduler.model.message import Message, encode_message
from hascheduler.ports import Confirm
from hascheduler.rabbitmq.faults import faults
from hascheduler.rabbitmq.link import Link, Session
from hascheduler.rabbitmq.topology import declare_dispatch

log = structlog.get_logger(__name__)

PIPELINED_MAX = 256
PUBLISH_LIMIT_S = 5.0
_LOOK_S = 0.2
_BLOCKED_AFTER_S = 0.02


class RabbitTransport:
    """`hascheduler.ports.Transport`. Owns the publishing connection's exchange, and whether the broker blocks it."""

    def __init__(self, url: str, tls: ssl.SSLContext | None = None) -> None:
        self._link = Link(url, "hascheduler publisher", tls)
        self._exchange: AbstractExchange | None = None
        self._blocked = False
        self._room = asyncio.Semaphore(PIPELINED_MAX)
        self._in_flight: set[str] = set()

    async def run(self) -> None:
        await self._link.run(self._use)

    @property
    def accepting(self) -> bool:
        return self._exchange is not None and not self._blocked

    async def publish(self, messages: Sequence[tuple[str, Message]]) -> list[Confirm]:
        confirms = [Confirm.UNKNOWN] * len(messages)
        order = iter(range(len(messages)))

        async def publish_next() -> None:
            for place in order:
                confirms[place] = await self._publish(*messages[place])

        try:
            async with asyncio.timeout(PUBLISH_LIMIT_S), asyncio.TaskGroup() as tasks:
                for _ in range(min(PIPELINED_MAX, len(messages))):
                    tasks.create_task(publish_next())
        except TimeoutError:
            log.warning("publish_unanswered", messages=confirms.count(Confirm.UNKNOWN))
        return confirms

    async def _publish(self, processor_id: str, message: Message) -> Confirm:
        exchange = self._exchange
        # The driver tells returned messages apart by their id, so one id can't be on its way twice.
        if exchange is None or self._blocked or message.message_id in self._in_flight:
            return Confirm.UNKNOWN
        self._in_flight.add(message.message_id)
        try:
            async with self._room, faults("publish", PUBLISH_LIMIT_S):
                await exchange.publish(
                    AmqpMessage(
                        encode_message(message),
                        message_id=message.message_id,
                        content_type="application/json",
                        delivery_mode=DeliveryMode.NOT_PERSISTENT,
                    ),
                    routing_key=processor_id,
                    mandatory=True,
                )
        except BrokerUnavailable as error:
            log.debug("publish_unknown", message=message.message_id, error=str(error))
            return Confirm.UNKNOWN
        finally:
            self._in_flight.discard(message.message_id)
        return Confirm.CONFIRMED

    async def _use(self, session: Session) -> None:
        try:
            async with faults("open the publishing channel"):
                channel = await session.channel(confirms=True)
                exchange = await declare_dispatch(channel)
            self._blocked = False
            self._exchange = exchange
            while not session.lost.is_set():
                self._look(await _is_blocked(session))
                try:
                    async with asyncio.timeout(_LOOK_S):
                        await session.lost.wait()
                except TimeoutError:
                    pass
        finally:
            self._exchange = None

    def _look(self, blocked: bool) -> None:
        if blocked is not self._blocked:
            log.warning("broker_blocking", blocked=blocked)
            self._blocked = blocked


async def _is_blocked(session: Session) -> bool:
    """The driver tells of a blocked connection only by not being ready."""
    transport = session.connection.transport
    if transport is None:
        return False
    try:
        async with asyncio.timeout(_BLOCKED_AFTER_S):
            await transport.ready()
    except TimeoutError:
        return True
    return False
