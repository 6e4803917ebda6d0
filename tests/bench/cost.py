"""Measure what a job costs, by load: CPU of each kind of process, and MongoDB's operations.

The load is submits over HTTP of jobs that do nothing, from a process of its own, one by one or in batches. CPU is the
kernel's account of each process, all of a kind together, without what the load costs itself. Operations and bytes are
MongoDB's own counters (``serverStatus``) and hold what replicas, processors and the API do there. All of it, what a
system spends at rest included (`tests.bench.idle`), is divided by the jobs that started meanwhile, by their effects.
*At once* are jobs of schedules that are all due at one instant, from a few seconds before it to the last start: how the
last ones end is not in it.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import psutil
from pymongo import AsyncMongoClient

from hascheduler.demo.evidence import Effects
from hascheduler.embedded.stack import Stack
from hascheduler.errors import InvalidInput, WorldError
from tests.bench.cast import Cast, cast_of, cpu_s, leading
from tests.bench.figures import Figures
from tests.bench.load import Load, loading
from tests.bench.stacks import drained
from tests.bench.storm import make_storm, storm_over

OPERATIONS = ("insert", "query", "update", "delete", "getmore", "command")
_LOAD = "load"
_SETTLE_S = 10
_WARM_UP_S = 4
_TAIL_S = 1


@dataclass(frozen=True, slots=True)
class Rate:
    """So many jobs a second, ``batch`` of them in a request."""

    per_second: int
    batch: int = 1

    @property
    def label(self) -> str:
        one = f"{self.per_second:,} jobs/s"
        return one if self.batch == 1 else f"{one} in batches of {self.batch:,}"


@dataclass(frozen=True, slots=True)
class Counts:
    """What was counted until the instant ``at``: seconds of CPU by kind of process, MongoDB's operations, and jobs that
    have started."""

    at: float
    cpu_s: Mapping[str, float]
    operations: Mapping[str, int]
    bytes_in: int
    bytes_out: int
    jobs: int


def read_loads(text: str) -> list[Rate]:
    """Read ``50,1000/500``: 50 jobs a second one by one, then 1,000 in batches of 500. Else raise `InvalidInput`."""
    loads = []
    for part in text.split(","):
        numbers = [number.strip() for number in part.split("/")]
        if len(numbers) > 2 or not all(number.isdecimal() and int(number) for number in numbers):
            raise InvalidInput(
                ("--loads",), f"{part[:64]!r}", "jobs a second, or jobs a second/jobs a request, with commas between"
            )
        loads.append(Rate(*map(int, numbers)))
    return loads


async def measure_cost(
    stack: Stack, database: str, loads: Sequence[Rate], seconds: int, *, at_once: int = 0
) -> dict[str, Figures]:
    """Measure under each load, each after the jobs of the one before have ended, then with so many schedules
    ``at_once``."""
    found: dict[str, Figures] = {}
    async with AsyncMongoClient[dict[str, Any]](stack.mongodb_uri) as client:
        bench = _Bench(stack, client, database)
        await asyncio.sleep(_SETTLE_S)
        for rate in loads:
            found[rate.label] = await bench.under(rate, seconds)
            await drained(client[database]["jobs"])
        if at_once:
            found[f"{at_once:,} at once"] = await bench.at_once(at_once)
    return found


def figures_of(before: Counts, after: Counts) -> Figures:
    """Return what was spent in between: per second, and per job if any has started."""
    seconds, jobs = after.at - before.at, after.jobs - before.jobs
    spent_s = {kind: now_s - before.cpu_s[kind] for kind, now_s in after.cpu_s.items()}
    operations = {name: count - before.operations[name] for name, count in after.operations.items()}
    figures: dict[str, Any] = {
        "jobs_per_s": round(jobs / seconds, 1),
        **{f"{kind}_cpu_percent": round(100 * kind_s / seconds, 2) for kind, kind_s in spent_s.items()},
        "mongodb_ops_per_s": round(sum(operations.values()) / seconds, 1),
    }
    if not jobs:
        return figures
    whole_s = sum(kind_s for kind, kind_s in spent_s.items() if kind != _LOAD)
    return figures | {
        "cpu_ms_per_job": round(1_000 * whole_s / jobs, 3),
        **{f"{kind}_cpu_ms_per_job": round(1_000 * kind_s / jobs, 3) for kind, kind_s in spent_s.items()},
        "mongodb_ops_per_job": round(sum(operations.values()) / jobs, 3),
        **{f"mongodb_{name}_per_job": round(count / jobs, 3) for name, count in operations.items()},
        "mongodb_bytes_in_per_job": round((after.bytes_in - before.bytes_in) / jobs),
        "mongodb_bytes_out_per_job": round((after.bytes_out - before.bytes_out) / jobs),
    }


class _Bench:
    def __init__(self, stack: Stack, client: AsyncMongoClient[dict[str, Any]], database: str) -> None:
        self._stack = stack
        self._client = client
        self._database = client[database]
        self._effects = Effects()

    async def under(self, rate: Rate, seconds: int) -> Figures:
        """Raise `WorldError` if another replica leads in the end: what it costs to lead can't be told apart then."""
        urls = tuple(self._stack.urls.values())
        async with (
            self._one_leader(rate.label) as cast,
            loading(Load(urls, rate.per_second, _WARM_UP_S + seconds + _TAIL_S, rate.batch)) as load,
        ):
            cast[_LOAD] = [psutil.Process(load.pid)]
            await asyncio.sleep(_WARM_UP_S)
            before = await self._counts(cast)
            await asyncio.sleep(seconds)
            figures = figures_of(before, await self._counts(cast))
            sent = await load.sent()
        return {"failed": sent.failed, "load_late_max_ms": sent.late_max_ms, **figures}

    async def at_once(self, schedules: int) -> Figures:
        due_ms = await make_storm(self._stack, schedules)
        async with self._one_leader("at once") as cast:
            await asyncio.sleep(max(due_ms / 1_000 - time.time() - _WARM_UP_S, 0))
            before = await self._counts(cast)
            await storm_over(self._stack, due_ms, before.jobs + schedules, self._effects)
            return figures_of(before, await self._counts(cast))

    @asynccontextmanager
    async def _one_leader(self, label: str) -> AsyncIterator[dict[str, list[psutil.Process]]]:
        leader, term = await leading(self._stack, self._database)
        yield cast_of(self._stack, leader)
        if await leading(self._stack, self._database) != (leader, term):
            raise WorldError(f"the leader has changed at {label}")

    async def _counts(self, cast: Cast) -> Counts:
        status = await self._client.admin.command("serverStatus")
        self._effects.read(map(self._stack.log_of, self._stack.processors))
        return Counts(
            time.monotonic(),
            cpu_s(cast),
            {name: int(status["opcounters"][name]) for name in OPERATIONS},
            int(status["network"]["bytesIn"]),
            int(status["network"]["bytesOut"]),
            len(self._effects.all),
        )
