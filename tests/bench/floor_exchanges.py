"""The exchanges of a job's way with this protocol, made by one process that leads, works and fires for all.

`Exchanges` has a loop that leads and one for each of two processors. Jobs arrive over HTTP (`Exchanges.submit`), or are
fired by schedules that are due (`Exchanges.fire`). What waits at the same moment shares an exchange. Of what it writes,
`Form` says how much: the least that the protocol needs, or the documents, indexes and updates of the system.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import aio_pika
import orjson
from bson import ObjectId
from pymongo import AsyncMongoClient, UpdateMany
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.read_concern import ReadConcern
from pymongo.write_concern import WriteConcern

from hascheduler.daemon.loop.batch_delay import PER_DECISION_MS, BatchDelay
from hascheduler.dispatch.config import DispatchConfig
from hascheduler.dispatch.decisions import Dispatch
from hascheduler.model.documents.job import new_job_document
from hascheduler.model.documents.schedule import NewSchedule, new_schedule_document
from hascheduler.model.job import JobState, Move, NewJob
from hascheduler.model.schedule import JobTemplate
from hascheduler.model.trigger import Once, Trigger
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
from hascheduler.mongo.work.starts import first_start
from hascheduler.ports import AttemptOutcome
from tests.bench.floor_at_rest import DATABASE

_PATIENCE_S = 30
_JOB_RETENTION_MS = 86_400_000
_PROCESSORS = ("processor-1", "processor-2")
_FIRES_MAX = DispatchConfig().fires_max
_ONE = WriteConcern(w=1)
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
_NOMINAL_MS = 1
_SCHEDULE: dict[str, Any] = {"cursor_ms": 0, "job": {"definition": "noop"}}
_Write = tuple[dict[str, Any], dict[str, Any]]
"""What a job must be beside its id, and the update."""


class Form(StrEnum):
    """In which form a job's data is, and what becomes of its events."""

    LEAST = "least"
    AS_STORED = "as stored"
    MIRRORED = "mirrored"


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


def _stored_schedule() -> dict[str, Any]:
    template = JobTemplate("noop", None, "default", "default", "default", 5, "queued")
    once = Trigger(Once(WallMs(_NOMINAL_MS)))
    return new_schedule_document(NewSchedule("", once, template, {"number": 1}, {}, WallMs(0)))


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


_Documents = AsyncCollection[dict[str, Any]]


@dataclass(slots=True)
class Processor:
    moves: _Moves
    queue: str
    arrived: asyncio.Queue[aio_pika.abc.AbstractIncomingMessage]
    free: int
    """Of its slots."""


