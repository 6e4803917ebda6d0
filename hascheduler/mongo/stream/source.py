"""The one ordered change stream of the database, and the gap-free start of it.

A fresh stream starts at the operation time T of a ping. Its snapshot is read in a session that has seen T, so each
write is in the snapshot, in the stream, or in both. A resumed stream goes on after its token and needs no snapshot. Our
token is the server's, together with the position of the last event.

The cursor is driven by its two commands, ``aggregate`` and ``getMore``, because a reply of the server is one batch with
one token, which is what the port returns; the driver's own change stream yields single events, at several times the
cost, and resumes silently.

`MongoChangeStream` owns the cursor and at most one exchange, in a task of its own, whose result is kept until it is
fetched. So a cancelled `next_batch` loses nothing. `close` ends the exchange.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from typing import Any

from bson import Timestamp

from hascheduler.errors import DatabaseUnfit, HistoryLost, InvariantBroken, StoreUnavailable
from hascheduler.mirror.changes import Change, Operation
from hascheduler.model.collection import Collection
from hascheduler.mongo.connection import Database, awaited, session_after
from hascheduler.mongo.faults import end_exchange, faults, local_faults, translated
from hascheduler.mongo.schema.indexes import ensure_collections_and_indexes
from hascheduler.mongo.stream.events import Reread, change_of, event_pipeline, position_after, written_at_ms
from hascheduler.mongo.stream.snapshot import live_documents, present_documents
from hascheduler.ports import Batch

BATCH_MAX = 1_000
_SERVER_WAIT_MS = 1_000
"""How long the server holds a request open while there are no events."""
_SILENCE_LIMIT_S = _SERVER_WAIT_MS / 1_000 + 5.0
_CLOSE_LIMIT_S = 2.0
_POSITION = "position"
_OF_DATABASE = "$cmd.aggregate"
"""The collection name of a cursor over a whole database."""


class MongoChangeSource:
    """`hascheduler.ports.ChangeSource`. ``prepare`` must succeed before the first stream is opened.

    It remembers only the newest cluster time that any of its streams has delivered, and if one saw a collection
    dropped.
    """

    def __init__(self, database: Database, prepare: Callable[[], Awaitable[None]] | None = None) -> None:
        self._database = database
        self._prepare = prepare
        self._seen = _Seen()

    async def open(self, resume: Any | None) -> "MongoChangeStream":
        if self._prepare is not None:
            await self._prepare()
            self._prepare = None
        since: Timestamp | None = None
        if resume is None and self._seen.dropped:
            await self._recreate_collections()
        with faults("open the change stream"):
            if resume is None:
                since = (await self._database.command("ping"))["operationTime"]
            start = {"startAtOperationTime": since} if resume is None else {"resumeAfter": _of_server(resume)}
            session = await awaited(self._database.client.start_session(causal_consistency=False))
            reply = await self._database.command(
                {
                    "aggregate": 1,
                    "pipeline": [{"$changeStream": start}, *event_pipeline()],
                    "cursor": {"batchSize": 0},
                    "readConcern": {"level": "majority"},
                },
                session=session,
            )
        position = "" if resume is None else resume.get(_POSITION, "")
        return MongoChangeStream(self._database, session, reply["cursor"], self._seen, since=since, position=position)

    async def _recreate_collections(self) -> None:
        """Create dropped collections with their indexes; the next write would create them without.

        If this fails, the next resync tries again, and `hascheduler.check` reports what is missing.
        """
        with suppress(StoreUnavailable, DatabaseUnfit):
            await ensure_collections_and_indexes(self._database)
            self._seen.dropped = False

    async def fetch(self, collection: Collection, ids: Sequence[str]) -> Sequence[Change]:
        if not ids:
            return []
        # In a session after the newest moment the caller has seen: a new primary may lag behind it.
        async with session_after(self._database, self._seen.moment) as session:
            return await present_documents(self._database, session, collection, ids)


@dataclass(slots=True)
class _Seen:
    moment: Timestamp | None = None
    dropped: bool = False


class MongoChangeStream:
    """`hascheduler.ports.ChangeStream`; made by `MongoChangeSource.open`."""

    def __init__(
        self,
        database: Database,
        session: Any,
        cursor: Mapping[str, Any],
        seen: _Seen,
        *,
        since: Timestamp | None,
        position: str,
    ) -> None:
        self._database = database
        self._session = session
        self._cursor_id: int = cursor["id"]
        self._seen = seen
        self._since = since
        self._resume: Any = cursor["postBatchResumeToken"]
        self._position = position
        self._error: Exception | None = None
        self._exchange: asyncio.Task[Batch] | None = None

    async def next_batch(self, wait_ms: int) -> Batch:
        loop = asyncio.get_running_loop()
        until = loop.time() + wait_ms / 1_000
        while True:
            if self._exchange is None:
                if self._error is not None:
                    raise self._error
                self._exchange = asyncio.create_task(self._get_more(), name="change stream getMore")
            await asyncio.wait([self._exchange], timeout=until - loop.time())
            if not self._exchange.done():
                return Batch([], self._token(), self._position)
            finished, self._exchange = self._exchange, None
            try:
                batch = finished.result()
            except Exception as error:
                self._error = error
                raise
            # The server answers an idle cursor with an empty batch from time to time.
            if batch.changes or loop.time() >= until:
                return batch

    async def snapshot(self) -> AsyncIterator[Sequence[Change]]:
        if self._since is None:
            raise InvariantBroken("a resumed change stream has no snapshot")
        # Close the slices before their session, as they are read ahead.
        async with (
            session_after(self._database, self._since) as session,
            aclosing(live_documents(self._database, session)) as slices,
        ):
            async for changes in slices:
                yield changes

    async def close(self) -> None:
        if self._exchange is not None:
            await end_exchange(self._exchange)
        self._exchange = None
        self._error = StoreUnavailable("the change stream is closed")
        # The server closes an abandoned cursor after its own timeout.
        with suppress(StoreUnavailable, HistoryLost, TimeoutError):
            async with asyncio.timeout(_CLOSE_LIMIT_S):
                if self._cursor_id:
                    with translated("close the change stream"):
                        await self._database.command(
                            {"killCursors": _OF_DATABASE, "cursors": [self._cursor_id]}, session=self._session
                        )
                await self._session.end_session()

    async def _get_more(self) -> Batch:
        async with local_faults("follow the change stream", _SILENCE_LIMIT_S):
            reply = await self._database.command(
                {
                    "getMore": self._cursor_id,
                    "collection": _OF_DATABASE,
                    "batchSize": BATCH_MAX,
                    "maxTimeMS": _SERVER_WAIT_MS,
                },
                session=self._session,
                codec_options=self._database.codec_options,
            )
        cursor = reply["cursor"]
        self._cursor_id = cursor["id"]
        changes: list[Change] = []
        for event in cursor["nextBatch"]:
            position = position_after(self._position, event.get("clusterTime"))
            try:
                change = await self._change(event, position)
            except (HistoryLost, StoreUnavailable) as error:
                # First return the changes before it; the next call raises the error.
                if not changes:
                    raise
                self._error = error
                return Batch(changes, self._token(), self._position)
            if change is not None:
                changes.append(change)
            self._passed(event, position)
        self._resume = cursor.get("postBatchResumeToken", self._resume)
        if not self._cursor_id:
            self._error = StoreUnavailable("follow the change stream: the server ended it")
        return Batch(changes, self._token(), self._position, is_full=len(cursor["nextBatch"]) >= BATCH_MAX)

    def _token(self) -> dict[str, Any]:
        return {**self._resume, _POSITION: self._position}

    def _passed(self, event: Mapping[str, Any], position: str) -> None:
        self._resume = event["_id"]
        self._position = position
        self._seen.moment = event.get("clusterTime", self._seen.moment)

    async def _change(self, event: Mapping[str, Any], position: str) -> Change | None:
        try:
            change = change_of(event, position)
        except HistoryLost:
            self._seen.dropped = True
            raise
        if not isinstance(change, Reread):
            return change
        async with session_after(self._database, event["clusterTime"]) as session:
            [present] = await present_documents(self._database, session, change.collection, [change.id])
        # If the document is gone by now, its delete follows in the stream.
        if present.operation is not Operation.PUT:
            return None
        return replace(present, position=position, at_ms=written_at_ms(event), ahead=True)


def _of_server(token: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in token.items() if name != _POSITION}
