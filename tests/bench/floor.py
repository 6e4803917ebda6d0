"""The least that a job can cost with this protocol and these drivers: its exchanges alone, with nothing around them.

One process does what replicas and processors do, through the server and the drivers that they use, and no more: jobs
arrive over HTTP and are inserted, the journal takes an entry, they are dispatched by a compare-and-set, a message goes
through the broker and is acknowledged, they are started and finished by a compare-and-set each. Every write is
majority-acknowledged, and as many change streams of the whole database are read as there are replicas; each rests
between an answer and the next request, while the server gathers events: the cheapest that a stream can be. There is no
validation, no decision, no log, no metric, no audit and no retry.

The least of all has a small document, no index, and streams of raw bytes that nobody decodes. Measured *as stored*, a
job has the document and the indexes of the system, and each stream is the one that a mirror follows, decoded by the
driver: what this form of the data costs, whatever the code around it.

What waits at the same moment shares an exchange, as in the system: dispatches as far apart as the leader's, and what
arrived meanwhile for starts and finishes. Here one process leads and works for all, where five would wake and each
gather less. So what a whole system costs above this is hascheduler's own, and what is below it no work on hascheduler
can reach. The same holds for the time from the arrival of a submit to the start, a chain of majority-acknowledged
writes.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aio_pika
import orjson
import psutil
import uvicorn
from bson import ObjectId
from pymongo import AsyncMongoClient, UpdateMany
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.read_concern import ReadConcern
from pymongo.write_concern import WriteConcern

from hascheduler.daemon.loop.batch_delay import BatchDelay
from hascheduler.daemon.loop.stepper import DELAY_MAX_MS, PER_DECISION_MS
from hascheduler.embedded.children import run_in_foreground
from hascheduler.embedded.mongod import start_mongod
from hascheduler.embedded.rabbitmq import start_rabbitmq
from hascheduler.errors import WorldError
from hascheduler.model.documents.job import new_job_document
from hascheduler.model.job import NewJob
from hascheduler.model.values.instants import MonoMs, WallMs
from hascheduler.mongo.schema.indexes import ensure_collections_and_indexes
from hascheduler.mongo.state_updates import BY_ID
from hascheduler.mongo.stream.events import event_pipeline
from hascheduler.simulate.report import percentile
from tests.bench.cast import cpu_s, servers
from tests.bench.cost import Rate
from tests.bench.figures import Figures
from tests.bench.floor_at_rest import DATABASE, follow
from tests.bench.load import Load, loading

_PATIENCE_S = 30
_SETTLE_S = 5
_TAIL_S = 1
_JOB: dict[str, Any] = {
    "state": "pending",
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

AS_STORED = "as stored"
_Jobs = AsyncCollection[dict[str, Any]]


def measure_floor(pace: Rate, seconds: int, streams: int, rest_ms: int, *, as_stored: bool) -> Figures:
    """CPU in milliseconds a job, by process, on servers of its own: theirs, and this one's for all that speaks to
    them. ``as_stored``: documents, indexes and events are the system's."""
    return run_in_foreground(_measure(pace, seconds, streams, rest_ms, as_stored=as_stored))


async def _measure(pace: Rate, seconds: int, streams: int, rest_ms: int, *, as_stored: bool) -> Figures:
    async with AsyncExitStack() as opened:
        mongod = await opened.enter_async_context(start_mongod())
        rabbitmq = await opened.enter_async_context(start_rabbitmq())
        cast = {**servers(), "drivers": [psutil.Process()]}
        loops = await opened.enter_async_context(asyncio.TaskGroup())
        exchanges = await opened.enter_async_context(_exchanges(mongod.uri, rabbitmq.url, as_stored=as_stored))
        running = [loops.create_task(exchanges.lead()), loops.create_task(exchanges.work())]
        for _ in range(streams):
            client = await opened.enter_async_context(AsyncMongoClient[dict[str, Any]](mongod.uri))
            database, rest_s = client[DATABASE], rest_ms / 1_000
            stream = follow(database, rest_s, event_pipeline(), codec=None) if as_stored else follow(database, rest_s)
            running.append(loops.create_task(stream))
        url = await opened.enter_async_context(_serving(exchanges))
        load = Load((url,), pace.per_second, _SETTLE_S + seconds + _TAIL_S, pace.batch)
        async with loading(load) as sending:
            await asyncio.sleep(_SETTLE_S)
            before, finished, began_at = cpu_s(cast), exchanges.finished, asyncio.get_running_loop().time()
            exchanges.starts_ms.clear()
            await asyncio.sleep(seconds)
            after, took_s = cpu_s(cast), asyncio.get_running_loop().time() - began_at
            jobs, starts_ms = exchanges.finished - finished, list(exchanges.starts_ms)
            sent = await sending.sent()
        for task in running:
            task.cancel()
    if sent.failed or not jobs:
        raise WorldError(f"{sent.failed} submits failed, and {jobs} jobs have ended")
    by_kind = {kind: 1_000 * (after[kind] - before[kind]) / jobs for kind in cast}
    return {
        "jobs_per_s": round(jobs / took_s, 1),
        "start_p50_ms": percentile(starts_ms, 50),
        "start_p99_ms": percentile(starts_ms, 99),
        "cpu_ms_per_job": round(sum(by_kind.values()), 3),
        **{f"{kind}_cpu_ms_per_job": round(ms, 3) for kind, ms in by_kind.items()},
    }


