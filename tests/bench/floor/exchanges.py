"""A job's way with this protocol once it is stored: `Leader` fires what is due and dispatches, `Worker` starts and
finishes.

Every write waits for a majority, but for those that the journal holds already; a message goes through the broker and is
acknowledged. What waits at the same moment shares an exchange, dispatches as far apart as the leader's of the system.
Who tells the leader what is pending and what has ended is the caller's: a call in one process, the change stream
between processes.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import aio_pika
from pymongo import AsyncMongoClient, UpdateMany
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.asynchronous.database import AsyncDatabase
from pymongo.read_concern import ReadConcern
from pymongo.write_concern import WriteConcern

from hascheduler.daemon.loop.batch_delay import BatchDelay
from hascheduler.dispatch.config import DispatchConfig
from hascheduler.model.values.instants import MonoMs
from hascheduler.mongo.schema.indexes import ensure_collections_and_indexes
from hascheduler.mongo.state_updates import BY_ID
from tests.bench.floor.forms import (
    NOMINAL_MS,
    Form,
    Moves,
    Write,
    Written,
    fired_id,
    schedule_names,
)

DATABASE = "hascheduler-floor"
PATIENCE_S = 30
Database = AsyncDatabase[dict[str, Any]]
Messages = asyncio.Queue[aio_pika.abc.AbstractIncomingMessage]
_Collection = AsyncCollection[dict[str, Any]]
_FIRES_MAX = DispatchConfig().fires_max
_UNACKNOWLEDGED_MAX = 1_000
_INSERTED_MAX = 1_000
_ONE = WriteConcern(w=1)


@dataclass(slots=True)
class _Slots:
    claim: Write
    free: int


class Leader:
    """Fires what is due, and dispatches what is pending to free slots, ``slots`` of each processor."""

    def __init__(
        self,
        database: Database,
        written: Written,
        slots: int,
        sending: aio_pika.abc.AbstractExchange,
        delay: BatchDelay,
    ) -> None:
        # The journal has a majority behind it: as in the system, what it says is applied without one.
        self._jobs = database["jobs"].with_options(write_concern=_ONE)
        self._schedules = database["schedules"].with_options(write_concern=_ONE)
        self._journal = database["journal"]
        self._job = written.job
        self._slots = {name: _Slots(moves.claim, slots) for name, moves in written.moves.items()}
        self._sending = sending
        self._delay = delay
        self._due: deque[str] = deque()
        self._pending: deque[str] = deque()
        self._changed = asyncio.Event()

    def fire(self, schedules: Sequence[str]) -> None:
        """Those are due now."""
        self._due += schedules
        self._changed.set()

    def add(self, ids: Sequence[str]) -> None:
        """Those are pending now."""
        self._pending += ids
        self._changed.set()

    def free(self, processor: str, slots: int) -> None:
        self._slots[processor].free += slots
        self._changed.set()

    async def run(self, claimed: Callable[[str, Sequence[str]], None] = lambda _processor, _ids: None) -> None:
        """``claimed`` has the processor and the jobs of each dispatch, before they are written."""
        while True:
            if not self._due:
                await self._changed.wait()
            await asyncio.sleep(self._delay.wait_s(mono_ms()))
            self._changed.clear()
            fired = [self._due.popleft() for _ in range(min(len(self._due), _FIRES_MAX))]
            self._pending += map(fired_id, fired)
            chosen = {name: ids for name in self._slots if (ids := self._chosen(name))}
            for name, ids in chosen.items():
                claimed(name, ids)
            if fired or chosen:
                self._delay.passed(len(fired) + sum(map(len, chosen.values())), mono_ms())
                async with asyncio.timeout(PATIENCE_S):
                    await self._carry_out(fired, chosen)

    def _chosen(self, processor: str) -> list[str]:
        slots = self._slots[processor]
        ids = [self._pending.popleft() for _ in range(min(slots.free, len(self._pending)))]
        slots.free -= len(ids)
        return ids

    async def _carry_out(self, fired: Sequence[str], chosen: Mapping[str, Sequence[str]]) -> None:
        decisions: list[list[Any]] = [["fire", name, NOMINAL_MS] for name in fired]
        decisions += [["dispatch", id, 1, name] for name, ids in chosen.items() for id in ids]
        await self._journal.insert_one({"_id": {"shard": "default", "seq": decisions[0][1]}, "decisions": decisions})
        new = {fired_id(name): {**self._job, "_id": fired_id(name)} for name in fired}
        others: list[tuple[list[str], Write]] = []
        for name, ids in chosen.items():
            claim = self._slots[name].claim
            for id in ids:
                if id in new:
                    new[id] |= claim[1]["$set"]
            if kept := [id for id in ids if id not in new]:
                others.append((kept, claim))
        if fired:
            # As in the system: an edit since the decision is noticed.
            await self._schedules.find({"_id": {"$in": list(fired)}}, ["job", "cursor_ms"]).to_list(None)
            await self._jobs.insert_many(list(new.values()), ordered=False)
        async with asyncio.TaskGroup() as writing:
            if fired:
                which = {"_id": {"$in": list(fired)}, "cursor_ms": 0}
                cursors = UpdateMany(which, {"$set": {"cursor_ms": NOMINAL_MS}})
                writing.create_task(self._schedules.bulk_write([cursors]))
            if others:
                writing.create_task(_move(self._jobs, others))
        for name, ids in chosen.items():
            message = aio_pika.Message(" ".join(ids).encode(), delivery_mode=aio_pika.DeliveryMode.NOT_PERSISTENT)
            await self._sending.publish(message, routing_key=name)


class Start(NamedTuple):
    """``at_ms`` is the instant, in Unix milliseconds."""

    job: str
    at_ms: int


class Worker:
    """One processor: starts and finishes what has ``arrived``; ``freed`` has how many slots of it are free again."""

    def __init__(
        self, database: Database, moves: Moves, arrived: Messages, freed: Callable[[int], None] = lambda _slots: None
    ) -> None:
        self._jobs = database["jobs"]
        self._moves = moves
        self._arrived = arrived
        self._freed = freed
        self.ended = 0
        self.starts: list[Start] = []

    async def run(self) -> None:
        while True:
            messages = [await self._arrived.get()]
            while not self._arrived.empty():
                messages.append(self._arrived.get_nowait())
            async with asyncio.timeout(PATIENCE_S):
                ids = " ".join(message.body.decode() for message in messages).split()
                for message in messages:
                    await message.ack()
                await self._start(ids)
                now_ms = wall_ms()
                self.starts += [Start(id, now_ms) for id in ids]
                await _move(self._jobs, [(ids, self._moves.finish)])
            self.ended += len(ids)
            self._freed(len(ids))

    async def _start(self, ids: list[str]) -> None:
        if len(ids) > 1:
            await self._jobs.find({"_id": {"$in": ids}}).to_list(None)
            await _move(self._jobs, [(ids, self._moves.start)])
            return
        which, update = self._moves.start
        answer = await self._jobs.database.command(
            {
                "findAndModify": self._jobs.name,
                "query": {"_id": ids[0], **which},
                "update": update,
                "new": True,
                "hint": BY_ID,
                "writeConcern": {"w": "majority"},
            }
        )
        assert answer["value"] is not None


async def _move(jobs: _Collection, moves: Sequence[tuple[list[str], Write]]) -> None:
    writes = [UpdateMany({"_id": {"$in": ids}, **which}, update, hint=BY_ID) for ids, (which, update) in moves]
    answer = await jobs.bulk_write(writes, ordered=False)
    assert answer.matched_count == sum(len(ids) for ids, _ in moves)


@asynccontextmanager
async def open_database(mongodb_uri: str) -> AsyncIterator[Database]:
    """With a client of its own; its writes wait for a majority."""
    async with AsyncMongoClient[dict[str, Any]](mongodb_uri) as client:
        yield client.get_database(
            DATABASE, read_concern=ReadConcern("majority"), write_concern=WriteConcern(w="majority")
        )


async def prepare(database: Database, form: Form, schedules: int) -> None:
    """Its indexes, where this form has any, and so many schedules."""
    if form is not Form.LEAST:
        await ensure_collections_and_indexes(database)
    document, names = Written.of(form, wall_ms()).schedule, schedule_names(schedules)
    for first in range(0, len(names), _INSERTED_MAX):
        some = names[first : first + _INSERTED_MAX]
        await database["schedules"].insert_many([{**document, "_id": name} for name in some])


@asynccontextmanager
async def open_sending(amqp_url: str) -> AsyncIterator[aio_pika.abc.AbstractExchange]:
    """Where messages to processors go."""
    async with await aio_pika.connect(amqp_url, timeout=PATIENCE_S) as connection:
        channel = await connection.channel(publisher_confirms=True)
        yield channel.default_exchange


@asynccontextmanager
async def open_receiving(amqp_url: str, *processors: str) -> AsyncIterator[list[Messages]]:
    """What arrives for each of them."""
    async with await aio_pika.connect(amqp_url, timeout=PATIENCE_S) as connection:
        channel = await connection.channel()
        await channel.set_qos(prefetch_count=_UNACKNOWLEDGED_MAX)
        arriving: list[Messages] = []
        for name in processors:
            queue, arrived = await channel.declare_queue(name, exclusive=True), Messages()
            await queue.consume(arrived.put)
            arriving.append(arrived)
        yield arriving


def wall_ms() -> int:
    return time.time_ns() // 1_000_000


def mono_ms() -> MonoMs:
    return MonoMs(time.monotonic_ns() // 1_000_000)
