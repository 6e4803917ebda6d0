"""What is published, and what is not."""

import asyncio
from contextlib import suppress

from hascheduler.daemon.loop.inbox import Inbox
from hascheduler.daemon.outbound.publisher import Publisher
from hascheduler.dispatch.decisions import CancelNotice, Publish
from hascheduler.dispatch.inputs import TransportSeen
from hascheduler.mongo.transport import MongoTransport
from hascheduler.testing.memory.broker import MemoryBroker
from hascheduler.testing.memory.messages import MemoryTransport


async def test_processors_that_poll_are_sent_nothing() -> None:
    broker = MemoryBroker()
    for id in ("p1", "http:p.1"):
        broker.queue(id)
    publisher = Publisher(MemoryTransport(broker), Inbox())
    running = asyncio.create_task(publisher.run())
    publisher.offer(
        [
            Publish("a", 1, "http:p.1"),
            CancelNotice("b", 1, "http:p.1"),
            Publish("c", 1, "p1"),
            CancelNotice("d", 1, "p1"),
        ]
    )
    assert await publisher.drained(5)
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    assert (broker.waiting("p1"), broker.waiting("http:p.1")) == (2, 0)


async def test_with_a_fallback_the_core_may_dispatch_while_the_broker_is_away() -> None:
    broker, inbox = MemoryBroker(), Inbox()
    broker.queue("p1")
    broker.accepting = False
    publisher = Publisher(MemoryTransport(broker), inbox, fallback=MongoTransport())
    running = asyncio.create_task(publisher.run())
    publisher.offer([Publish("a", 1, "p1")])
    assert await publisher.drained(5)
    assert inbox.take() == [TransportSeen(True)]
    # It is the broker that metrics and alerts are about.
    assert not publisher.accepting
    broker.accepting = True
    assert publisher.accepting
    publisher.offer([Publish("b", 1, "p1")])
    assert await publisher.drained(5)
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    assert broker.waiting("p1") == 1


async def test_the_core_learns_at_once_when_the_broker_ceases_and_begins_to_take_messages() -> None:
    broker, inbox = MemoryBroker(), Inbox()
    running = asyncio.create_task(Publisher(MemoryTransport(broker), inbox).run())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    broker.accepting = True  # nothing new
    for accepting in (False, True):
        broker.accepting = accepting
    assert inbox.take() == [TransportSeen(True), TransportSeen(False), TransportSeen(True)]
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
