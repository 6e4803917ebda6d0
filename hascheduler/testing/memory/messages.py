"""Messages out and in, over a `MemoryBroker`."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from hascheduler.model.message import Message
from hascheduler.model.trace import trace_from_headers
from hascheduler.ports import Confirm, Delivery
from hascheduler.testing.memory.broker import Letter, MemoryBroker, Parked, Queue

Sink = Callable[[Delivery], Awaitable[None]]


class MemoryTransport:
    """`hascheduler.ports.Transport`; accepting whenever the broker is, running or not."""

    def __init__(self, broker: MemoryBroker) -> None:
        self._broker = broker

    async def run(self, turned: Callable[[], None] = lambda: None) -> None:
        with self._broker.watched(turned):
            await asyncio.Event().wait()  # there is no connection to keep

    @property
    def accepting(self) -> bool:
        return self._broker.accepting

    async def publish(self, messages: Sequence[tuple[str, Message]]) -> list[Confirm]:
        await asyncio.sleep(0)  # other tasks run meanwhile, as with a real broker
        return [self._broker.publish(processor_id, message) for processor_id, message in messages]


class MemoryDeliveries:
    """`hascheduler.ports.Deliveries`. Messages that are not acknowledged when ``run`` ends are delivered again."""

    def __init__(self, broker: MemoryBroker, processor_id: str, slots: int) -> None:
        self._broker = broker
        self._processor_id = processor_id
        # More than can run, so that cancel messages arrive while every slot is occupied.
        self._unacknowledged_max = 2 * slots + 16
        self._consuming = False

    async def run(self, sink: Sink, turned: Callable[[], None] = lambda: None) -> None:
        while True:
            # A queue that was deleted is declared again.
            await self._consume(self._broker.queue(self._processor_id), sink, turned)

    @property
    def consuming(self) -> bool:
        return self._consuming

    async def delete(self) -> None:
        await asyncio.sleep(0)
        self._broker.delete_queue(self._processor_id)

    async def _consume(self, queue: Queue, sink: Sink, turned: Callable[[], None]) -> None:
        unacknowledged: dict[int, Letter] = {}
        tag = 0
        self._consuming = True
        turned()
        try:
            while not queue.is_deleted:
                queue.news.clear()
                while queue.waiting and len(unacknowledged) < self._unacknowledged_max and not queue.is_deleted:
                    tag += 1
                    unacknowledged[tag] = queue.waiting.popleft()
                    await sink(self._delivery(tag, queue, unacknowledged))
                if not queue.is_deleted:
                    await queue.news.wait()
        finally:
            self._consuming = False
            turned()
            queue.waiting.extendleft(reversed(unacknowledged.values()))

    def _delivery(self, tag: int, queue: Queue, unacknowledged: dict[int, Letter]) -> Delivery:
        letter = unacknowledged[tag]

        async def ack() -> None:
            unacknowledged.pop(tag, None)
            queue.news.set()

        async def park(reason: str) -> None:
            self._broker.parked.append(Parked(self._processor_id, letter.body, reason))
            await ack()

        return Delivery(letter.body, ack, park, trace_from_headers(letter.headers))
