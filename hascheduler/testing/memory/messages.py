"""Messages out and in, over a `MemoryBroker`; the traces that they carry; the exchange of events."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from hascheduler.model.collection import Collection
from hascheduler.model.event import Event
from hascheduler.model.message import Message
from hascheduler.model.trace import trace_context, trace_from_headers
from hascheduler.ports import Confirm, Delivery, TracedJob
from hascheduler.testing.memory.broker import Letter, MemoryBroker, Parked, Queue
from hascheduler.testing.memory.connection import MemoryConnection

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


class MemoryJobTraces:
    """`hascheduler.ports.JobTraces`."""

    def __init__(self, connection: MemoryConnection) -> None:
        self._connection = connection

    async def of(self, job_ids: Sequence[str]) -> Mapping[str, TracedJob]:
        async with self._connection.exchange("traces.of") as database:
            found = [job for id in job_ids if (job := database.find(Collection.JOBS, id)) is not None]
        return {
            job["_id"]: TracedJob(str(job.get("definition")), job.get("schedule"), trace_context(job.get("trace")))
            for job in found
        }


class MemoryEventExchange:
    """`hascheduler.ports.EventExchange`. While it is not ``accepting``, it takes no event."""

    def __init__(self) -> None:
        self.accepting = True
        self.published: list[Event] = []
        self._news = asyncio.Event()

    async def run(self) -> None:
        # There is no connection to keep.
        await asyncio.Event().wait()

    async def publish(self, events: Sequence[Event]) -> bool:
        await asyncio.sleep(0)  # other tasks run meanwhile, as with a real broker
        if self.accepting:
            self.published += events
        self._news.set()
        return self.accepting

    async def asked(self) -> None:
        """Waits for the next call of `publish`."""
        self._news.clear()
        await self._news.wait()
