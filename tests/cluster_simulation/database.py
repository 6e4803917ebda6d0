"""A replica set: writes that a majority must have, and that a fail-over may take back.

A write is there at once on the primary; a moment later a majority has it, and only then is it in the change stream and
acknowledged to who asked for that. A fail-over takes back what no majority had, writes with ``w: 1`` that were
acknowledged among them; who waits for a majority then never hears of it.

Reads are answered once a majority has what they saw: as a linearizable read would be, and later than many.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, TypeVar

from hascheduler.errors import StoreUnavailable
from hascheduler.model.collection import Collection
from hascheduler.testing.memory.database import Document, History, MemoryDatabase
from tests.cluster_simulation.loop import SimLoop

T = TypeVar("T")


class CommittedHistory(History):
    """Shows what a majority has."""

    def __init__(self) -> None:
        super().__init__(events_max=10_000_000)
        self._committed = 0

    @property
    def newest(self) -> int:
        return self._committed

    @property
    def last(self) -> Any:
        shown = self.after(self._committed - 1, 1) if self._committed > self.forgotten else []
        return shown[0] if shown else None

    @property
    def written(self) -> int:
        return self._newest

    @property
    def forgotten(self) -> int:
        return self._newest - len(self._events)

    def after(self, number: int, limit: int) -> list[Any]:
        return super().after(number, max(0, min(limit, self._committed - number)))

    def append(self, event: Any) -> None:
        self._add(event)

    def commit(self, number: int) -> None:
        if number > self._committed:
            self._committed = number
            self.wake()

    def take_back(self) -> None:
        while self._newest > self._committed:
            self._events.pop()
            self._newest -= 1

    def forget(self) -> None:
        """Everything that a majority has, but not what is on its way to it."""
        while self.forgotten < self._committed:
            self._events.popleft()
        self.wake()


@dataclass(slots=True)
class _Write:
    collection: Collection
    key: Hashable
    before: Document | None
    events: int
    """How many the history held after it."""


class SimDatabase(MemoryDatabase):
    """Owner of what may still be taken back. ``seen`` gets each version of a document that a majority has."""

    def __init__(self, seen: Callable[[Collection, Document | None, Document | None], None]) -> None:
        super().__init__()
        self.history: CommittedHistory = CommittedHistory()
        self._seen = seen
        self._open: list[_Write] = []
        self._version = 0
        self.written = asyncio.Event()
        """Something waits for its majority."""

    @property
    def version(self) -> int:
        """The number of the newest write."""
        return self._version

    @property
    def committed(self) -> int:
        return self._version - len(self._open)

    def update(self, collection: Collection, document: Document, fields: Mapping[str, Any]) -> Document:
        updated = super().update(collection, document, fields)
        if updated is not document:
            self._wrote(collection, _key(document), document)
        return updated

    def delete(self, collection: Collection, id: object) -> bool:
        before = self.find(collection, id)
        deleted = super().delete(collection, id)
        if before is not None:
            self._wrote(collection, _key(before), before)
        return deleted

    def commit(self, version: int) -> None:
        """A majority has everything up to that write."""
        count = max(0, len(self._open) - (self._version - version))
        after: list[Document | None] = []
        newest: dict[tuple[Collection, Hashable], Document | None] = {}
        for write in reversed(self._open):
            place = write.collection, write.key
            after.append(newest[place] if place in newest else self._documents[write.collection].get(write.key))
            newest[place] = write.before
        after.reverse()
        for write, document in zip(self._open[:count], after, strict=False):
            self._seen(write.collection, write.before, document)
            self.history.commit(write.events)
        del self._open[:count]

    def take_back(self) -> int:
        """What no majority has is undone; how many writes that were."""
        undone = len(self._open)
        for write in reversed(self._open):
            if write.before is None:
                self._documents[write.collection].pop(write.key, None)
            else:
                self._documents[write.collection][write.key] = write.before
        self._open.clear()
        self._version -= undone
        self.history.take_back()
        return undone

    def _put(self, collection: Collection, key: Hashable, document: Document) -> None:
        before = self._documents[collection].get(key)
        super()._put(collection, key, document)
        self._wrote(collection, key, before)

    def _wrote(self, collection: Collection, key: Hashable, before: Document | None) -> None:
        self._version += 1
        self.written.set()
        self._open.append(_Write(collection, key, before, self.history.written))


def _key(document: Document) -> Hashable:
    id = document["_id"]
    return id if isinstance(id, str) else (type(id).__name__, repr(id))


class Server:
    """The primary, and its way to a majority. Runs in the world, which no fault pauses."""

    def __init__(self, loop: SimLoop, database: SimDatabase, chance: Random) -> None:
        self._loop = loop
        self._chance = chance
        self._epoch = 0
        self._committed = asyncio.Event()
        self.database = database
        self.is_up = True
        self.lag_s = 0.001
        """How long it takes until a majority has a write; a fault may raise it."""

    async def run(self) -> None:
        while True:
            await self.database.written.wait()
            self.database.written.clear()
            version, epoch = self.database.version, self._epoch
            await asyncio.sleep(self.lag_s * self._chance.uniform(0.5, 2))
            if self.is_up and epoch == self._epoch:
                # After a commit in between there may be less to do.
                if version > self.database.committed:
                    self.database.commit(version)
                news, self._committed = self._committed, asyncio.Event()
                news.set()
            if self.database.committed < self.database.version:
                self.database.written.set()

    async def carry_out(self, operation: Callable[[], Awaitable[T]], *, majority: bool) -> T:
        """Do it, and wait for a majority where that is asked for."""
        if not self.is_up:
            raise StoreUnavailable("there is no primary")
        epoch = self._epoch
        result = await operation()
        version = self.database.version
        while majority and self.database.committed < version:
            if epoch != self._epoch:
                raise StoreUnavailable("the primary stepped down")
            await self._committed.wait()
        if epoch != self._epoch:
            raise StoreUnavailable("the primary stepped down")
        return result

    async def fail_over(self, for_s: float) -> int:
        """The primary is lost: what no majority has goes, and for a while nobody answers. How many writes went."""
        self.is_up = False
        self._epoch += 1
        undone = self.database.take_back()
        news, self._committed = self._committed, asyncio.Event()
        news.set()
        await asyncio.sleep(for_s)
        self.is_up = True
        return undone
