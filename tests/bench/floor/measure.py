"""CPU and time of a job at its floor: jobs at a rate over HTTP, and many whose schedules are due at one instant.

CPU is the kernel's account of all processes but the load, divided by the jobs that started meanwhile.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile

from hascheduler.embedded.children import run_in_foreground
from hascheduler.embedded.servers import start_mongod, start_rabbitmq
from hascheduler.errors import WorldError
from hascheduler.simulate.report import percentile
from tests.bench.cast import cpu_s, servers
from tests.bench.cost import Rate
from tests.bench.figures import Figures
from tests.bench.floor.exchanges import open_database, prepare, wall_ms
from tests.bench.floor.forms import Form
from tests.bench.floor.in_one_process import open_one_process
from tests.bench.floor.in_processes import open_processes
from tests.bench.floor.plan import FloorPlan, Running
from tests.bench.load import Load, loading, read_sent

_SETTLE_S = 5
_TAIL_S = 1
_SLOTS = 32
_SLOTS_AT_ONCE = 128
"""Of a processor, as in the benchmarks of the cost and of the storm."""


def measure_floor(pace: Rate, seconds: int, plan: FloorPlan) -> Figures:
    """CPU in milliseconds a job, by process, and how long after its submit was sent a job starts."""
    with NamedTemporaryFile() as ids:
        return run_in_foreground(_measure(pace, seconds, plan, Path(ids.name)))


def measure_floor_at_once(count: int, plan: FloorPlan) -> Figures:
    """When the last of so many jobs has started whose schedules are all due at one instant, and how long the machine
    needs for the CPU of that if no core is ever idle."""
    return run_in_foreground(_measure_at_once(count, plan))


async def _measure(pace: Rate, seconds: int, plan: FloorPlan, ids: Path) -> Figures:
    async with _open(plan, _SLOTS) as running:
        cast = {**servers(), **running.cast}
        load = Load(running.urls, pace.per_second, _SETTLE_S + seconds + _TAIL_S, pace.batch, ids_to=str(ids))
        async with loading(load) as sending:
            await asyncio.sleep(_SETTLE_S)
            before, from_ms = cpu_s(cast), wall_ms()
            await asyncio.sleep(seconds)
            after, until_ms = cpu_s(cast), wall_ms()
            sent = await sending.sent()
        sent_ms = read_sent(ids)
        starts = [start for start in await running.end() if from_ms <= start.at_ms < until_ms]
    if sent.failed or not starts:
        raise WorldError(f"{sent.failed} submits failed, and {len(starts)} jobs have started")
    by_kind = {kind: 1_000 * (after[kind] - before[kind]) / len(starts) for kind in cast}
    after_ms = [start.at_ms - sent_ms[start.job] for start in starts]
    return {
        "jobs_per_s": round(1_000 * len(starts) / (until_ms - from_ms), 1),
        "start_p50_ms": percentile(after_ms, 50),
        "start_p99_ms": percentile(after_ms, 99),
        "cpu_ms_per_job": round(sum(by_kind.values()), 3),
        **{f"{kind}_cpu_ms_per_job": round(ms, 3) for kind, ms in by_kind.items()},
    }


async def _measure_at_once(count: int, plan: FloorPlan) -> Figures:
    async with _open(plan, _SLOTS_AT_ONCE, count) as running:
        await asyncio.sleep(_SETTLE_S)
        cast = {**servers(), **running.cast}
        before, due_ms = cpu_s(cast), wall_ms()
        await running.fire(count)
        after = cpu_s(cast)
        starts = await running.end()
    if len(starts) != count:
        raise WorldError(f"{len(starts)} of {count} jobs have started")
    by_kind = {kind: after[kind] - before[kind] for kind in cast}
    used_s = sum(by_kind.values())
    return {
        "last_started_ms": max(start.at_ms for start in starts) - due_ms,
        "cpu_bound_ms": round(1_000 * used_s / (os.cpu_count() or 1)),
        "cpu_ms_per_job": round(1_000 * used_s / count, 3),
        **{f"{kind}_cpu_ms_per_job": round(1_000 * used / count, 3) for kind, used in by_kind.items()},
    }


@asynccontextmanager
async def _open(plan: FloorPlan, slots: int, schedules: int = 0) -> AsyncIterator[Running]:
    """On servers of its own, with so many ``slots`` of each processor."""
    async with start_mongod() as mongod, start_rabbitmq() as rabbitmq:
        async with open_database(mongod.uri) as database:
            await prepare(database, plan.form, schedules)
        opened = open_processes if plan.form is Form.IN_PROCESSES else open_one_process
        async with opened(mongod.uri, rabbitmq.url, plan, slots) as running:
            yield running
