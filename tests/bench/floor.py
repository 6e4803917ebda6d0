"""The least that a job can cost with this protocol and these drivers: its exchanges alone, with nothing around them.

One process does what replicas and processors do, through the server and the drivers that they use, and no more: jobs
arrive over HTTP and are inserted, the journal takes an entry, they are dispatched by a compare-and-set, a message goes
through the broker and is acknowledged, they are started and finished by a compare-and-set each. Every write waits for a
majority, but for the dispatch, which the journal holds already. As many change streams of the whole database are read
as there are replicas; each rests between an answer and the next request, while the server gathers events: the cheapest
that a stream can be. There is no validation, no decision, no log, no metric, no audit and no retry.

The least of all has a small document, no index, short updates, and streams of raw bytes that nobody decodes. Measured
*as stored*, a job has the document, the indexes and the updates of the system, and each stream is the one that a mirror
follows, decoded by the driver: what this form of the data costs, whatever the code around it. Measured *mirrored*, each
stream is folded into a mirror and a core of the system besides, as every replica does that may lead the next moment:
what a deployment costs in which a successor knows all that the leader knows.

What waits at the same moment shares an exchange, as in the system: dispatches as far apart as the leader's, to free
slots of two processors, and what arrived meanwhile for inserts, starts and finishes. Here one process leads and works
for all, where five would wake and each gather less. So what a whole system costs above this is hascheduler's own, and
what is below it no work on hascheduler can reach. The same holds for the time from the arrival of a submit to the
start, a chain of majority-acknowledged writes.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import aio_pika
import orjson
import psutil
import uvicorn
from bson import ObjectId
from pymongo import AsyncMongoClient, UpdateMany
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.asynchronous.database import AsyncDatabase
from pymongo.read_concern import ReadConcern
from pymongo.write_concern import WriteConcern

from hascheduler.daemon.loop.batch_delay import BatchDelay
from hascheduler.daemon.loop.stepper import DELAY_MAX_MS, PER_DECISION_MS
from hascheduler.dispatch.decisions import Dispatch
from hascheduler.dispatch.dispatcher import Dispatcher
from hascheduler.embedded.children import run_in_foreground
from hascheduler.embedded.mongod import start_mongod
from hascheduler.embedded.rabbitmq import start_rabbitmq
from hascheduler.errors import WorldError
from hascheduler.mirror.changes import JobGone, JobSeen
from hascheduler.mirror.mirror import Mirror
from hascheduler.model.documents.job import new_job_document
from hascheduler.model.job import JobState, Move, NewJob
from hascheduler.model.values.instants import MonoMs, WallMs
from hascheduler.mongo.request_batcher import RequestBatcher
from hascheduler.mongo.schema.indexes import ensure_collections_and_indexes
from hascheduler.mongo.state_updates import (
    BY_ID,
    AttemptTimes,
    claimed_fields,
    expiry,
    plain_terminal_update,
    source_states,
)
from hascheduler.mongo.stream.events import event_pipeline
from hascheduler.mongo.stream.source import MongoChangeSource
from hascheduler.mongo.work.starts import first_start
from hascheduler.ports import AttemptOutcome
from hascheduler.simulate.report import percentile
from tests.bench.cast import cpu_s, servers
from tests.bench.cost import Rate
from tests.bench.figures import Figures
from tests.bench.floor_at_rest import DATABASE, follow
from tests.bench.load import Load, loading

_PATIENCE_S = 30
_SETTLE_S = 5
_TAIL_S = 1
_STREAM_WAIT_MS = 1_000
_JOB_RETENTION_MS = 86_400_000
_PROCESSORS = ("processor-1", "processor-2")
_SLOTS = 32
"""Of a processor, as in the benchmark of the cost."""
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
_Write = tuple[dict[str, Any], dict[str, Any]]
"""What a job must be beside its id, and the update."""


@dataclass(frozen=True, slots=True)
class _Moves:
    """The moves of a job by one processor, each the first attempt's."""

    claim: _Write
    start: _Write
    finish: _Write


def _least_moves(processor: str) -> _Moves:
    def move(before: str, **fields: Any) -> _Write:
        return {"state": before}, {"$set": fields, "$inc": {"rev": 1}}

    return _Moves(
        claim=move("pending", state="dispatched", attempt=1, processor=processor),
        start=move("dispatched", state="running", started_at_ms=1),
        finish=move("running", state="succeeded", result=None),
    )


def _stored_job() -> dict[str, Any]:
    job = NewJob("", "noop", "target", {"number": 1}, "default", "default", "default", 5, "queued", {}, WallMs(1))
    return new_job_document(job)


