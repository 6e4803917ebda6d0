"""The least that a job can cost with this protocol and these drivers: its exchanges alone, with nothing around them.

One process does what replicas and processors do, through the drivers that they use, and no more: a job is inserted, the
journal takes an entry, the job is dispatched by a compare-and-set, its message goes through the broker and is
acknowledged, the job is started and finished by a compare-and-set each. Every write is majority-acknowledged, and as
many change streams of the whole database are read as there are replicas, as raw bytes that nobody decodes; each rests
between an answer and the next request, while the server gathers events: the cheapest that a stream can be. There is no
HTTP, no decision, no validation, no index, no log, no metric and no retry, and one process wakes where five would.

So what a whole system costs above this is hascheduler's own, and what is below it no work on hascheduler can reach.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aio_pika
import psutil
from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument
from pymongo import AsyncMongoClient, UpdateMany
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.read_concern import ReadConcern
from pymongo.write_concern import WriteConcern

from hascheduler.embedded.children import run_in_foreground
from hascheduler.embedded.mongod import start_mongod
from hascheduler.embedded.rabbitmq import start_rabbitmq
from tests.bench.cast import cpu_s, servers
from tests.bench.cost import Rate
from tests.bench.figures import Figures

_DATABASE = "hascheduler-floor"
_PATIENCE_S = 30
_SETTLE_S = 5
_SERVER_WAIT_MS = 1_000
_JOB: dict[str, Any] = {
    "definition": "noop",
    "tenant": "default",
    "lane": "default",
    "priority": 0,
    "payload": {"number": 1},
    "attempt": 0,
    "attempts": [],
    "rev": 1,
}
"""About as large as a job that is submitted with nothing but its definition."""

_Jobs = AsyncCollection[dict[str, Any]]


def measure_floor(pace: Rate, seconds: int, streams: int, rest_ms: int) -> Figures:
    """CPU in milliseconds a job, by process, on servers of its own: theirs, and this one's for all that speaks to
    them."""
    return run_in_foreground(_measure(pace, seconds, streams, rest_ms))


async def _measure(pace: Rate, seconds: int, streams: int, rest_ms: int) -> Figures:
    async with AsyncExitStack() as opened:
        mongod = await opened.enter_async_context(start_mongod())
        rabbitmq = await opened.enter_async_context(start_rabbitmq())
        cast = {**servers(), "drivers": [psutil.Process()]}
        readers = await opened.enter_async_context(asyncio.TaskGroup())
        exchanges = await opened.enter_async_context(_exchanges(mongod.uri, rabbitmq.url))
        await exchanges.lead_through("first", pace.batch)
        following = []
        for _ in range(streams):
            client = await opened.enter_async_context(AsyncMongoClient[dict[str, Any]](mongod.uri))
            following.append(readers.create_task(_follow(client, rest_ms)))
        await asyncio.sleep(_SETTLE_S)
        before, jobs = cpu_s(cast), 0
        loop = asyncio.get_running_loop()
        began_at = loop.time()
        async with asyncio.TaskGroup() as under_way:
            while loop.time() < began_at + seconds:
                under_way.create_task(exchanges.lead_through(str(jobs), pace.batch))
                jobs += pace.batch
                await asyncio.sleep(max(0, began_at + jobs / pace.per_second - loop.time()))
        after, took_s = cpu_s(cast), loop.time() - began_at
        for task in following:
            task.cancel()
    by_kind = {kind: 1_000 * (after[kind] - before[kind]) / jobs for kind in cast}
    return {
        "jobs_per_s": round(jobs / took_s, 1),
        "cpu_ms_per_job": round(sum(by_kind.values()), 3),
        **{f"{kind}_cpu_ms_per_job": round(ms, 3) for kind, ms in by_kind.items()},
    }


async def _follow(client: AsyncMongoClient[dict[str, Any]], rest_ms: int) -> None:
    raw = CodecOptions(document_class=RawBSONDocument)
    database = client.get_database(_DATABASE)
    async with client.start_session(causal_consistency=False) as session:
        reply = await database.command(
            {
                "aggregate": 1,
                "pipeline": [{"$changeStream": {}}],
                "cursor": {"batchSize": 0},
                "readConcern": {"level": "majority"},
            },
            session=session,
        )
        more = {"getMore": reply["cursor"]["id"], "collection": "$cmd.aggregate", "maxTimeMS": _SERVER_WAIT_MS}
        while True:
            async with asyncio.timeout(_PATIENCE_S):
                await database.command(more, session=session, codec_options=raw)
            await asyncio.sleep(rest_ms / 1_000)


@dataclass(frozen=True, slots=True)
class _Exchanges:
    jobs: _Jobs
    journal: _Jobs
    exchange: aio_pika.abc.AbstractExchange
    queue: str
    arrived: asyncio.Queue[aio_pika.abc.AbstractIncomingMessage]

    async def lead_through(self, name: str, size: int) -> None:
        """``size`` jobs from their insert to their end."""
        async with asyncio.timeout(_PATIENCE_S):
            ids = [f"{name}/{number}" for number in range(size)]
            documents = [{"_id": id, "state": "pending", **_JOB} for id in ids]
            await (self.jobs.insert_many(documents, ordered=False) if size > 1 else self.jobs.insert_one(documents[0]))
            decisions = [["dispatch", id, 1, "processor"] for id in ids]
            await self.journal.insert_one({"_id": {"shard": "default", "seq": name}, "decisions": decisions})
            await self._move(ids, "pending", {"state": "dispatched", "attempt": 1, "processor": "processor"})
            message = aio_pika.Message(" ".join(ids).encode(), delivery_mode=aio_pika.DeliveryMode.NOT_PERSISTENT)
            await self.exchange.publish(message, routing_key=self.queue)
            await (await self.arrived.get()).ack()
            await self._start(ids)
            await self._move(ids, "running", {"state": "succeeded", "result": None})

    async def _start(self, ids: list[str]) -> None:
        running = {"state": "running", "started_at_ms": 1}
        if len(ids) > 1:
            await self.jobs.find({"_id": {"$in": ids}}).to_list(None)
            await self._move(ids, "dispatched", running)
            return
        await self.jobs.database.command(
            {
                "findAndModify": self.jobs.name,
                "query": {"_id": ids[0], "state": "dispatched", "attempt": 1},
                "update": {"$set": running, "$inc": {"rev": 1}},
                "new": True,
                "writeConcern": {"w": "majority"},
            }
        )

    async def _move(self, ids: list[str], state: str, fields: dict[str, Any]) -> None:
        update = UpdateMany({"_id": {"$in": ids}, "state": state}, {"$set": fields, "$inc": {"rev": 1}})
        answer = await self.jobs.bulk_write([update], ordered=False)
        assert answer.matched_count == len(ids)


@asynccontextmanager
async def _exchanges(mongodb_uri: str, amqp_url: str) -> AsyncIterator[_Exchanges]:
    async with (
        AsyncMongoClient[dict[str, Any]](mongodb_uri) as client,
        await aio_pika.connect(amqp_url, timeout=_PATIENCE_S) as sender,
        await aio_pika.connect(amqp_url, timeout=_PATIENCE_S) as receiver,
    ):
        database = client.get_database(
            _DATABASE, read_concern=ReadConcern("majority"), write_concern=WriteConcern(w="majority")
        )
        sending = await sender.channel(publisher_confirms=True)
        receiving = await receiver.channel()
        await receiving.set_qos(prefetch_count=1_000)
        queue = await receiving.declare_queue(exclusive=True)
        arrived: asyncio.Queue[aio_pika.abc.AbstractIncomingMessage] = asyncio.Queue()
        await queue.consume(arrived.put)
        yield _Exchanges(database["jobs"], database["journal"], sending.default_exchange, queue.name, arrived)