@asynccontextmanager
async def _serving(exchanges: "_Exchanges") -> AsyncIterator[str]:
    """The address at which an application takes jobs that does nothing else, under the server of the API."""
    server = uvicorn.Server(
        uvicorn.Config(
            exchanges.submit,
            port=0,
            http="httptools",
            interface="asgi3",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
        )
    )
    serving = asyncio.create_task(server.serve(), name="uvicorn")
    try:
        async with asyncio.timeout(_PATIENCE_S):
            while not server.started:  # noqa: ASYNC110  # it has no event for that
                await asyncio.sleep(0.01)
        host, port = server.servers[0].sockets[0].getsockname()
        yield f"http://{host}:{port}"
    finally:
        server.should_exit = True
        await serving


@dataclass(slots=True)
class _Exchanges:
    jobs: _Jobs
    journal: _Jobs
    document: Mapping[str, Any]
    exchange: aio_pika.abc.AbstractExchange
    queue: str
    arrived: asyncio.Queue[aio_pika.abc.AbstractIncomingMessage]

    submitted: asyncio.Queue[str] = field(default_factory=asyncio.Queue)
    arrived_at: dict[str, float] = field(default_factory=dict)
    starts_ms: list[int] = field(default_factory=list)
    """From the arrival of its submit, by job that has started."""
    finished: int = 0

    async def submit(self, scope: Any, receive: Any, send: Any) -> None:
        """The ASGI application: a job, or a batch of them."""
        now, body, more = asyncio.get_running_loop().time(), b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        count = len(orjson.loads(body).get("jobs", "1"))
        ids = [str(ObjectId()) for _ in range(count)]
        documents = [{**self.document, "_id": id} for id in ids]
        await (self.jobs.insert_many(documents, ordered=False) if count > 1 else self.jobs.insert_one(documents[0]))
        for id in ids:
            self.arrived_at[id] = now
            self.submitted.put_nowait(id)
        answer = orjson.dumps({"results": [{"job": id} for id in ids]})
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(answer)).encode())]
        await send({"type": "http.response.start", "status": 201, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    async def lead(self) -> None:
        """Dispatch what was submitted, as far apart as a leader does."""
        loop, delay = asyncio.get_running_loop(), BatchDelay(PER_DECISION_MS, DELAY_MAX_MS)
        while True:
            ids = [await self.submitted.get()]
            await asyncio.sleep(delay.wait_s(MonoMs(int(1_000 * loop.time()))))
            while not self.submitted.empty():
                ids.append(self.submitted.get_nowait())
            delay.passed(len(ids), MonoMs(int(1_000 * loop.time())))
            async with asyncio.timeout(_PATIENCE_S):
                decisions = [["dispatch", id, 1, "processor"] for id in ids]
                await self.journal.insert_one({"_id": {"shard": "default", "seq": ids[0]}, "decisions": decisions})
                await self._move(ids, "pending", {"state": "dispatched", "attempt": 1, "processor": "processor"})
                message = aio_pika.Message(" ".join(ids).encode(), delivery_mode=aio_pika.DeliveryMode.NOT_PERSISTENT)
                await self.exchange.publish(message, routing_key=self.queue)

    async def work(self) -> None:
        """Start and finish what has arrived."""
        while True:
            messages = [await self.arrived.get()]
            while not self.arrived.empty():
                messages.append(self.arrived.get_nowait())
            async with asyncio.timeout(_PATIENCE_S):
                ids = " ".join(message.body.decode() for message in messages).split()
                for message in messages:
                    await message.ack()
                await self._start(ids)
                now = asyncio.get_running_loop().time()
                self.starts_ms += [round(1_000 * (now - self.arrived_at.pop(id))) for id in ids]
                await self._move(ids, "running", {"state": "succeeded", "result": None})
            self.finished += len(ids)

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
        update = UpdateMany({"_id": {"$in": ids}, "state": state}, {"$set": fields, "$inc": {"rev": 1}}, hint=BY_ID)
        answer = await self.jobs.bulk_write([update], ordered=False)
        assert answer.matched_count == len(ids)


def _stored_job() -> dict[str, Any]:
    job = NewJob("", "noop", "target", {"number": 1}, "default", "default", "default", 5, "queued", {}, WallMs(1))
    return new_job_document(job)


@asynccontextmanager
async def _exchanges(mongodb_uri: str, amqp_url: str, *, as_stored: bool) -> AsyncIterator[_Exchanges]:
    async with (
        AsyncMongoClient[dict[str, Any]](mongodb_uri) as client,
        await aio_pika.connect(amqp_url, timeout=_PATIENCE_S) as sender,
        await aio_pika.connect(amqp_url, timeout=_PATIENCE_S) as receiver,
    ):
        database = client.get_database(
            DATABASE, read_concern=ReadConcern("majority"), write_concern=WriteConcern(w="majority")
        )
        if as_stored:
            await ensure_collections_and_indexes(database)
        document = _stored_job() if as_stored else _JOB
        sending = await sender.channel(publisher_confirms=True)
        receiving = await receiver.channel()
        await receiving.set_qos(prefetch_count=1_000)
        queue = await receiving.declare_queue(exclusive=True)
        arrived: asyncio.Queue[aio_pika.abc.AbstractIncomingMessage] = asyncio.Queue()
        await queue.consume(arrived.put)
        yield _Exchanges(database["jobs"], database["journal"], document, sending.default_exchange, queue.name, arrived)
