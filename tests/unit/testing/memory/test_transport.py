"""The broker in memory: the guarantees of `Transport` and `Deliveries`."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hascheduler.model.message import Message, MessageKind, decode_message
from hascheduler.ports import Confirm, Deliveries, Delivery, Transport
from hascheduler.testing.memory.messages import MemoryBroker, MemoryDeliveries, MemoryTransport, Parked

CONFIRMED, UNKNOWN = Confirm.CONFIRMED, Confirm.UNKNOWN


def message(job_id: str) -> Message:
    return Message(MessageKind.RUN, job_id, 1)


@asynccontextmanager
async def consumed(deliveries: Deliveries) -> AsyncIterator[asyncio.Queue[Delivery]]:
    """What arrives while the block lasts."""
    arrived: asyncio.Queue[Delivery] = asyncio.Queue(100)
    async with asyncio.TaskGroup() as tasks:
        consuming = tasks.create_task(deliveries.run(arrived.put))
        await asyncio.sleep(0)  # its queue is declared at its first step
        yield arrived
        consuming.cancel()


async def next_job(arrived: asyncio.Queue[Delivery], *, acknowledge: bool = True) -> str:
    async with asyncio.timeout(10):
        delivery = await arrived.get()
    if acknowledge:
        await delivery.ack()
    return decode_message(delivery.body).job_id


async def test_messages_reach_their_own_processor_in_order() -> None:
    broker = MemoryBroker()
    transport: Transport = MemoryTransport(broker)
    async with consumed(MemoryDeliveries(broker, "p1", 8)) as one, consumed(MemoryDeliveries(broker, "p2", 8)) as two:
        messages = [("p1", message("a")), ("p2", message("b")), ("p1", message("c"))]
        assert await transport.publish(messages) == [CONFIRMED] * 3
        assert [await next_job(one), await next_job(one), await next_job(two)] == ["a", "c", "b"]


async def test_a_message_to_an_unknown_queue_is_not_confirmed() -> None:
    assert await MemoryTransport(MemoryBroker()).publish([("p1", message("a"))]) == [UNKNOWN]


async def test_a_broker_that_does_not_accept_takes_no_message() -> None:
    broker = MemoryBroker()
    transport = MemoryTransport(broker)
    async with consumed(MemoryDeliveries(broker, "p1", 8)) as arrived:
        broker.accepting = False
        assert transport.accepting is False
        assert await transport.publish([("p1", message("a"))]) == [UNKNOWN]
        broker.accepting = True
        assert await transport.publish([("p1", message("b"))]) == [CONFIRMED]
        assert await next_job(arrived) == "b"


async def test_unacknowledged_messages_are_delivered_again_first() -> None:
    broker = MemoryBroker()
    deliveries = MemoryDeliveries(broker, "p1", 8)
    async with consumed(deliveries) as arrived:
        await MemoryTransport(broker).publish([("p1", message(id)) for id in "abc"])
        jobs = [await next_job(arrived, acknowledge=id == "b") for id in "abc"]
        assert jobs == ["a", "b", "c"]
    await MemoryTransport(broker).publish([("p1", message("d"))])
    async with consumed(deliveries) as arrived:
        assert [await next_job(arrived) for _ in range(3)] == ["a", "c", "d"]
    assert broker.waiting("p1") == 0


async def test_no_more_is_delivered_than_may_be_unacknowledged() -> None:
    broker = MemoryBroker()
    async with consumed(MemoryDeliveries(broker, "p1", slots=1)) as arrived:
        await MemoryTransport(broker).publish([("p1", message(str(number))) for number in range(20)])
        held = [await arrived.get() for _ in range(18)]
        assert broker.waiting("p1") == 2
        await held[0].ack()
        assert await next_job(arrived) == "18"


async def test_a_parked_message_leaves_the_queue_with_its_reason() -> None:
    broker = MemoryBroker()
    async with consumed(MemoryDeliveries(broker, "p1", 8)) as arrived:
        broker.put("p1", b"nonsense")
        await (await arrived.get()).park("not JSON")
    assert list(broker.parked) == [Parked("p1", b"nonsense", "not JSON")]
    assert broker.waiting("p1") == 0


async def test_a_deleted_queue_is_declared_again_by_its_consumer() -> None:
    broker = MemoryBroker()
    async with consumed(MemoryDeliveries(broker, "p1", 8)) as arrived:
        await MemoryDeliveries(broker, "p1", 8).delete()
        await asyncio.sleep(0)  # the consumer's next step
        assert await MemoryTransport(broker).publish([("p1", message("a"))]) == [CONFIRMED]
        assert await next_job(arrived) == "a"


async def test_a_deleted_queue_takes_no_message() -> None:
    broker = MemoryBroker()
    deliveries = MemoryDeliveries(broker, "p1", 8)
    async with consumed(deliveries):
        pass
    await deliveries.delete()
    assert await MemoryTransport(broker).publish([("p1", message("a"))]) == [UNKNOWN]
