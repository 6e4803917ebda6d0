"""The change stream of a replica, read and nothing more: its events as raw bytes, decoded, or folded into a mirror."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument
from pymongo.asynchronous.database import AsyncDatabase

from hascheduler.dispatch.dispatcher import Dispatcher
from hascheduler.mirror.changes import JobGone, JobSeen, ScheduleGone, ScheduleSeen
from hascheduler.mirror.mirror import Mirror
from hascheduler.model.values.instants import WallMs
from hascheduler.mongo.stream.events import event_pipeline
from hascheduler.mongo.stream.source import MongoChangeSource
from tests.bench.floor.exchanges import PATIENCE_S, wall_ms
from tests.bench.floor.forms import Form

FOLLOWER_RESTS_S = 0.2
"""Of a stream, before it asks for more, as a follower's does."""
Fact = JobSeen | JobGone | ScheduleSeen | ScheduleGone
_STREAM_WAIT_MS = 1_000
_RAW: CodecOptions[Any] = CodecOptions(document_class=RawBSONDocument)
_Database = AsyncDatabase[dict[str, Any]]


async def follow_in_form(database: _Database, form: Form, rest_s: float) -> None:
    match form:
        case Form.LEAST:
            await follow(database, rest_s)
        case Form.AS_STORED:
            await follow(database, rest_s, event_pipeline(), codec=None)
        case Form.MIRRORED | Form.IN_PROCESSES:
            await follow_mirrored(database, lambda _changes: rest_s)


async def follow(
    database: _Database,
    rest_s: float,
    pipeline: Sequence[Mapping[str, Any]] = (),
    codec: CodecOptions[Any] | None = _RAW,
) -> None:
    """Read the change stream of the database, with a rest after each answer; by default nobody decodes its events."""
    async with database.client.start_session(causal_consistency=False) as session:
        reply = await database.command(
            {
                "aggregate": 1,
                "pipeline": [{"$changeStream": {}}, *pipeline],
                "cursor": {"batchSize": 0},
                "readConcern": {"level": "majority"},
            },
            session=session,
        )
        more = {"getMore": reply["cursor"]["id"], "collection": "$cmd.aggregate", "maxTimeMS": _STREAM_WAIT_MS}
        while True:
            async with asyncio.timeout(PATIENCE_S):
                await database.command(more, session=session, codec_options=codec)
            await asyncio.sleep(rest_s)


async def follow_mirrored(
    database: _Database, rest_s: Callable[[int], float], seen: Callable[[Sequence[Fact]], None] = lambda _facts: None
) -> None:
    """The stream, the mirror and the core of a replica that follows, and nothing around them. ``rest_s`` is for a batch
    of so many changes, but none follows a full one; ``seen`` has the facts of each batch that has some."""
    stream, mirror, core = await MongoChangeSource(database).open(None), Mirror(), Dispatcher()
    async for changes in stream.snapshot():
        mirror.fold(changes)
    while True:
        batch = await stream.next_batch(_STREAM_WAIT_MS)
        facts = [fact for fact in mirror.fold(batch.changes).facts if isinstance(fact, Fact)]
        if facts:
            core.step(WallMs(wall_ms()), facts)
            seen(facts)
        if not batch.is_full:
            await asyncio.sleep(rest_s(len(batch.changes)))
