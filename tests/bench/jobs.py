"""Jobs that do nothing, submitted over HTTP: how many end each second, how soon they start, what each costs, and what
happens when far more is asked for than can be done.

A load comes from a process of its own (`tests.bench.load`). CPU is the kernel's account of each process, all of a kind
together, without the load; operations are MongoDB's own counters (``serverStatus``).
"""

import asyncio
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import psutil

from hascheduler.client import AsyncScheduler, Tenant
from hascheduler.demo.evidence import Effects
from hascheduler.embedded.stack import Stack
from hascheduler.errors import InvalidInput, WorldError
from hascheduler.simulate.report import percentile
from tests.bench.http_client import post_all
from tests.bench.load import Load, Sent, body_of, loading, path_of, read_sent
from tests.bench.results import Figures
from tests.bench.stacks import (
    Cast,
    cast_of,
    cpu_s,
    drained,
    leading,
    now_ms,
    open_database,
    own_mb,
    resident_mb,
    waits_ms,
)

_LIMIT_S = 600
_LOAD = "load"
_SETTLE_S = 10
_WARM_UP_S = 4
_TAIL_S = 1
_IDLE_S = 30
_PATIENCE_S = 30
OPERATIONS = ("insert", "query", "update", "delete", "getmore", "command")


# How many, and how soon


async def measure_throughput(stack: Stack, jobs: int, batch: int) -> Figures:
    """From the first request until the database says of the last job that it has succeeded."""
    async with open_database(stack) as database:
        collection = database["jobs"]
        before = await collection.count_documents({"state": "succeeded"})
        began = time.monotonic()
        await submit_noops(list(stack.urls.values()), jobs, batch)
        submitted_s = time.monotonic() - began
        effects = Effects()
        async with asyncio.timeout(_LIMIT_S):
            # Files are looked at meanwhile, as a count in the database would cost those that are measured.
            while len(effects.all) < jobs:
                await asyncio.sleep(0.1)
                effects.read([stack.log_of(name) for name in stack.processors])
            while await collection.count_documents({"state": "succeeded"}) < before + jobs:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        took_s = time.monotonic() - began
    ran = Counter(effect.job_id for effect in effects.all)
    return {
        "jobs_per_s": round(jobs / took_s),
        "submitted_per_s": round(jobs / submitted_s),
        "took_s": round(took_s, 2),
        "lost": jobs - len(ran),
        "doubled": ran.total() - len(ran),
    }


async def submit_noops(urls: Sequence[str], jobs: int, batch: int) -> None:
    """At all ``urls`` in turn, as fast as they are taken."""
    one = orjson.dumps({"definition": "noop"})
    sizes = [min(batch, jobs - first) for first in range(0, jobs, batch)]
    await post_all((urls[number % len(urls)] + path_of(size), body_of(one, size)) for number, size in enumerate(sizes))


async def measure_starts(stack: Stack, per_second: int, seconds: int, folder: Path) -> Figures:
    """From just before a request is sent, by the sender's reading of the clock, to the start of the handler, by its."""
    ids, effects = folder / "acknowledged", Effects()
    load = Load(tuple(stack.urls.values()), per_second, _WARM_UP_S + seconds, ids_to=str(ids))
    async with loading(load) as under_way:
        sent = await under_way.sent()
    sent_ms = read_sent(ids)
    begin_ms = min(sent_ms.values(), default=0) + 1_000 * _WARM_UP_S
    missing = set(sent_ms)
    for _ in range(10 * _PATIENCE_S):
        missing -= {effect.job_id for effect in effects.read(map(stack.log_of, stack.processors))}
        if not missing:
            break
        await asyncio.sleep(0.1)
    started = [effect for effect in effects.all if sent_ms.get(effect.job_id, 0) >= begin_ms]
    starts_ms = [effect.at_ms - sent_ms[effect.job_id] for effect in started]
    return {
        "jobs": len(starts_ms),
        "failed": sent.failed,
        "unstarted": len(missing),
        "doubled": len(effects.all) - len({effect.job_id for effect in effects.all}),
        "start_p50_ms": percentile(starts_ms, 50),
        "start_p99_ms": percentile(starts_ms, 99),
        "start_max_ms": max(starts_ms, default=0),
        "ack_p50_ms": sent.ack_p50_ms,
        "ack_p99_ms": sent.ack_p99_ms,
        "load_late_max_ms": sent.late_max_ms,
    }