def _stored_moves(processor: str) -> _Moves:
    at_ms = WallMs(time.time_ns() // 1_000_000)
    held = {"attempt": 1, "processor": processor}
    times = AttemptTimes(at_ms, at_ms)
    starting, started = first_start(at_ms)
    claimed = {"$set": claimed_fields(Dispatch("", 1, processor), at_ms), "$inc": {"rev": 1}}
    ended = plain_terminal_update(
        AttemptOutcome(JobState.SUCCEEDED), (1, processor), times, at_ms, kept_ms=_JOB_RETENTION_MS
    )
    running = {"state": {"$in": source_states(Move.FINISH)}, **times.filter(expiry(at_ms, _JOB_RETENTION_MS))}
    return _Moves(
        claim=({"state": {"$in": source_states(Move.CLAIM)}, "attempt": 0}, claimed),
        start=({**held, "state": {"$in": starting}}, started),
        finish=({**held, **running}, ended),
    )


class Form(StrEnum):
    """In which form a job's data is, and what becomes of its events."""

    LEAST = "least"
    AS_STORED = "as stored"
    MIRRORED = "mirrored"


@dataclass(frozen=True, slots=True)
class FloorPlan:
    """As many ``streams`` as there would be replicas, each with a rest before it asks for more."""

    form: Form
    streams: int
    rest_ms: int


_Jobs = AsyncCollection[dict[str, Any]]


def measure_floor(pace: Rate, seconds: int, plan: FloorPlan) -> Figures:
    """CPU in milliseconds a job, by process, on servers of its own: theirs, and this one's for all that speaks to
    them."""
    return run_in_foreground(_measure(pace, seconds, plan))


async def _measure(pace: Rate, seconds: int, plan: FloorPlan) -> Figures:
    async with AsyncExitStack() as opened:
        mongod = await opened.enter_async_context(start_mongod())
        rabbitmq = await opened.enter_async_context(start_rabbitmq())
        cast = {**servers(), "drivers": [psutil.Process()]}
        loops = await opened.enter_async_context(asyncio.TaskGroup())
        exchanges = await opened.enter_async_context(_exchanges(mongod.uri, rabbitmq.url, plan.form))
        running = [loops.create_task(exchanges.lead())]
        running += [loops.create_task(exchanges.work(each)) for each in exchanges.processors]
        for _ in range(plan.streams):
            client = await opened.enter_async_context(AsyncMongoClient[dict[str, Any]](mongod.uri))
            running.append(loops.create_task(_follow(client[DATABASE], plan)))
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


async def _follow(database: AsyncDatabase[dict[str, Any]], plan: FloorPlan) -> None:
    rest_s = plan.rest_ms / 1_000
    match plan.form:
        case Form.LEAST:
            await follow(database, rest_s)
        case Form.AS_STORED:
            await follow(database, rest_s, event_pipeline(), codec=None)
        case Form.MIRRORED:
            await _mirror(database, rest_s)


async def _mirror(database: AsyncDatabase[dict[str, Any]], rest_s: float) -> None:
    """The stream, the mirror and the core of a replica that follows, and nothing around them."""
    stream, mirror, core = await MongoChangeSource(database).open(None), Mirror(), Dispatcher()
    async for changes in stream.snapshot():
        mirror.fold(changes)
    while True:
        batch = await stream.next_batch(_STREAM_WAIT_MS)
        facts = [fact for fact in mirror.fold(batch.changes).facts if isinstance(fact, JobSeen | JobGone)]
        if facts:
            core.step(WallMs(time.time_ns() // 1_000_000), facts)
        await asyncio.sleep(rest_s)


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
class _Processor:
    moves: _Moves
    queue: str
    arrived: asyncio.Queue[aio_pika.abc.AbstractIncomingMessage]
    free: int = _SLOTS


@dataclass(slots=True)
class _Exchanges:
    jobs: _Jobs
    journal: _Jobs
    document: Mapping[str, Any]
    exchange: aio_pika.abc.AbstractExchange
    processors: Sequence[_Processor]

    arrived_at: dict[str, float] = field(default_factory=dict)
    starts_ms: list[int] = field(default_factory=list)
    """From the arrival of its submit, by job that has started."""
    finished: int = 0
    _pending: deque[str] = field(default_factory=deque)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _inserts: RequestBatcher[list[str], None] = field(init=False)

    def __post_init__(self) -> None:
        self._inserts = RequestBatcher(self._insert, "insert")

    async def submit(self, scope: Any, receive: Any, send: Any) -> None:
        """The ASGI application: a job, or a batch of them."""
        now, body, more = asyncio.get_running_loop().time(), b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        count = len(orjson.loads(body).get("jobs", "1"))
        ids = [str(ObjectId()) for _ in range(count)]
        await self._inserts.send(ids)
        for id in ids:
            self.arrived_at[id] = now
        self._pending += ids
        self._changed.set()
        answer = orjson.dumps({"results": [{"job": id} for id in ids]})
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(answer)).encode())]
        await send({"type": "http.response.start", "status": 201, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    async def _insert(self, requests: Sequence[list[str]]) -> Sequence[None]:
        documents = [{**self.document, "_id": id} for ids in requests for id in ids]
        if len(documents) == 1:
            await self.jobs.insert_one(documents[0])
        else:
            await self.jobs.insert_many(documents, ordered=False)
        return [None] * len(requests)

    async def lead(self) -> None:
        """Dispatch what was submitted to free slots, as far apart as a leader does."""
        loop, delay = asyncio.get_running_loop(), BatchDelay(PER_DECISION_MS, DELAY_MAX_MS)
        # The journal has a majority behind it: as in the system, what it says is applied without one.
        jobs = self.jobs.with_options(write_concern=WriteConcern(w=1))
        while True:
            await self._changed.wait()
            await asyncio.sleep(delay.wait_s(MonoMs(int(1_000 * loop.time()))))
            self._changed.clear()
            claimed = [(each, ids) for each in self.processors if (ids := self._claimed(each))]
            if not claimed:
                continue
            decisions = [["dispatch", id, 1, each.queue] for each, ids in claimed for id in ids]
            delay.passed(len(decisions), MonoMs(int(1_000 * loop.time())))
            async with asyncio.timeout(_PATIENCE_S):
                entry = {"shard": "default", "seq": decisions[0][1]}
                await self.journal.insert_one({"_id": entry, "decisions": decisions})
                await _move(jobs, [(ids, each.moves.claim) for each, ids in claimed])
                for each, ids in claimed:
                    body = " ".join(ids).encode()
                    message = aio_pika.Message(body, delivery_mode=aio_pika.DeliveryMode.NOT_PERSISTENT)
                    await self.exchange.publish(message, routing_key=each.queue)

    def _claimed(self, processor: _Processor) -> list[str]:
        ids = [self._pending.popleft() for _ in range(min(processor.free, len(self._pending)))]
        processor.free -= len(ids)
        return ids

    async def work(self, processor: _Processor) -> None:
        """Start and finish what has arrived."""
        while True:
            messages = [await processor.arrived.get()]
            while not processor.arrived.empty():
                messages.append(processor.arrived.get_nowait())
            async with asyncio.timeout(_PATIENCE_S):
                ids = " ".join(message.body.decode() for message in messages).split()
                for message in messages:
                    await message.ack()
                await self._start(ids, processor.moves.start)
                now = asyncio.get_running_loop().time()
                self.starts_ms += [round(1_000 * (now - self.arrived_at.pop(id))) for id in ids]
                await _move(self.jobs, [(ids, processor.moves.finish)])
            self.finished += len(ids)
            processor.free += len(ids)
            self._changed.set()

    async def _start(self, ids: list[str], start: _Write) -> None:
        if len(ids) > 1:
            await self.jobs.find({"_id": {"$in": ids}}).to_list(None)
            await _move(self.jobs, [(ids, start)])
            return
        which, update = start
        answer = await self.jobs.database.command(
            {
                "findAndModify": self.jobs.name,
                "query": {"_id": ids[0], **which},
                "update": update,
                "new": True,
                "hint": BY_ID,
                "writeConcern": {"w": "majority"},
            }
        )
        assert answer["value"] is not None


async def _move(jobs: _Jobs, moves: Sequence[tuple[list[str], _Write]]) -> None:
    writes = [UpdateMany({"_id": {"$in": ids}, **which}, update, hint=BY_ID) for ids, (which, update) in moves]
    answer = await jobs.bulk_write(writes, ordered=False)
    assert answer.matched_count == sum(len(ids) for ids, _ in moves)


@asynccontextmanager
async def _exchanges(mongodb_uri: str, amqp_url: str, form: Form) -> AsyncIterator[_Exchanges]:
    async with (
        AsyncMongoClient[dict[str, Any]](mongodb_uri) as client,
        await aio_pika.connect(amqp_url, timeout=_PATIENCE_S) as sender,
        await aio_pika.connect(amqp_url, timeout=_PATIENCE_S) as receiver,
    ):
        database = client.get_database(
            DATABASE, read_concern=ReadConcern("majority"), write_concern=WriteConcern(w="majority")
        )
        is_least = form is Form.LEAST
        if not is_least:
            await ensure_collections_and_indexes(database)
        document, moves_of = (_JOB, _least_moves) if is_least else (_stored_job(), _stored_moves)
        sending = await sender.channel(publisher_confirms=True)
        receiving = await receiver.channel()
        await receiving.set_qos(prefetch_count=1_000)
        processors = []
        for name in _PROCESSORS:
            queue = await receiving.declare_queue(exclusive=True)
            arrived: asyncio.Queue[aio_pika.abc.AbstractIncomingMessage] = asyncio.Queue()
            await queue.consume(arrived.put)
            processors.append(_Processor(moves_of(name), queue.name, arrived))
        yield _Exchanges(database["jobs"], database["journal"], document, sending.default_exchange, processors)
