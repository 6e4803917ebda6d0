"""What a job costs: CPU by kind of process, operations and bytes of the database; at rest, and at several rates.

The load is single submits over HTTP of jobs that do nothing, from a process of its own. CPU is the kernel's account of
each process, of all of a kind together; operations and bytes are the database's own counters (``serverStatus``), and
hold what the replicas, the processors and the API do there. Per job is all of it, what is spent at rest included,
divided by the jobs that started in that span, by their effects. *growth* is per-job cost at the highest rate divided by
that at the lowest: below 1 it costs less the more there is to do.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import psutil
from pymongo import AsyncMongoClient

from hascheduler.demo.evidence import Effects
from hascheduler.embedded.stack import Stack
from tests.bench.cast import KINDS, cast_of, cpu_s, leading
from tests.bench.figures import Figures
from tests.bench.load import Load, loading

_WARM_UP_S = 4
_OPERATIONS = ("insert", "query", "update", "delete", "getmore", "command")


@dataclass(frozen=True, slots=True)
class _Look:
    """All counters, at one instant."""

    at: float
    cpu_s: Mapping[str, float]
    operations: Mapping[str, int]
    bytes_in: int
    bytes_out: int


async def measure_cost(stack: Stack, database: str, rates: Sequence[int], seconds: int) -> dict[str, Figures]:
    """By rate, in jobs per second; 0 is at rest."""
    found: dict[str, Figures] = {}
    async with AsyncMongoClient[dict[str, Any]](stack.mongodb_uri) as client:
        for rate in rates:
            label = f"{rate:,} jobs/s" if rate else "at rest"
            found[label] = await _measure(stack, client, database, rate, seconds)
    ran = [figures for figures in found.values() if "cpu_ms_per_job" in figures]
    if len(ran) > 1:
        growing = [name for name in ran[0] if name.endswith("_per_job")]
        found["growth"] = {name: round(ran[-1][name] / ran[0][name], 2) for name in growing if ran[0][name]}
    return found


async def _measure(
    stack: Stack, client: AsyncMongoClient[dict[str, Any]], database: str, rate: int, seconds: int
) -> Figures:
    leader, _ = await leading(stack, client[database])
    cast, effects = cast_of(stack, leader), Effects()
    figures: dict[str, Any] = {}
    async with AsyncExitStack() as opened:
        load = None
        if rate:
            plan = Load(tuple(stack.urls.values()), rate, _WARM_UP_S + seconds + 1)
            load = await opened.enter_async_context(loading(plan))
            cast["load"] = [psutil.Process(load.pid)]
        await asyncio.sleep(_WARM_UP_S)
        effects.read(map(stack.log_of, stack.processors))
        before = await _look(client, cast)
        await asyncio.sleep(seconds)
        after = await _look(client, cast)
        jobs = len(effects.read(map(stack.log_of, stack.processors)))
        if load is not None:
            sent = await load.sent()
            figures |= {"failed": sent.failed, "load_late_max_ms": sent.late_max_ms}
    return {**figures, **_per_second(before, after, jobs), **(_per_job(before, after, jobs) if rate and jobs else {})}


async def _look(client: AsyncMongoClient[dict[str, Any]], cast: Mapping[str, Sequence[psutil.Process]]) -> _Look:
    status = await client.admin.command("serverStatus")
    operations = {name: int(status["opcounters"][name]) for name in _OPERATIONS}
    network = status["network"]
    return _Look(time.monotonic(), cpu_s(cast), operations, int(network["bytesIn"]), int(network["bytesOut"]))


def _per_second(before: _Look, after: _Look, jobs: int) -> Figures:
    took_s = after.at - before.at
    spent = {
        f"{kind}_cpu_percent": round(100 * (after.cpu_s[kind] - before.cpu_s[kind]) / took_s, 2)
        for kind in KINDS
        if kind in after.cpu_s
    }
    operations = sum(after.operations.values()) - sum(before.operations.values())
    return {"jobs_per_s": round(jobs / took_s, 1), **spent, "mongodb_ops_per_s": round(operations / took_s, 1)}


def _per_job(before: _Look, after: _Look, jobs: int) -> Figures:
    """``cpu_ms_per_job`` is that of all kinds but the load."""
    cpu_ms = {kind: 1_000 * (after.cpu_s[kind] - before.cpu_s[kind]) / jobs for kind in KINDS if kind in after.cpu_s}
    operations = {name: (after.operations[name] - before.operations[name]) / jobs for name in _OPERATIONS}
    return {
        "cpu_ms_per_job": round(sum(cpu_ms.values()) - cpu_ms.get("load", 0), 3),
        **{f"{kind}_cpu_ms_per_job": round(value, 3) for kind, value in cpu_ms.items()},
        "mongodb_ops_per_job": round(sum(operations.values()), 3),
        **{f"mongodb_{name}_per_job": round(value, 3) for name, value in operations.items()},
        "mongodb_bytes_in_per_job": round((after.bytes_in - before.bytes_in) / jobs),
        "mongodb_bytes_out_per_job": round((after.bytes_out - before.bytes_out) / jobs),
    }
