"""A system for one benchmark: fresh servers, replicas and processors, and nothing of the one before."""

import asyncio
import shutil
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from pymongo.write_concern import WriteConcern
from rich.console import Console

from hascheduler.embedded.children import run_in_foreground
from hascheduler.embedded.stack import Stack, StackPlan, open_stack
from hascheduler.errors import WorldError
from hascheduler.model.job import LIVE

DATABASE = "hascheduler-bench"
HANDLERS = ("tests.bench.handlers", "processors.log", "processors.sleep")
FOLDER = Path(".run/bench")
_DRAIN_S = 300
_BATCH = 5_000

BATCH_DELAY_MAX_MS = 20
"""The default of the setting."""

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


def batch_delay_setting(max_ms: int) -> dict[str, str]:
    """Empty for the default."""
    return {} if max_ms == BATCH_DELAY_MAX_MS else {"HASCHEDULER_BATCH_DELAY_MAX": f"{max_ms}ms"}


def with_batch_delay(case: str, max_ms: int) -> str:
    return case if max_ms == BATCH_DELAY_MAX_MS else f"{case}, batch delay at most {max_ms} ms"


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
