"""How soon a submit is acknowledged, by the majority, while other jobs run.

The load is open: requests are sent when they are due, however slow the answers, and an answer's time counts from when
its request was due. Half of the jobs that run come one by one, and those are measured; the others come in batches.
"""

import asyncio
from typing import Any

import httpx
from pymongo import AsyncMongoClient

from hascheduler.embedded.stack import Stack
from hascheduler.simulate.report import percentile

_WARM_UP_S = 3
_BATCH_EVERY_S = 0.2
_TARGET_P99_MS = 100


async def measure_submits(stack: Stack, database: str, per_second: int, running: int, seconds: int) -> dict[str, Any]:
    """``per_second`` submits, measured, at all replicas in turn, while ``running`` jobs run each second in all."""
    loop = asyncio.get_running_loop()
    urls = list(stack.urls.values())
    took_ms: list[float] = []
    failed: list[str] = []
    limits = httpx.Limits(max_connections=400, max_keepalive_connections=400)
    async with httpx.AsyncClient(timeout=30, limits=limits) as http, asyncio.TaskGroup() as sending:
        begin = loop.time() + 0.5

        async def one(number: int, due: float, *, measured: bool) -> None:
            body = {"definition": "log", "target": f"one-{number}", "payload": {"number": number}}
            answer = await http.post(f"{urls[number % len(urls)]}/v1/jobs", json=body)
            if answer.status_code != httpx.codes.CREATED:
                failed.append(str(answer.status_code))
            elif measured:
                took_ms.append(1_000 * (loop.time() - due))

        async def ones() -> None:
            for number in range((_WARM_UP_S + seconds) * per_second):
                due = begin + number / per_second
                await asyncio.sleep(due - loop.time())
                sending.create_task(one(number, due, measured=due >= begin + _WARM_UP_S))

        async def batches() -> None:
            size = round(max(0, running - per_second) * _BATCH_EVERY_S)
            body = {"jobs": [{"definition": "log"}] * size}
            for number in range(round((_WARM_UP_S + seconds) / _BATCH_EVERY_S) if size else 0):
                await asyncio.sleep(begin + number * _BATCH_EVERY_S - loop.time())
                sending.create_task(http.post(f"{urls[number % len(urls)]}/v1/jobs:batch", json=body))

        sending.create_task(ones())
        sending.create_task(batches())
    async with AsyncMongoClient[dict[str, Any]](stack.mongodb_uri) as client:
        ended = await client[database]["jobs"].count_documents({"state": "succeeded"})
    p99_ms = percentile([round(each) for each in took_ms], 99)
    return {
        "submits_per_s": per_second,
        "jobs_per_s": running,
        "seconds": seconds,
        "submits": len(took_ms),
        "failed": len(failed),
        "ack_p50_ms": percentile([round(each) for each in took_ms], 50),
        "ack_p99_ms": p99_ms,
        "ack_max_ms": round(max(took_ms, default=0)),
        "ended_per_s": round(ended / (_WARM_UP_S + seconds)),
        "ack_p99_ms_of_target": round(p99_ms / _TARGET_P99_MS, 2),
    }
