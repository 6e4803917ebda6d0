"""Several shards in memory, each with a leader that knows only the simplest of its duties, and processors of all.

Time is virtual: `played` runs a story to its end, however long it says that things take.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from contextlib import closing
from itertools import count
from typing import Any

from hascheduler.model.collection import Collection as Stored
from hascheduler.model.documents.job import new_job_document
from hascheduler.model.documents.processor import decode_processor
from hascheduler.model.job import JobState
from hascheduler.model.message import Message, MessageKind
from hascheduler.model.processor import ProcessorRef
from hascheduler.model.resources import NO_RESOURCES, Resources
from hascheduler.processor import Handlers, Processor, ProcessorConfig
from hascheduler.processor.attempts import ProcessSlots
from hascheduler.shards.processors import ManyShardProcessor
from hascheduler.testing.cluster import VirtualClock
from hascheduler.testing.memory.database import Document, MemoryConnection, MemoryDatabase
from hascheduler.testing.memory.messages import MemoryBroker, MemoryDeliveries
from hascheduler.testing.memory.work import MemoryWorkStore
from hascheduler.testing.virtual_loop import VirtualLoop
from tests.factories import NOW, make_job

LIMIT_S = 3_600
_TURN_S = 0.05


class Shard:
    """Its leader fills what slots and gpus are offered, and takes back what a processor had that is gone."""

    def __init__(self, name: str, broker: MemoryBroker) -> None:
        self.name = name
        self.database = MemoryDatabase()
        self.broker = broker
        self._ids = count(1)

    def submit(self, count: int = 1, definition: str = "log", **more: Any) -> list[str]:
        ids = [f"{self.name}-{next(self._ids)}" for _ in range(count)]
        for id in ids:
            self.database.insert(Stored.JOBS, new_job_document(make_job(id, definition=definition, **more)))
        return ids

    def job(self, id: str) -> Document:
        found = self.database.find(Stored.JOBS, id)
        assert found is not None
        return found

    def jobs(self, *states: JobState) -> list[Document]:
        return [job for job in self.database.documents(Stored.JOBS) if job["state"] in states]

    @property
    def processors(self) -> list[ProcessorRef]:
        return [decode_processor(each["_id"], each) for each in self.database.documents(Stored.PROCESSORS)]

    async def lead(self) -> None:
        while True:
            await asyncio.sleep(_TURN_S)
            known = {each.id: each for each in self.processors}
            held = self.jobs(JobState.DISPATCHED, JobState.RUNNING)
            for job in held:
                if job["processor"] not in known:
                    self._set(job, state=JobState.PENDING.value, processor=None)
            for processor in known.values():
                its = [job for job in held if job["processor"] == processor.id]
                free = processor.slots - len(its)
                gpus = dict(processor.resources).get("gpu", 0) - sum(job["definition"] == "gpu" for job in its)
                for job in self.jobs(JobState.PENDING):
                    needs = job["definition"] == "gpu"
                    takes = processor.supports(job["definition"]) and not processor.draining
                    if takes and free > 0 and gpus >= needs:
                        self._dispatch(job, processor.id)
                        free, gpus = free - 1, gpus - needs

    def _dispatch(self, job: Document, processor_id: str) -> None:
        attempt = job["attempt"] + 1
        self._set(job, state=JobState.DISPATCHED.value, attempt=attempt, processor=processor_id)
        self.broker.publish(processor_id, Message(MessageKind.RUN, job["_id"], attempt))

    def _set(self, job: Document, **fields: Any) -> None:
        self.database.update(Stored.JOBS, job, {**fields, "rev": job["rev"] + 1})


class Served:
    """One processor, with a connection of its own to each shard."""

    def __init__(
        self,
        world: "World",
        handlers: Handlers,
        *,
        name: str = "p",
        slots: int = 4,
        resources: Resources = NO_RESOURCES,
    ) -> None:
        self.connections = [MemoryConnection(shard.database) for shard in world.shards]
        self.greetings: list[Collection[str]] = []

        def begin(id: str, shard: int, offered: int, resources: Resources, process: ProcessSlots) -> Processor:
            config = ProcessorConfig(
                id=id,
                name=name,
                scheduler=world.shards[shard].name,
                slots=slots,
                heartbeat_interval_ms=1_000,
                heartbeat_deadline_ms=4_000,
                drain_grace_ms=5_000,
                resources=resources,
                offered_first=offered,
            )
            work = MemoryWorkStore(self.connections[shard], 600_000)
            deliveries = MemoryDeliveries(world.broker, id, slots)
            return Processor(handlers, work, deliveries, world.clock, config, slots=process)

        async def servers(shard: int) -> int | None:
            return len(world.shards[shard].processors)

        self.processor = ManyShardProcessor(
            id=f"{name}.1",
            shards=[shard.name for shard in world.shards],
            slots=slots,
            resources=resources,
            begin=begin,
            servers=servers,
            clock=world.clock,
            greet=self.greetings.append,
        )
        self.task = asyncio.get_running_loop().create_task(self.processor.run(), name=name)

    async def drained(self) -> None:
        self.processor.drain()
        await asyncio.wait_for(self.task, LIMIT_S)


class World:
    """Owner of the tasks of its leaders and processors."""

    def __init__(self, loop: VirtualLoop, names: str) -> None:
        self.clock = VirtualClock(loop, NOW)
        self.broker = MemoryBroker()
        self.shards = [Shard(name, self.broker) for name in names]
        self._tasks = [loop.create_task(shard.lead(), name=f"leader of {shard.name}") for shard in self.shards]

    def start(self, handlers: Handlers, **how: Any) -> Served:
        started = Served(self, handlers, **how)
        self._tasks.append(started.task)
        return started

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(LIMIT_S):
            while not condition():  # noqa: ASYNC110  # what changes knows nothing of those who wait
                await asyncio.sleep(0.01)

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        for outcome in await asyncio.gather(*self._tasks, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome


def played(story: Callable[[World], Awaitable[None]], names: str = "ab") -> None:
    """The story of shards by these names, a letter each, to its end."""

    async def tell() -> None:
        world = World(loop, names)
        try:
            await story(world)
        finally:
            await world.end()

    with closing(VirtualLoop()) as loop:
        loop.run_until_complete(tell())
