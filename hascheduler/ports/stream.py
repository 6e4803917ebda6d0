"""The one ordered change stream of the database, and the events of jobs and schedules for their followers."""

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

    ``resume`` is the opaque token after them; ``position`` is the cluster time of the last event ("" before the first),
    a text that two replicas may compare. ``is_full``: the batch is full, so the next one is ready.
    """

    changes: Sequence[Change]
    resume: Any
    position: str
    is_full: bool = False


class ChangeStream(Protocol):
    """One open stream over all mirrored collections: one total order."""

    async def next_batch(self, wait_ms: int) -> Batch:
        """Return the next changes, or an empty batch after ``wait_ms``.

        Raise `HistoryLost` if the stream can't go on (history gone, invalidated, a collection dropped or renamed), and
        `StoreUnavailable` if it may be resumed after the last batch's token.
        """

    def snapshot(self) -> AsyncIterator[Sequence[Change]]:
        """Yield all live documents, as PUTs in slices, read at or after the moment the stream starts from.

        Only for a stream that was opened without a token. Finished jobs and all but the newest journal entry are not
        live.
        """

    async def close(self) -> None: ...


class ChangeSource(Protocol):
    async def open(self, resume: Any | None) -> ChangeStream:
        """Open the stream after that token, or from now on if None: then read `ChangeStream.snapshot`."""

    async def fetch(self, collection: Collection, ids: Sequence[str]) -> Sequence[Change]:
        """Return the present state of those documents: a PUT for each that exists, a DELETE for each that does not."""


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Which events are wanted; None, or no types, means any. An event without a tenant matches no tenant."""

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
    """The events up to ``position`` are not available here, because of ``reason``; the feed goes on from there."""

    reason: str
    position: str


@dataclass(frozen=True, slots=True)
class Lagging:
    """The follower was too slow and lost ``missed`` events; its last answer."""

    missed: int


@dataclass(frozen=True, slots=True)
class Closing:
    """This replica stops, and the feed with it."""


class Follower(Protocol):
    """One follower of the events; only for one task."""

    async def next(self, wait_ms: int) -> NewEvents | Missed | Lagging | Closing:
        """Return what comes next, normally a `NewEvents` without events after ``wait_ms``.

        Before this replica knows its position it waits for that, and returns a `NewEvents` at the position "".
        """


class EventFeed(Protocol):
    @property
    def position(self) -> str:
        """Return the position up to which every event is known; "" before this replica knows one."""

    def follow(self, after: str | None, which: EventFilter) -> AbstractContextManager[Follower]:
        """Follow the wanted events after that position, or from now on if None.

        Raise `Overloaded` if too many follow already, or this replica stops. If this replica can't go on from the
        position, the first answer is `Missed`.
        """


class EventExchange(Protocol):
    """Publishes every event at least once; a repeat has the same id."""

    async def run(self) -> None:
        """Keep the connection until cancelled; never raise because of the broker."""

    async def publish(self, events: Sequence[Event]) -> bool:
        """Publish the events; False if the broker may not have all of them, so that they must be published again."""
