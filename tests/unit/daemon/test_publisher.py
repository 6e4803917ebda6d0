"""What is published, and what is not."""

import asyncio
from contextlib import suppress

from hascheduler.daemon.loop.inbox import Inbox
from hascheduler.daemon.outbound.publisher import Publisher
from hascheduler.dispatch.decisions import CancelNotice, Publish
from hascheduler.testing.memory.broker import MemoryBroker
from hascheduler.testing.memory.transport import MemoryTransport


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
