"""A system for one benchmark, with fresh servers: who leads it, what each process uses, and schedules for it."""

import asyncio
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import psutil
from pymongo import AsyncMongoClient
from pymongo.write_concern import WriteConcern
from rich.console import Console

from hascheduler.client import AsyncScheduler
from hascheduler.clock import SystemClock
from hascheduler.demo.evidence import Expectation
from hascheduler.embedded.children import run_in_foreground
from hascheduler.embedded.stack import Stack, StackPlan, open_stack
from hascheduler.errors import WorldError
from hascheduler.model.job import LIVE
from hascheduler.model.values.instants import format_instant

DATABASE = "hascheduler-bench"
HANDLERS = ("tests.bench.handlers", "hascheduler.handlers.log", "hascheduler.handlers.sleep")
FOLDER = Path(".run/bench")
_DRAIN_S = 300
_BATCH = 5_000

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Crew:
    replicas: int
    processors: int
    slots: int = 32
    """Of each processor."""
    shards: int = 1

    def __str__(self) -> str:
        return f"{_many(self.replicas, 'replica')}, {_many(self.processors, 'processor')}"


def on_stack(
    name: str, crew: Crew, measure: Callable[[Stack], Awaitable[Found]], settings: Mapping[str, str] | None = None
) -> Found:
    """What ``measure`` finds on a system that is taken down afterwards. ``settings`` go to its processes."""
    console = Console(stderr=True)

    async def run() -> Found:
        folder = FOLDER / name
        shutil.rmtree(folder, ignore_errors=True)  # the effects of an earlier run
        plan = StackPlan(
            folder,
            crew.replicas,
            crew.processors,
            slots=crew.slots,
            settings={"HASCHEDULER_DATABASE": DATABASE, **(settings or {})},
            handlers=HANDLERS,
            shards=crew.shards,
        )
        async with open_stack(plan, console.print) as stack:
            return await measure(stack)

    return run_in_foreground(run())


@asynccontextmanager
async def open_database(stack: Stack) -> AsyncIterator[Any]:
    """Open the database of a stack, beside its processes."""
    async with AsyncMongoClient[dict[str, Any]](stack.mongodb_uri) as client:
        yield client[DATABASE]


async def drained(jobs: Any) -> float:
    """Return how many seconds it takes until no job of that collection is live: what a load leaves behind is not the
    next one's. Raise `WorldError` after some minutes."""
    began = time.monotonic()
    live = {"state": {"$in": [state.value for state in LIVE]}}
    try:
        async with asyncio.timeout(_DRAIN_S):
            while await jobs.count_documents(live, limit=1):  # noqa: ASYNC110
                await asyncio.sleep(0.25)
    except TimeoutError:
        raise WorldError(f"jobs are left {_DRAIN_S} s after the load has ended") from None
    return round(time.monotonic() - began, 1)


async def waits_ms(jobs: Any, which: Mapping[str, Any]) -> list[int]:
    """Return how long those jobs of that collection waited, from submission to first start, by the stored times."""
    started = {**which, "first_started_at_ms": {"$ne": None}}
    times = ["submitted_at_ms", "first_started_at_ms"]
    return [job["first_started_at_ms"] - job["submitted_at_ms"] async for job in jobs.find(started, times)]


async def write_documents(collection: Any, documents: Iterable[Mapping[str, Any]]) -> None:
    """Insert them, and wait until they are on disk: a database that has so many is measured, not one that has just been
    given them."""
    written, left = collection.with_options(write_concern=WriteConcern(w=1)), iter(documents)
    while batch := list(islice(left, _BATCH)):
        await written.insert_many(batch, ordered=False)
    await collection.database.client.admin.command("fsync")


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


# What each process uses

Cast = Mapping[str, Sequence[psutil.Process]]
_NAMES = {"mongod": "mongod", "beam.smp": "rabbitmq"}
_PATIENCE_S = 30


async def leading(stack: Stack, database: Any) -> tuple[str, int]:
    """Return the name of the replica that holds the lease, once one does, and its term."""
    async with asyncio.timeout(_PATIENCE_S):
        while True:
            lease = await database["leases"].find_one({"_id": "default"})
            name = lease["holder"].rpartition(".")[0] if lease else ""
            if lease and name in stack.replicas:
                return name, int(lease["term"])
            await asyncio.sleep(0.01)


def cast_of(stack: Stack, leader: str) -> dict[str, list[psutil.Process]]:
    """By kind; servers only where they were started here."""
    cast: dict[str, list[psutil.Process]] = {
        "leader": [psutil.Process(stack.replicas[leader].pid)],
        "follower": [psutil.Process(child.pid) for name, child in stack.replicas.items() if name != leader],
        "processor": [psutil.Process(child.pid) for child in stack.processors.values()],
    }
    return cast | servers()


def servers() -> dict[str, list[psutil.Process]]:
    """This process's own, by kind."""
    found: dict[str, list[psutil.Process]] = {}
    for process in psutil.Process().children(recursive=True):
        kind = _NAMES.get(process.name())
        if kind is not None:
            found.setdefault(kind, []).append(process)
    return found


def cpu_s(cast: Cast) -> dict[str, float]:
    """What each kind has used so far, of all its processes together."""
    return {kind: sum(process_cpu_s(process) for process in processes) for kind, processes in cast.items()}


def resident_mb(process: psutil.Process) -> float:
    return round(process.memory_info().rss / 2**20, 1)


def own_mb(process: psutil.Process) -> float:
    """What would be free without it: no pages that it shares with others."""
    return round(process.memory_full_info().uss / 2**20, 1)


def process_cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


# Schedules that fire at a steady rate

_IN_FLIGHT = 32


def interval_bodies(
    count: int, prefix: str = "bench", *, definition: str = "noop", tenant: str = "default"
) -> list[dict[str, Any]]:
    """Return schedules that fire every second, evenly spread over it."""
    begin_ms = SystemClock().wall_ms()
    bodies = []
    for number in range(count):
        anchor = format_instant(begin_ms + 1_000 * number // count)
        trigger = {"type": "interval", "every": "1s", "anchor": anchor}
        job = {"definition": definition, "tenant": tenant}
        bodies.append({"name": f"{prefix}-{number}", "trigger": trigger, "job": job})
    return bodies


async def make_schedules(urls: Sequence[str], bodies: Sequence[Mapping[str, Any]]) -> list[Expectation]:
    """In the order of ``bodies``."""
    made: dict[int, Expectation] = {}
    async with AsyncExitStack() as stack:
        schedulers = [await stack.enter_async_context(AsyncScheduler(url)) for url in urls]

        async def make(numbers: Iterator[int]) -> None:
            for number in numbers:
                schedules = schedulers[number % len(schedulers)].schedules
                made[number] = Expectation.of(await schedules.create_document(bodies[number]))

        left = iter(range(len(bodies)))
        async with asyncio.TaskGroup() as tasks:
            for _ in range(_IN_FLIGHT):
                tasks.create_task(make(left))
    return [made[number] for number in range(len(bodies))]
