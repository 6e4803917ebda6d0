"""Jobs that do nothing, submitted over HTTP as fast as they are taken: how many end each second, all durable.

The time is from the first request until the database says of the last job that it has succeeded; that each ran once
is read from the handlers' own effects.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import orjson
from pymongo import AsyncMongoClient

from hascheduler.demo.evidence import Effects
from hascheduler.embedded.stack import Stack
from tests.bench.http_client import post_all
from tests.bench.load import body_of, path_of

_LIMIT_S = 600
HANDLERS = ("tests.bench.handlers",)


async def measure_throughput(stack: Stack, database: str, jobs: int, batch: int) -> dict[str, Any]:
    """``jobs`` no-op jobs, ``batch`` a request (1: one by one), at all replicas in turn."""
    async with AsyncMongoClient[dict[str, Any]](stack.mongodb_uri) as client:
        collection = client[database]["jobs"]
        before = await collection.count_documents({"state": "succeeded"})
        began = time.monotonic()
        await submit_noops(list(stack.urls.values()), jobs, batch)
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


async def submit_noops(urls: Sequence[str], jobs: int, batch: int) -> None:
    """``jobs`` that do nothing, ``batch`` a request, at all ``urls`` in turn, as fast as they are taken."""
    one = orjson.dumps({"definition": "noop"})
    sizes = [min(batch, jobs - first) for first in range(0, jobs, batch)]
    await post_all((urls[number % len(urls)] + path_of(size), body_of(one, size)) for number, size in enumerate(sizes))