@dataclass(slots=True)
class Exchanges:
    """``document`` is a job's, ``schedule`` a schedule's, both without an id. Busy, it waits for
    ``batch_delay_max_ms`` at most, as a leader does."""

    jobs: _Documents
    journal: _Documents
    schedules: _Documents
    document: Mapping[str, Any]
    schedule: Mapping[str, Any]
    exchange: aio_pika.abc.AbstractExchange
    processors: Sequence[Processor]
    batch_delay_max_ms: int

    arrived_at: dict[str, float] = field(default_factory=dict)
    starts_ms: list[int] = field(default_factory=list)
    """From the arrival of its submit, or the time it was due, of each job that has started."""
    finished: int = 0
    _due: deque[str] = field(default_factory=deque)
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

    async def make_schedules(self, count: int) -> list[str]:
        """Their names."""
        names = [f"schedule-{number:06d}" for number in range(count)]
        for first in range(0, count, 1_000):
            await self.schedules.insert_many([{**self.schedule, "_id": name} for name in names[first : first + 1_000]])
        return names

    def fire(self, schedules: Sequence[str]) -> None:
        """Those are due now."""
        self.arrived_at |= dict.fromkeys(map(_fired_id, schedules), asyncio.get_running_loop().time())
        self._due += schedules
        self._changed.set()

    async def lead(self) -> None:
        """Fire what is due, and dispatch to free slots, as far apart as a leader does."""
        loop, delay = asyncio.get_running_loop(), BatchDelay(PER_DECISION_MS, self.batch_delay_max_ms)
        while True:
            if not self._due:
                await self._changed.wait()
            await asyncio.sleep(delay.wait_s(MonoMs(int(1_000 * loop.time()))))
            self._changed.clear()
            fired = [self._due.popleft() for _ in range(min(len(self._due), _FIRES_MAX))]
            self._pending += map(_fired_id, fired)
            claimed = [(each, ids) for each in self.processors if (ids := self._claimed(each))]
            if fired or claimed:
                delay.passed(len(fired) + sum(len(ids) for _, ids in claimed), MonoMs(int(1_000 * loop.time())))
                async with asyncio.timeout(_PATIENCE_S):
                    await self._carry_out(fired, claimed)

    async def _carry_out(self, fired: Sequence[str], claimed: Sequence[tuple[Processor, list[str]]]) -> None:
        decisions: list[list[Any]] = [["fire", name, _NOMINAL_MS] for name in fired]
        decisions += [["dispatch", id, 1, each.queue] for each, ids in claimed for id in ids]
        await self.journal.insert_one({"_id": {"shard": "default", "seq": decisions[0][1]}, "decisions": decisions})
        # The journal has a majority behind it: as in the system, what it says is applied without one.
        jobs = self.jobs.with_options(write_concern=_ONE)
        new = {_fired_id(name): {**self.document, "_id": _fired_id(name)} for name in fired}
        for each, ids in claimed:
            for id in ids:
                if id in new:
                    new[id] |= each.moves.claim[1]["$set"]
        if fired:
            # As in the system: an edit since the decision is noticed.
            await self.schedules.find({"_id": {"$in": list(fired)}}, ["job", "cursor_ms"]).to_list(None)
            await jobs.insert_many(list(new.values()), ordered=False)
        others = [(kept, each.moves.claim) for each, ids in claimed if (kept := [id for id in ids if id not in new])]
        async with asyncio.TaskGroup() as writing:
            if fired:
                cursors = UpdateMany(
                    {"_id": {"$in": list(fired)}, "cursor_ms": 0}, {"$set": {"cursor_ms": _NOMINAL_MS}}
                )
                writing.create_task(self.schedules.with_options(write_concern=_ONE).bulk_write([cursors]))
            if others:
                writing.create_task(_move(jobs, others))
        for each, ids in claimed:
            message = aio_pika.Message(" ".join(ids).encode(), delivery_mode=aio_pika.DeliveryMode.NOT_PERSISTENT)
            await self.exchange.publish(message, routing_key=each.queue)

    def _claimed(self, processor: Processor) -> list[str]:
        ids = [self._pending.popleft() for _ in range(min(processor.free, len(self._pending)))]
        processor.free -= len(ids)
        return ids

    async def work(self, processor: Processor) -> None:
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


async def _move(jobs: _Documents, moves: Sequence[tuple[list[str], _Write]]) -> None:
    writes = [UpdateMany({"_id": {"$in": ids}, **which}, update, hint=BY_ID) for ids, (which, update) in moves]
    answer = await jobs.bulk_write(writes, ordered=False)
    assert answer.matched_count == sum(len(ids) for ids, _ in moves)


def _fired_id(schedule: str) -> str:
    return f"fire:{schedule}:{_NOMINAL_MS}"


@asynccontextmanager
async def open_exchanges(
    mongodb_uri: str, amqp_url: str, form: Form, slots: int, batch_delay_max_ms: int
) -> AsyncIterator[Exchanges]:
    """``slots`` of each processor."""
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
        job, schedule = (_JOB, _SCHEDULE) if is_least else (_stored_job(), _stored_schedule())
        moves_of = _least_moves if is_least else _stored_moves
        sending = await sender.channel(publisher_confirms=True)
        receiving = await receiver.channel()
        await receiving.set_qos(prefetch_count=1_000)
        processors = []
        for name in _PROCESSORS:
            queue = await receiving.declare_queue(exclusive=True)
            arrived: asyncio.Queue[aio_pika.abc.AbstractIncomingMessage] = asyncio.Queue()
            await queue.consume(arrived.put)
            processors.append(Processor(moves_of(name), queue.name, arrived, slots))
        yield Exchanges(
            database["jobs"],
            database["journal"],
            database["schedules"],
            job,
            schedule,
            sending.default_exchange,
            processors,
            batch_delay_max_ms,
        )