# What a job costs


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
    """What was counted until ``at``: seconds of CPU by kind of process, MongoDB's operations, and jobs that have
    started."""

    at: float
    cpu_s: Mapping[str, float]
    operations: Mapping[str, int]
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


async def measure_cost(stack: Stack, loads: Sequence[Rate], seconds: int) -> dict[str, Figures]:
    """Measure each load after the jobs of the one before have ended.

    Raise `WorldError` if another replica leads in the end: what it costs to lead can't be told apart then.
    """
    urls, effects, found = tuple(stack.urls.values()), Effects(), dict[str, Figures]()
    async with open_database(stack) as database:

        async def count(cast: Cast) -> Counts:
            status = await database.client.admin.command("serverStatus")
            effects.read(map(stack.log_of, stack.processors))
            operations = {name: int(status["opcounters"][name]) for name in OPERATIONS}
            return Counts(time.monotonic(), cpu_s(cast), operations, len(effects.all))

        await asyncio.sleep(_SETTLE_S)
        for rate in loads:
            leader, term = await leading(stack, database)
            load = Load(urls, rate.per_second, _WARM_UP_S + seconds + _TAIL_S, rate.batch)
            async with loading(load) as under_way:
                cast = {**cast_of(stack, leader), _LOAD: [psutil.Process(under_way.pid)]}
                await asyncio.sleep(_WARM_UP_S)
                before = await count(cast)
                await asyncio.sleep(seconds)
                figures = cost_between(before, await count(cast))
                sent = await under_way.sent()
            if await leading(stack, database) != (leader, term):
                raise WorldError(f"the leader has changed at {rate.label}")
            found[rate.label] = {"failed": sent.failed, "load_late_max_ms": sent.late_max_ms, **figures}
            await drained(database["jobs"])
    return found


def cost_between(before: Counts, after: Counts) -> Figures:
    """Per second, and per job if any has started; what a system spends at rest is in it."""
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
    }


async def measure_idle(stack: Stack) -> dict[str, Figures]:
    """By kind, each process on average while there is nothing to do; memory at the end."""
    await asyncio.sleep(_SETTLE_S)
    async with open_database(stack) as database:
        leader, _ = await leading(stack, database)
    cast = {kind: processes for kind, processes in cast_of(stack, leader).items() if processes}
    before = cpu_s(cast)
    await asyncio.sleep(_IDLE_S)
    after = cpu_s(cast)
    return {
        kind: {
            "cpu_percent": round(100 * (after[kind] - before[kind]) / _IDLE_S / len(processes), 2),
            "resident_mb": round(sum(map(resident_mb, processes)) / len(processes), 1),
            "memory_mb": round(sum(map(own_mb, processes)) / len(processes), 1),
        }
        for kind, processes in cast.items()
    }


# More than can be done

OVERLOAD_TIMES, _OVERLOAD_S = 3, 20
_FIRST_PER_S = 150
_GROWTH = 1.5
_STEPS_MAX = 9
_STEP_S = 5
_STILL_BETTER = 1.05


async def measure_overload(stack: Stack, batch: int) -> Figures:
    """Three times the best rate, by clients that come again once when their Retry-After is over.

    The best is found by raising the offered rate until no more jobs end each second, and is measured once more
    afterwards, as a shared machine may be slower by then: the goodput is compared with the mean of both. The clients
    take CPU of the same machine: ``goodput_ratio_of_cpu`` compares with the CPU that they left.
    """
    urls = tuple(stack.urls.values())
    async with open_database(stack) as database:
        jobs = database["jobs"]
        best_per_s, offered, offered_best, best_cores = 0, _FIRST_PER_S * (1 if batch == 1 else 4), 0, 0.0
        for _ in range(_STEPS_MAX):
            sent, goodput_per_s = await _offered(jobs, Load(urls, offered, _WARM_UP_S + _STEP_S, batch))
            await drained(jobs)
            better = goodput_per_s > best_per_s * _STILL_BETTER
            if goodput_per_s > best_per_s:
                best_per_s, offered_best, best_cores = goodput_per_s, offered, sent.cores
            if not better:
                break
            offered = round(offered * _GROWTH)
        begin_ms = now_ms()
        load = Load(urls, best_per_s * OVERLOAD_TIMES, _WARM_UP_S + _OVERLOAD_S, batch, heeds=True)
        sent, goodput_per_s = await _offered(jobs, load)
        backlog, end_ms = await jobs.count_documents({"state": "pending"}), now_ms()
        settled_s = await drained(jobs)
        waited_ms = await waits_ms(jobs, {"submitted_at_ms": {"$gte": begin_ms, "$lt": end_ms}})
        _, best_after_per_s = await _offered(jobs, Load(urls, offered_best, _WARM_UP_S + _STEP_S, batch))
        await drained(jobs)
    ratio = 2 * goodput_per_s / max(best_per_s + best_after_per_s, 1)
    cores = os.cpu_count() or 1
    return {
        "best_per_s": best_per_s,
        "best_after_per_s": best_after_per_s,
        "goodput_per_s": goodput_per_s,
        "goodput_ratio": round(ratio, 3),
        "goodput_ratio_of_cpu": round(ratio * (cores - best_cores) / (cores - sent.cores), 3),
        "client_cores": sent.cores,
        "accepted": sent.acknowledged,
        "refused": sent.refused,
        "failed_otherwise": sent.failed - (sent.refused - sent.readmitted),
        "wait_p50_ms": percentile(waited_ms, 50),
        "wait_p99_ms": percentile(waited_ms, 99),
        "unfinished_after": backlog,
        "settled_s": settled_s,
        "retry_after_max_s": sent.retry_after_max_s,
        "readmitted_ratio": round(sent.readmitted / max(sent.came_back, 1), 3),
        "load_late_max_ms": sent.late_max_ms,
    }


