"""A broker inside the process, with messages out and in: one ordered queue per processor, parked messages."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from hascheduler.model.message import Message, encode_message, message_headers
from hascheduler.model.trace import trace_from_headers
from hascheduler.ports import Confirm, Delivery

QUEUE_MAX = 10_000
PARKED_MAX = 10_000
Sink = Callable[[Delivery], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Parked:
    processor_id: str
    body: bytes
    reason: str


@dataclass(frozen=True, slots=True)
class Letter:
    body: bytes
    headers: Mapping[str, object]


@dataclass(slots=True)
class Queue:
    """One processor's messages; ``news`` wakes the consumer. Unacknowledged messages return to the front."""

    waiting: deque[Letter] = field(default_factory=deque)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    is_deleted: bool = False

    def put(self, letter: Letter) -> None:
        self.waiting.append(letter)
        self.news.set()


class MemoryBroker:
    """Owner of all messages. A queue holds at most `QUEUE_MAX` and then refuses; the oldest parked ones are dropped.

    If ``accepting`` is False, it takes no message, as a broker that is down or short of memory.
    """

    def __init__(self) -> None:
        self._accepting = True
        self._watching: list[Callable[[], None]] = []
        self.parked: deque[Parked] = deque(maxlen=PARKED_MAX)
        self._queues: dict[str, Queue] = {}

    @property
    def accepting(self) -> bool:
        return self._accepting

    @accepting.setter
    def accepting(self, accepting: bool) -> None:
        self._accepting = accepting
        for turned in self._watching:
            turned()

    @contextmanager
    def watched(self, turned: Callable[[], None]) -> Iterator[None]:
        """Call ``turned`` each time `accepting` is set."""
        self._watching.append(turned)
        try:
            yield
        finally:
            self._watching.remove(turned)

    def put(self, processor_id: str, body: bytes, headers: Mapping[str, object] | None = None) -> None:
        """Put any bytes into the processor's queue, as a foreign publisher might."""
        self.queue(processor_id).put(Letter(body, headers or {}))

    def queue(self, processor_id: str) -> Queue:
        """Return the processor's queue, created if there is none."""
        return self._queues.setdefault(processor_id, Queue())

    def delete_queue(self, processor_id: str) -> None:
        """Delete the queue and its messages; its consumer notices."""
        queue = self._queues.pop(processor_id, None)
        if queue is not None:
            queue.is_deleted = True
            queue.news.set()

    def waiting(self, processor_id: str) -> int:
        """Return how many messages wait in the processor's queue."""
        queue = self._queues.get(processor_id)
        return 0 if queue is None else len(queue.waiting)

    def publish(self, processor_id: str, message: Message) -> Confirm:
        """Publish a message; return UNKNOWN and keep nothing if there is no such queue, or it is full or refused."""
        queue = self._queues.get(processor_id)
        if not self.accepting or queue is None or len(queue.waiting) >= QUEUE_MAX:
            return Confirm.UNKNOWN
        queue.put(Letter(encode_message(message), message_headers(message)))
        return Confirm.CONFIRMED


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
        # More than the slots, so that cancel messages arrive while every slot is occupied.
        self._unacknowledged_max = 2 * slots + 16
        self.consuming = False

    async def run(self, sink: Sink, turned: Callable[[], None] = lambda: None) -> None:
        while True:
            # A queue that was deleted is declared again.
            await self._consume(self._broker.queue(self._processor_id), sink, turned)

    async def delete(self) -> None:
        await asyncio.sleep(0)
        self._broker.delete_queue(self._processor_id)

    async def _consume(self, queue: Queue, sink: Sink, turned: Callable[[], None]) -> None:
        unacknowledged: dict[int, Letter] = {}
        tag = 0
        self.consuming = True
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
            self.consuming = False
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
