"""The change stream, and the gap-free way to begin with it: open first, then read.

The state of a stream is the number of the last event that it delivered, which is also its token. So a cancelled wait
loses nothing.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import suppress

from hascheduler.errors import HistoryLost, InvariantBroken, StoreUnavailable
from hascheduler.mirror.changes import Change, Operation, batch_read
from hascheduler.model.collection import Collection
from hascheduler.model.documents.leadership import JOURNAL_NAME
from hascheduler.model.documents.lean_fields import MIRRORED
from hascheduler.model.job import LIVE, TERMINAL, JobState, is_batch
from hascheduler.ports import Batch
from hascheduler.testing.memory.database import Document, Dropped, MemoryConnection, MemoryDatabase, put_of

BATCH_MAX = 1_000


class MemoryChangeSource:
    """`hascheduler.ports.ChangeSource`; batches and slices hold at most ``batch_max`` changes."""

    def __init__(self, connection: MemoryConnection, batch_max: int = BATCH_MAX) -> None:
        self._connection = connection
        self._batch_max = batch_max

    async def open(self, resume: int | None) -> "MemoryChangeStream":
        async with self._connection.exchange("stream.open") as database:
            # As in MongoDB, the newest change is delivered again.
            newest = database.history.newest - isinstance(database.history.last, Change)
        start = newest if resume is None else resume
        return MemoryChangeStream(self._connection, start, self._batch_max, is_fresh=resume is None)

    async def fetch(self, collection: Collection, ids: Sequence[str]) -> Sequence[Change]:
        if not ids:
            return []
        async with self._connection.exchange("stream.fetch") as database:
            return [_present(database, collection, id) for id in ids]


class MemoryChangeStream:
    """`hascheduler.ports.ChangeStream`; made by `MemoryChangeSource.open`."""

    def __init__(self, connection: MemoryConnection, start: int, batch_max: int, *, is_fresh: bool) -> None:
        self._connection = connection
        self._history = connection.database.history
        self._breaks = connection.breaks
        self._delivered = start
        self._batch_max = batch_max
        self._is_fresh = is_fresh
        self._position = ""
        self._is_closed = False

    async def next_batch(self, wait_ms: int) -> Batch:
        news = self._history.news
        if not self._has_ended() and self._history.newest == self._delivered:
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_ms / 1_000):
                    await news.wait()
        # No await from here on: the batch and the position of the stream change together.
        changes = self._next_changes()
        self._delivered += len(changes)
        if changes:
            self._position = changes[-1].position
        is_full = len(changes) >= self._batch_max
        return Batch(changes, self._delivered, self._position, is_full)

    async def snapshot(self) -> AsyncIterator[Sequence[Change]]:
        if not self._is_fresh:
            raise InvariantBroken("a resumed change stream has no snapshot")
        for collection in MIRRORED:
            async with self._connection.exchange("stream.snapshot") as database:
                live = [put_of(collection, document) for document in _live(database, collection)]
            for start in range(0, len(live), self._batch_max):
                yield live[start : start + self._batch_max]

    async def close(self) -> None:
        self._is_closed = True
        self._history.wake()

    def _has_ended(self) -> bool:
        return self._is_closed or self._breaks != self._connection.breaks

    def _next_changes(self) -> list[Change]:
        """Return the next changes, up to the end of the stream; raise if it has ended."""
        if self._has_ended():
            raise StoreUnavailable("the change stream is closed or broken")
        changes: list[Change] = []
        for event in self._history.after(self._delivered, self._batch_max):
            if isinstance(event, Dropped):
                if changes:
                    break  # first deliver the changes before it
                raise HistoryLost(f"{event.collection} was dropped")
            changes.append(event)
        return changes


def _live(database: MemoryDatabase, collection: Collection) -> Iterable[Document]:
    documents = database.documents(collection)
    match collection:
        case Collection.JOBS:
            return (document for document in documents if document.get("state") in LIVE)
        case Collection.JOURNAL:
            newest: dict[str, Document] = {}
            for entry in documents:
                name, seq = entry["_id"][JOURNAL_NAME], entry["_id"]["seq"]
                if name not in newest or newest[name]["_id"]["seq"] < seq:
                    newest[name] = entry
            return newest.values()
        case _:
            return documents


def _present(database: MemoryDatabase, collection: Collection, id: str) -> Change:
    if collection is Collection.JOBS and is_batch(id):
        jobs = [job for job in database.documents(Collection.JOBS) if job.get("batch") == id]
        failed = [(job["_id"], job["state"]) for job in jobs if job["state"] in (JobState.FAILED, JobState.CANCELLED)]
        is_live = any(job["state"] not in TERMINAL for job in jobs)
        return batch_read(id, is_live=is_live, failed=min(failed, default=None))
    document = database.find(collection, id)
    return put_of(collection, document) if document is not None else Change(collection, Operation.DELETE, id, {})
