"""One tenant floods: what becomes of another one's jobs, and of the replica.

The jobs sleep, so the capacity is known: slots through the time that a job takes. The quiet tenant submits a tenth of
it, first alone, then while the other submits ten times the capacity, in batches, until it is told to come again. A wait
is from a job's submission to its first start, by the stored times. As no job is interrupted for another, a part of it
is what is left of a nap: with all slots taken, up to ``nap_ms``.
"""

import asyncio
import time
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

import httpx
import psutil
from pymongo import AsyncMongoClient

from hascheduler.client import AsyncScheduler, Tenant
from hascheduler.embedded.stack import Stack
from hascheduler.simulate.report import percentile
from tests.bench.stacks import now_ms, waits_ms

_CAP = 5_000
_EVERY_S = 0.1
_QUIET_PART = 10
_LOOK_S = 1.0
_TARGET_RATIO = 2


@dataclass(frozen=True, slots=True)
class Flood:
    """``times`` the capacity, for ``seconds`` after as many without."""

    slots: int
    nap_ms: int
    times: int
    seconds: int

    @property
    def capacity_per_s(self) -> int:
        return self.slots * 1_000 // self.nap_ms

    def job(self, tenant: str) -> dict[str, Any]:
        return {"definition": "sleep", "tenant": tenant, "payload": {"seconds": self.nap_ms / 1_000}}


async def measure_flood(stack: Stack, database: str, flood: Flood) -> dict[str, Any]:
    name, url = next(iter(stack.urls.items()))
    process = psutil.Process(stack.replicas[name].pid)
    async with (
        AsyncMongoClient[dict[str, Any]](stack.mongodb_uri) as client,
        httpx.AsyncClient(base_url=url, timeout=30) as http,
        AsyncScheduler(url) as scheduler,
    ):
        jobs = client[database]["jobs"]
        await scheduler.tenants.put(Tenant(name="flood", max_pending=_CAP))
        alone_at_ms = now_ms()
        await _quiet(http, flood)
        flood_at_ms = now_ms()
        memory_mb = [_memory_mb(process)]
        answers: Counter[int] = Counter()
        retry_after_s: list[int] = []
        pending_max = 0
        flooding = asyncio.create_task(_flood(http, flood, answers, retry_after_s))
        quiet = asyncio.create_task(_quiet(http, flood))
        while not (flooding.done() and quiet.done()):
            await asyncio.wait([flooding, quiet], timeout=_LOOK_S)
            memory_mb.append(_memory_mb(process))
            waiting = await jobs.count_documents({"tenant": "flood", "state": "pending"})
            pending_max = max(pending_max, waiting)
        await flooding
        await quiet
        await asyncio.sleep(1)
        alone = await waits_ms(jobs, _quiet_jobs(alone_at_ms, flood_at_ms))
        flooded = await waits_ms(jobs, _quiet_jobs(flood_at_ms, now_ms()))
        unstarted = await jobs.count_documents({"tenant": "quiet", "started_at_ms": None})
        await scheduler.cancel_where(tenant="flood")
    ratio = percentile(flooded, 99) / max(1, percentile(alone, 99))
    return {
        **asdict(flood),
        "capacity_per_s": flood.capacity_per_s,
        "flood_per_s": flood.capacity_per_s * flood.times,
        "quiet_alone_p50_ms": percentile(alone, 50),
        "quiet_alone_p99_ms": percentile(alone, 99),
        "quiet_flooded_p50_ms": percentile(flooded, 50),
        "quiet_flooded_p99_ms": percentile(flooded, 99),
        "quiet_unstarted": unstarted,
        "flood_answers": dict(sorted(answers.items())),
        "flood_retry_after_s": f"{min(retry_after_s, default=0)} to {max(retry_after_s, default=0)}",
        "flood_pending_max": pending_max,
        "flood_pending_cap": _CAP,
        "memory_mb": f"{memory_mb[0]}, then {memory_mb[len(memory_mb) // 2]}, at the end {memory_mb[-1]}",
        "memory_max_mb": max(memory_mb),
        "p99_ratio": round(ratio, 2),
        "p99_ratio_of_target": round(ratio / _TARGET_RATIO, 2),
    }


async def _quiet(http: httpx.AsyncClient, flood: Flood) -> None:
    per_second = flood.capacity_per_s // _QUIET_PART
    begin = time.monotonic()
    for number in range(per_second * flood.seconds):
        await asyncio.sleep(begin + number / per_second - time.monotonic())
        (await http.post("/v1/jobs", json=flood.job("quiet"))).raise_for_status()


async def _flood(http: httpx.AsyncClient, flood: Flood, answers: Counter[int], retry_after_s: list[int]) -> None:
    """Whatever it is answered."""
    size = max(1, round(flood.capacity_per_s * flood.times * _EVERY_S))
    body = {"jobs": [flood.job("flood")] * size}

    async def one() -> None:
        answer = await http.post("/v1/jobs:batch", json=body)
        answers[answer.status_code] += 1
        if "retry-after" in answer.headers:
            retry_after_s.append(int(answer.headers["retry-after"]))

    begin = time.monotonic()
    async with asyncio.TaskGroup() as sending:
        for number in range(round(flood.seconds / _EVERY_S)):
            await asyncio.sleep(begin + number * _EVERY_S - time.monotonic())
            sending.create_task(one())


def _quiet_jobs(from_ms: int, until_ms: int) -> dict[str, Any]:
    return {"tenant": "quiet", "submitted_at_ms": {"$gte": from_ms, "$lt": until_ms}}


def _memory_mb(process: psutil.Process) -> int:
    return round(process.memory_info().rss / 2**20)
