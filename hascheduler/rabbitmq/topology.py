"""The names on the broker, and how each thing is declared: the one owner of both."""

from aio_pika import ExchangeType
from aio_pika.abc import AbstractChannel, AbstractExchange, AbstractQueue

DISPATCH_EXCHANGE = "hascheduler.dispatch"
PARKED_QUEUE = "hascheduler.parked"
PARKED_MAX = 10_000
QUEUE_EXPIRES_MS = 60_000
ROUTING_KEY_BYTES_MAX = 255


def queue_name(processor_id: str) -> str:
    return f"hascheduler.processor.{processor_id}"


async def declare_dispatch(channel: AbstractChannel) -> AbstractExchange:
    return await channel.declare_exchange(DISPATCH_EXCHANGE, ExchangeType.DIRECT, durable=True)


async def declare_events(channel: AbstractChannel, name: str) -> AbstractExchange:
    """The exchange of events, under the name that the settings give it; queues are for those who listen to make."""
    return await channel.declare_exchange(name, ExchangeType.TOPIC, durable=True)


def bundle_key(processor_id: str) -> str:
    """Where bundles go. Processors of a release that does not know them have no such binding: theirs come back."""
    return f"bundle:{processor_id}"


async def declare_processor_queue(channel: AbstractChannel, processor_id: str) -> AbstractQueue:
    """The queue of one processor, bound; the broker deletes it once it has had no consumer for a minute."""
    await declare_dispatch(channel)
    queue = await channel.declare_queue(
        queue_name(processor_id), durable=True, arguments={"x-expires": QUEUE_EXPIRES_MS}
    )
    # Bundles first: a queue that takes single messages and no bundles is of a release that does not know them.
    if len(bundle_key(processor_id).encode()) <= ROUTING_KEY_BYTES_MAX:
        await queue.bind(DISPATCH_EXCHANGE, routing_key=bundle_key(processor_id))
    await queue.bind(DISPATCH_EXCHANGE, routing_key=processor_id)
    return queue


async def declare_parked(channel: AbstractChannel) -> AbstractQueue:
    """Where unreadable messages end; when it is full the oldest go."""
    return await channel.declare_queue(PARKED_QUEUE, durable=True, arguments={"x-max-length": PARKED_MAX})