async def _offered(jobs: Any, load: Load) -> tuple[Sent, int]:
    """What became of the load, and how many jobs ended each second of it, after the warm-up."""
    async with loading(load) as under_way:
        await asyncio.sleep(_WARM_UP_S)
        before, began = await jobs.count_documents({"state": "succeeded"}), time.monotonic()
        await asyncio.sleep(load.seconds - _WARM_UP_S)
        after, ended = await jobs.count_documents({"state": "succeeded"}), time.monotonic()
        sent = await under_way.sent()
    return sent, round((after - before) / (ended - began))


FLOOD_TIMES, FLOOD_SLOTS, _FLOOD_S = 10, 8, 30
_NAP_MS = 50
_CAP = 5_000
_QUIET_PART = 10
_FLOOD_BATCHES_PER_S = 10


async def measure_flood(stack: Stack) -> Figures:
    """How long a quiet tenant's jobs wait, alone and while another submits ten times the capacity in batches.

    Jobs sleep, so the capacity is known: slots through the time that a job takes. The quiet tenant submits a tenth of
    it. As no job is interrupted for another, up to a nap of the wait is what is left of one.
    """
    [(name, url)] = stack.urls.items()
    process, capacity_per_s = psutil.Process(stack.replicas[name].pid), FLOOD_SLOTS * 1_000 // _NAP_MS
    nap = {"definition": "sleep", "payload": {"seconds": _NAP_MS / 1_000}}
    batch = max(1, capacity_per_s * FLOOD_TIMES // _FLOOD_BATCHES_PER_S)
    quiet = Load((url,), capacity_per_s // _QUIET_PART, _FLOOD_S, job={**nap, "tenant": "quiet"})
    flood = Load((url,), batch * _FLOOD_BATCHES_PER_S, _FLOOD_S, batch, job={**nap, "tenant": "flood"})
    async with open_database(stack) as database, AsyncScheduler(url) as scheduler:
        jobs = database["jobs"]
        await scheduler.tenants.put(Tenant(name="flood", max_pending=_CAP))
        async with loading(quiet) as under_way:
            await under_way.sent()
        flood_at_ms, before_mb = now_ms(), resident_mb(process)
        async with loading(quiet) as alone, loading(flood) as flooding:
            await alone.sent()
            sent, after_mb = await flooding.sent(), resident_mb(process)
        await asyncio.sleep(1)
        alone_ms, flooded_ms = [
            await waits_ms(jobs, {"tenant": "quiet", "submitted_at_ms": {when: flood_at_ms}})
            for when in ("$lt", "$gte")
        ]
        unstarted = await jobs.count_documents({"tenant": "quiet", "started_at_ms": None})
        await scheduler.cancel_where(tenant="flood")
    return {
        "capacity_per_s": capacity_per_s,
        "flood_per_s": flood.per_second,
        **{
            f"quiet_{when}_p{part}_ms": percentile(waited, part)
            for when, waited in (("alone", alone_ms), ("flooded", flooded_ms))
            for part in (50, 99)
        },
        "quiet_unstarted": unstarted,
        "flood_accepted": sent.acknowledged,
        "flood_refused": sent.refused,
        "flood_retry_after_max_s": sent.retry_after_max_s,
        "memory_mb": f"{before_mb}, at the end {after_mb}",
    }
