"""Puts unreadable messages aside, where people find them: body, reason, processor, time."""

import asyncio
import ssl
from datetime import UTC, datetime

from aio_pika import DeliveryMode
from aio_pika import Message as AmqpMessage

from hascheduler.rabbitmq.connection import BrokerConnection
from hascheduler.rabbitmq.faults import faults
from hascheduler.rabbitmq.topology import PARKED_QUEUE, declare_parked

_REASON_CHARACTERS_MAX = 1_000


class ParkedQueue:
    """A connection for each parked message: it is rare, and consuming connections must never publish."""

    def __init__(self, url: str, processor_id: str, tls: ssl.SSLContext | None = None) -> None:
        self._link = BrokerConnection(url, f"hascheduler parking {processor_id}", tls)
        self._processor_id = processor_id
        self._one_at_a_time = asyncio.Lock()

    async def park(self, body: bytes, reason: str) -> None:
        """Returns once the broker has it safe; `BrokerUnavailable` when that is not known."""
        async with faults("park a message"), self._one_at_a_time, self._link.session() as session:
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
