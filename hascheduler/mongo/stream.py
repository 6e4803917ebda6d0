"""The one ordered change stream of the database, and the gap-free way to begin with it.

A fresh stream starts at the operation time T of a ping. Its snapshot is read in a session that has seen T, so each
write is in the snapshot, or in the stream, or in both; nothing falls in between. A resumed stream goes on after its
token and needs no snapshot.

`MongoChangeStream` owns the driver's stream and one task, the pump, which is the only one that awaits it. So a
cancelled `next_batch` loses nothing: interrupting the driver in the middle of an exchange would lose whatever was on
its way. The pump keeps at most `BUFFERED_MAX` changes ready and stops at its first error, which the caller gets after
the changes before it. `close` ends the pump.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from bson import Timestamp
from pymongo.errors import PyMongoError

from hascheduler.errors import HistoryLost, InvariantBroken, StoreUnavailable
from hascheduler.mirror.changes import Change, Operation
from hascheduler.model.documents import Collection
from hascheduler.mongo.connection import Database
from hascheduler.mongo.driver import resolved, session_after
from hascheduler.mongo.events import Read, Told, change_of, event_pipeline
from hascheduler.mongo.faults import faults, translated
from hascheduler.mongo.snapshot import live_documents, present_documents
from hascheduler.ports import Batch

BATCH_MAX = 1_000
BUFFERED_MAX = 4 * BATCH_MAX
_BREATH = 100
_SERVER_WAIT_MS = 1_000
"""How long the server holds a request open when there is nothing to tell."""
_SILENCE_LIMIT_S = _SERVER_WAIT_MS / 1_000 + 5.0
_CLOSE_LIMIT_S = 2.0


class MongoChangeSource:
    """`hascheduler.ports.ChangeSource`. Remembers only the newest moment that any of its streams has told of."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._seen = _Seen()

    async def open(self, resume: Any | None) -> "MongoChangeStream":
        since: Timestamp | None = None
        with faults("open the change stream"):
            if resume is None:
                since = (await self._database.command("ping"))["operationTime"]
            start = {"start_at_operation_time": since} if resume is None else {"resume_after": resume}
            driver_stream = await resolved(
                self._database.watch(event_pipeline(), batch_size=BATCH_MAX, max_await_time_ms=_SERVER_WAIT_MS, **start)
            )
        return MongoChangeStream(self._database, driver_stream, self._seen, since, resume)

    async def fetch(self, collection: Collection, ids: Sequence[str]) -> Sequence[Change]:
        if not ids:
            return []
        # After what the caller has seen: a primary that is new may not have caught up with it.
        async with session_after(self._database, self._seen.moment) as session:
            return await present_documents(self._database, session, collection, ids)


@dataclass(slots=True)
class _Seen:
    moment: Timestamp | None = None


@dataclass(frozen=True, slots=True)
class _Step:
    """One step of the stream: the change, if it tells one, and where the stream stands after it."""

    change: Change | None
    resume: Any
    moment: Timestamp | None


class MongoChangeStream:
    """`hascheduler.ports.ChangeStream`; made by `MongoChangeSource.open`."""

    def __init__(
        self, database: Database, driver_stream: Any, seen: _Seen, since: Timestamp | None, resume: Any | None
    ) -> None:
        self._database = database
        self._driver_stream = driver_stream
        self._seen = seen
        self._since = since
        self._resume = resume
        self._position = ""
        self._steps: deque[_Step] = deque()
        self._error: Exception | None = None
        self._arrived = asyncio.Event()
        self._room = asyncio.Event()
        self._pump_task = asyncio.create_task(self._pump(), name="change stream pump")

    async def next_batch(self, wait_ms: int) -> Batch:
        if not self._arrived.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_ms / 1_000):
                    await self._arrived.wait()
        if not self._steps and self._error is not None:
            raise self._error
        # No await from here on: steps leave the buffer only together with the token after them.
        changes: list[Change] = []
        while self._steps and len(changes) < BATCH_MAX:
            step = self._steps.popleft()
            if step.change is not None:
                changes.append(step.change)
            self._resume = step.resume
            if step.moment is not None:
                self._position = f"{step.moment.time:010d}.{step.moment.inc:010d}"
                self._seen.moment = step.moment
        if not self._steps and self._error is None:
            self._arrived.clear()
        self._room.set()
        return Batch(changes, self._resume, self._position)

    async def snapshot(self) -> AsyncIterator[Sequence[Change]]:
        if self._since is None:
            raise InvariantBroken("a resumed change stream has no snapshot")
        async with session_after(self._database, self._since) as session:
            async for changes in live_documents(self._database, session):
                yield changes

    async def close(self) -> None:
        while not self._pump_task.done():
            # More than once: the driver may lose a cancellation, see `faults`.
            self._pump_task.cancel()
            await asyncio.wait([self._pump_task], timeout=0.1)
        self._error = StoreUnavailable("the change stream is closed")
        self._arrived.set()
        # The server forgets an abandoned stream by itself.
        with suppress(PyMongoError, TimeoutError):
            async with asyncio.timeout(_CLOSE_LIMIT_S):
                await self._driver_stream.close()

    async def _pump(self) -> None:
        try:
            while True:
                while len(self._steps) >= BUFFERED_MAX:
                    self._room.clear()
                    await self._room.wait()
                with translated("follow the change stream"):
                    async with asyncio.timeout(_SILENCE_LIMIT_S):
                        event = await self._driver_stream.try_next()
                if len(self._steps) % _BREATH == _BREATH - 1:
                    # Events that the driver has at hand come without a pause; the other loops need one.
                    await asyncio.sleep(0)
                if event is None:
                    if not self._driver_stream.alive:
                        raise StoreUnavailable("follow the change stream: the server ended it")
                    self._step(None, None)
                else:
                    self._step(await self._told(event), event.get("clusterTime"))
        except Exception as error:  # whatever it is, the caller of the task's owner is to get it
            self._error = error
            self._arrived.set()

    def _step(self, change: Change | None, moment: Timestamp | None) -> None:
        resume = self._driver_stream.resume_token
        if change is None and self._steps and self._steps[-1].change is None:
            before = self._steps.pop()  # an idle stream piles nothing up
            moment = moment or before.moment
        self._steps.append(_Step(change, resume, moment))
        if change is not None:
            self._arrived.set()

    async def _told(self, event: Mapping[str, Any]) -> Change | None:
        match change_of(event):
            case Change() as change:
                return change
            case Read(collection, id):
                async with session_after(self._database, event["clusterTime"]) as session:
                    [present] = await present_documents(self._database, session, collection, [id])
                # One that is gone by now is deleted further down the stream.
                return present if present.operation is Operation.PUT else None
            case Told.LOST:
                raise HistoryLost(f"follow the change stream: {event['operationType']} of a collection")
            case Told.NOTHING:
                return None
