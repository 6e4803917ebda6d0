"""Jobs that do nothing, submitted over HTTP as fast as they are taken: how many end each second, all durable.

The time is from the first request until the database says of the last job that it has succeeded; that each ran once
is read from the handlers' own effects.
"""

import asyncio
import time
from collections import Counter
from http import HTTPStatus
from typing import Any

import aiohttp
import orjson
from pymongo import AsyncMongoClient

from hascheduler.demo.evidence import Effects
from hascheduler.embedded.stack import Stack

_IN_FLIGHT = 64
_LIMIT_S = 600
_JSON = {"content-type": "application/json"}
HANDLERS = ("tests.bench.handlers",)


async def measure_throughput(stack: Stack, database: str, jobs: int, batch: int) -> dict[str, Any]:
    """``jobs`` no-op jobs, ``batch`` a request (1: one by one), at all replicas in turn."""
    urls = list(stack.urls.values())
    sizes = [min(batch, jobs - first) for first in range(0, jobs, batch)]
    async with AsyncMongoClient[dict[str, Any]](stack.mongodb_uri) as client:
        collection = client[database]["jobs"]
        before = await collection.count_documents({"state": "succeeded"})
        began = time.monotonic()
        await _submit(urls, sizes)
        submitted_s = time.monotonic() - began
        effects = Effects()
        async with asyncio.timeout(_LIMIT_S):
            # Files are looked at while it lasts, as a count in the database would cost those that are measured.
            while len(effects.all) < jobs:
                await asyncio.sleep(0.1)
                effects.read([stack.log_of(name) for name in stack.processors])
            while await collection.count_documents({"state": "succeeded"}) < before + jobs:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        took_s = time.monotonic() - began
    ran = Counter(effect.job_id for effect in effects.all)
    return {
        "jobs": jobs,
        "batch": batch,
        "replicas": len(stack.replicas),
        "processors": len(stack.processors),
        "jobs_per_s": round(jobs / took_s),
        "submitted_per_s": round(jobs / submitted_s),
        "took_s": round(took_s, 2),
        "lost": jobs - len(ran),
        "doubled": ran.total() - len(ran),
    }


async def post_heeding(http: aiohttp.ClientSession, address: str, body: bytes) -> None:
    """Submit until it is accepted; a refused request is repeated after its Retry-After."""
    while True:
        async with http.post(address, data=body, headers=_JSON) as answer:
            await answer.read()
            if answer.status != HTTPStatus.SERVICE_UNAVAILABLE or "Retry-After" not in answer.headers:
                answer.raise_for_status()
                return
            after_s = int(answer.headers["Retry-After"])
        await asyncio.sleep(after_s)


async def _submit(urls: list[str], sizes: list[int]) -> None:
    numbers = iter(range(len(sizes)))
    one = orjson.dumps({"definition": "noop"})

    async def requests(http: aiohttp.ClientSession) -> None:
        for number in numbers:
            size, url = sizes[number], urls[number % len(urls)]
            if size == 1:
                address, body = f"{url}/v1/jobs", one
            else:
                address, body = f"{url}/v1/jobs:batch", b'{"jobs":[' + b",".join([one] * size) + b"]}"
            await post_heeding(http, address, body)

    connector = aiohttp.TCPConnector(limit=_IN_FLIGHT)
    async with aiohttp.ClientSession(connector=connector) as http, asyncio.TaskGroup() as tasks:
        for _ in range(_IN_FLIGHT):
            tasks.create_task(requests(http))
