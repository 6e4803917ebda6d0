"""Messages: how dispatched attempts reach processors, and which traces they belong to."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from hascheduler.model.message import Message
from hascheduler.model.trace import TraceContext


class Confirm(StrEnum):
    CONFIRMED = "confirmed"
    UNKNOWN = "unknown"
    """Returned, nacked, timed out or not sent: try again with the same message id."""


class Transport(Protocol):
    """Carries messages to processors; it outlives every outage."""

    async def run(self, turned: Callable[[], None] = ...) -> None:
        """Keep it connected until cancelled. ``turned`` is called whenever `accepting` may have become otherwise."""

    @property
    def accepting(self) -> bool:
        """Whether messages go out now: connected, and the broker does not block us."""

    async def publish(self, messages: Sequence[tuple[str, Message]]) -> list[Confirm]:
        """Send each message to its processor (by id), pipelined; one outcome each, in order. Never raises."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """One message as it arrived. Exactly one of ``ack`` and ``park`` is awaited, once."""

    body: bytes
    ack: Callable[[], Awaitable[None]]
    park: Callable[[str], Awaitable[None]]
    """Moves the message to the parking queue with the reason, and takes it from the processor's queue."""
    trace: TraceContext | None = None
    """What its headers tell, where they tell something."""


class Deliveries(Protocol):
    """The processor's own queue. ``run`` hands each delivery to ``sink`` until cancelled; it outlives every outage, and
    calls ``turned`` each time that `consuming` has become otherwise."""

    async def run(
        self, sink: Callable[[Delivery], Awaitable[None]], turned: Callable[[], None] = lambda: None
    ) -> None: ...

    @property
    def consuming(self) -> bool:
        """Whether what is sent arrives now."""

    async def delete(self) -> None:
        """Remove the queue: this processor will not come back."""


@dataclass(frozen=True, slots=True)
class TracedJob:
    """What the span of a job's message says of the job, and where it belongs."""

    definition: str
    schedule: str | None
    trace: TraceContext | None


class JobTraces(Protocol):
    """Read when a batch is published, by a leader that traces; never otherwise.

    A mirror does not have them: of a million jobs that wait it would carry a million, for the few that go out now, and
    the job of a fire goes out before its echo comes in.
    """

    async def of(self, job_ids: Sequence[str]) -> Mapping[str, TracedJob]:
        """The jobs of ``job_ids`` that are there, as this process wrote them; answers soon or not at all."""
