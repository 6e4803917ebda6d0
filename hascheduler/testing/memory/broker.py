"""A broker inside the process: one ordered queue a processor, and the parked messages.

Owner of all messages. Each queue holds at most `QUEUE_MAX`, and then refuses; the oldest parked messages are dropped.
Faults happen only on request: to the next published messages, of any processor.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum

from hascheduler.model.message import Message, encode_message, message_headers
from hascheduler.ports import Confirm

QUEUE_MAX = 10_000
PARKED_MAX = 10_000


class MessageFault(Enum):
    """A fault of one message, in place of one delivery and a confirm."""

    DROPPED = "dropped"
    """Confirmed, and never delivered."""
    DUPLICATED = "duplicated"
    UNCONFIRMED = "unconfirmed"
    """Delivered, but the confirm got lost."""


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
    """``news`` wakes the consumer. Messages that a consumer took and did not acknowledge return to the front."""

    waiting: deque[Letter] = field(default_factory=deque)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    is_deleted: bool = False

    def put(self, letter: Letter) -> None:
        self.waiting.append(letter)
        self.news.set()


class MemoryBroker:
    """``accepting`` False: it takes no message, as a broker that is down or short of memory."""

    def __init__(self) -> None:
        self._accepting = True
        self._watching: list[Callable[[], None]] = []
        self.parked: deque[Parked] = deque(maxlen=PARKED_MAX)
        self._queues: dict[str, Queue] = {}
        self._faults: deque[MessageFault] = deque()

    # Faults

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
        """Calls ``turned`` each time that `accepting` is set."""
        self._watching.append(turned)
        try:
            yield
        finally:
            self._watching.remove(turned)

    def harm_next(self, fault: MessageFault, messages: int = 1) -> None:
        """Adds ``fault`` for the next ``messages`` messages, after the faults requested before."""
        self._faults.extend([fault] * messages)

    def put(self, processor_id: str, body: bytes, headers: Mapping[str, object] | None = None) -> None:
        """Puts any bytes into the processor's queue, as a foreign publisher might."""
        self.queue(processor_id).put(Letter(body, headers or {}))

    # Queues

    def queue(self, processor_id: str) -> Queue:
        """The processor's queue, created if there is none."""
        return self._queues.setdefault(processor_id, Queue())

    def delete_queue(self, processor_id: str) -> None:
        """Deletes the queue and its messages; its consumer notices."""
        queue = self._queues.pop(processor_id, None)
        if queue is not None:
            queue.is_deleted = True
            queue.news.set()

    def waiting(self, processor_id: str) -> int:
        """How many messages wait in the processor's queue."""
        queue = self._queues.get(processor_id)
        return 0 if queue is None else len(queue.waiting)

    def publish(self, processor_id: str, message: Message) -> Confirm:
        """UNKNOWN if there is no such queue, it is full, or the broker does not accept: then nothing is kept."""
        queue = self._queues.get(processor_id)
        if not self.accepting or queue is None or len(queue.waiting) >= QUEUE_MAX:
            return Confirm.UNKNOWN
        fault = self._faults.popleft() if self._faults else None
        copies = {MessageFault.DROPPED: 0, MessageFault.DUPLICATED: 2}.get(fault, 1) if fault else 1
        for _ in range(copies):
            queue.put(Letter(encode_message(message), message_headers(message)))
        return Confirm.UNKNOWN if fault is MessageFault.UNCONFIRMED else Confirm.CONFIRMED
