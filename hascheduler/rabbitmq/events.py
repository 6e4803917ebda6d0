"""The events of jobs and schedules on a topic exchange, each with its own confirm.

The routing key is ``job.<type>.<definition>``, and ``schedule.missed.<definition>`` of what schedules missed. The name
of a definition may hold dots and comes last, as it is, so that each pattern means what it says: ``job.succeeded.#``,
``job.*.git.fetch``, ``job.*.git.#``. The message id is the event's, the body its JSON. Messages are not persistent:
they tell what happened, and what a restarted broker has lost can be read from the API again. An event that no queue
wants is confirmed all the same.
"""

import asyncio
import ssl
from collections.abc import Sequence

import orjson
import structlog
from aio_pika import DeliveryMode
from aio_pika import Message as AmqpMessage
from aio_pika.abc import AbstractExchange

from hascheduler.errors import BrokerUnavailable
from hascheduler.model.event import Event, encode_event
from hascheduler.rabbitmq.connection import BrokerConnection, Session
from hascheduler.rabbitmq.faults import faults
from hascheduler.rabbitmq.topology import declare_events

log = structlog.get_logger(__name__)

PIPELINED_MAX = 128
PUBLISH_LIMIT_S = 5.0
_ROUTING_KEY_BYTES_MAX = 255


class RabbitEventExchange:
    """`hascheduler.ports.EventExchange` on a connection of its own, which a broker may block without harm to others."""

    def __init__(self, url: str, name: str, tls: ssl.SSLContext | None = None) -> None:
        self._link = BrokerConnection(url, "hascheduler events", tls)
        self._name = name
        self._session: Session | None = None
        self._exchange: AbstractExchange | None = None

    async def run(self) -> None:
        await self._link.run(self._use)

    async def publish(self, events: Sequence[Event]) -> bool:
        session, exchange = self._session, self._exchange
        if session is None or exchange is None:
            return False
        try:
            async with faults("publish events", PUBLISH_LIMIT_S):
                if session.connection.transport is not None:
                    # While the broker blocks the connection, what is written to it would pile up here.
                    await session.connection.transport.ready()
                for start in range(0, len(events), PIPELINED_MAX):
                    some = [_publish(exchange, event) for event in events[start : start + PIPELINED_MAX]]
                    # With all their ends: the driver cancels those whose channel is closed under them.
                    for end in await asyncio.gather(*some, return_exceptions=True):
                        if end is not None:
                            raise BrokerUnavailable(f"publish events: {type(end).__name__}")
        except BrokerUnavailable as error:
            log.debug("events_unconfirmed", events=len(events), error=str(error))
            return False
        return True

    async def _use(self, session: Session) -> None:
        try:
            async with faults("open the channel of events"):
                channel = await session.channel(confirms=True)
                self._exchange = await declare_events(channel, self._name)
            self._session = session
            await session.lost.wait()
        finally:
            self._session = self._exchange = None


async def _publish(exchange: AbstractExchange, event: Event) -> None:
    message = AmqpMessage(
        orjson.dumps(encode_event(event)),
        message_id=event.id,
        content_type="application/json",
        delivery_mode=DeliveryMode.NOT_PERSISTENT,
    )
    await exchange.publish(message, routing_key=routing_key(event), mandatory=False)


def routing_key(event: Event) -> str:
    """Cut off where a name that was written by hand is longer than the protocol can carry."""
    kind = f"job.{event.type}" if event.job is not None else event.type.value
    key = f"{kind}.{event.definition or ''}"
    return key.encode()[:_ROUTING_KEY_BYTES_MAX].decode(errors="ignore")
