"""What changed: the one ordered stream of the database, and events of jobs and schedules for their followers."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from hascheduler.mirror.changes import Change
from hascheduler.model.collection import Collection
from hascheduler.model.event import Event, EventType


@dataclass(frozen=True, slots=True)
class Batch:
    """What the stream delivered: changes in order (perhaps none).

    ``resume`` is the token after them, opaque; ``position`` the cluster time of the last event ("" before the first),
    a text that two replicas may compare. ``is_full``: as many as a batch holds, so the next one is there already.
    """

    changes: Sequence[Change]
    resume: Any
    position: str
    is_full: bool = False


class ChangeStream(Protocol):
    """One open stream over all mirrored collections: one total order."""

    async def next_batch(self, wait_ms: int) -> Batch:
        """The next changes, or an empty batch after ``wait_ms``.

        Raises `HistoryLost` when it can't go on (history gone, invalidated, a collection dropped or renamed), and
        `StoreUnavailable` when it may be resumed after the last batch's token.
        """

    def snapshot(self) -> AsyncIterator[Sequence[Change]]:
        """All live documents, as PUTs in slices, read at or after the moment the stream starts from.

        Only for a stream that was opened without a token. Live: every document but finished jobs and all but the
        newest journal entry.
        """

    async def close(self) -> None: ...


class ChangeSource(Protocol):
    async def open(self, resume: Any | None) -> ChangeStream:
        """The stream after that token, or, with None, from now on: follow it with `ChangeStream.snapshot`."""

    async def fetch(self, collection: Collection, ids: Sequence[str]) -> Sequence[Change]:
        """The present state of those documents: a PUT for each that is there, a DELETE for each that is not."""


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Which events are wanted; None, or no types: any. An event without a tenant matches no tenant."""

    types: frozenset[EventType] = frozenset()
    definition: str | None = None
    schedule: str | None = None
    job: str | None = None
    tenant: str | None = None

    def takes(self, event: Event) -> bool:
        return (
            (not self.types or event.type in self.types)
            and (self.definition is None or event.definition == self.definition)
            and (self.schedule is None or event.schedule == self.schedule)
            and (self.job is None or event.job == self.job)
            and (self.tenant is None or event.tenant == self.tenant)
        )


@dataclass(frozen=True, slots=True)
class NewEvents:
    """The wanted events up to ``position``, in order, perhaps none; there may be more beyond it."""

    events: Sequence[Event]
    position: str


@dataclass(frozen=True, slots=True)
class Missed:
    """The events up to ``position`` are not known here, for that ``reason``; the feed goes on from there."""

    reason: str
    position: str


@dataclass(frozen=True, slots=True)
class Lagging:
    """The follower was too slow: ``missed`` events were forgotten before it took them. The last answer it gets."""

    missed: int


@dataclass(frozen=True, slots=True)
class Closing:
    """This replica ends, and the feed with it."""


class Follower(Protocol):
    """One follower of the events; only for one task."""

    async def next(self, wait_ms: int) -> NewEvents | Missed | Lagging | Closing:
        """What comes next; after ``wait_ms``, as a rule, a `NewEvents` without events.

        Before this replica knows its position it waits for that, and answers with a `NewEvents` at the position "".
        """


class EventFeed(Protocol):
    @property
    def position(self) -> str:
        """Every event up to here is known; "" before this replica knows its place."""

    def follow(self, after: str | None, which: EventFilter) -> AbstractContextManager[Follower]:
        """Follow the wanted events after that position, or, with None, from now on.

        `Overloaded` where too many follow already, or this replica ends. Where this replica can't go on from the
        position, the first answer is `Missed`.
        """


class EventExchange(Protocol):
    """Where all events are published: each at least once, a repeated one with the same id."""

    async def run(self) -> None:
        """Keep the connection, until cancelled; never raises because of the broker."""

    async def publish(self, events: Sequence[Event]) -> bool:
        """Whether the broker has all of them; if not, or not for certain, they are to be published again."""
