"""What the dashboard costs: open pages, and each view's requests where there is much to look at.

A page that is open holds one stream of pictures. A view's requests are those that its module makes, in turn; the time
is from a request to the end of its answer. The jobs that have ended are written straight into the database, as
`tests.bench.finished` does; the schedules are too, and fire only next year.
"""

import asyncio
import contextlib
import random
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import httpx
import psutil
from pymongo import AsyncMongoClient
from pymongo.write_concern import WriteConcern

from hascheduler.client import AsyncScheduler
from hascheduler.embedded.stack import Stack
from tests.bench.cast import cpu_s, resident_mb
from tests.bench.figures import Figures
from tests.bench.finished import timed, write_finished

_SECONDS = 20
_BATCH = 2_000
_READY_S = 300
LIVE = "/v1/cluster/live"
VIEWS: dict[str, Sequence[str]] = {
    "now": ("/v1/cluster", "/v1/cluster/failovers?limit=5"),
    "schedules": (
        "/v1/schedules?limit=25",
        "/v1/schedules?limit=25&text=le-77",
        "/v1/schedules?limit=25&state=paused",
        "/v1/schedules?limit=25&label=team%3Da",
    ),
    "timeline": ("/v1/timeline?limit=50", "/v1/timeline?limit=50&text=77"),
    "verdicts": ("/v1/verdicts?limit=50",),
    "jobs": (
        "/v1/jobs?limit=50",
        "/v1/jobs?limit=50&state=failed",
        "/v1/jobs?limit=50&definition=definition-7&state=failed",
        "/v1/jobs:counts",
        "/v1/jobs:counts?definition=definition-7",
        "/v1/jobs:errors",
    ),
    "lanes": ("/v1/lanes", "/v1/tenants", "/v1/definitions"),
}


async def measure_dashboard(
    stack: Stack, database: str, *, pages: int, jobs: int, schedules: int, requests: int
) -> dict[str, Figures]:
    url = next(iter(stack.urls.values()))
    replica = psutil.Process(next(iter(stack.replicas.values())).pid)
    figures: dict[str, Figures] = {}
    async with AsyncMongoClient[dict[str, Any]](stack.mongodb_uri) as client:
        figures[f"{pages} open pages"] = await _open_pages(url, replica, client, pages)
        await write_finished(client, database, jobs, random.Random(1), int(time.time() * 1_000))
        await _write_schedules(client, database, url, schedules)
        async with httpx.AsyncClient(base_url=url, timeout=60) as http:
            await _mirrored(http, schedules)
            for view, paths in VIEWS.items():
                figures[f"view {view}"] = await _asked(http, paths, requests)
    return figures


async def _open_pages(
    url: str, replica: psutil.Process, client: AsyncMongoClient[dict[str, Any]], pages: int
) -> Figures:
    cast = {"replica": [replica]}

    async def percent() -> float:
        before = cpu_s(cast)["replica"]
        await asyncio.sleep(_SECONDS)
        return round(100 * (cpu_s(cast)["replica"] - before) / _SECONDS, 2)

    async def cursors() -> int:
        status = await client.admin.command("serverStatus")
        return int(status["metrics"]["cursor"]["open"]["total"])

    await asyncio.sleep(_SECONDS / 2)  # what a start leaves to be done
    closed, cursors_before, memory = await percent(), await cursors(), resident_mb(replica)
    async with contextlib.AsyncExitStack() as streams, asyncio.TaskGroup() as readers:
        limits = httpx.Limits(max_connections=pages)
        http = await streams.enter_async_context(httpx.AsyncClient(base_url=url, timeout=60, limits=limits))
        tasks = []
        for _ in range(pages):
            answer = await streams.enter_async_context(http.stream("GET", LIVE))
            answer.raise_for_status()
            tasks.append(readers.create_task(_read(answer)))
        opened = await percent()
        held = await cursors() - cursors_before
        grown = resident_mb(replica) - memory
        for task in tasks:
            task.cancel()
    return {
        "cpu_percent_closed": closed,
        "cpu_percent": opened,
        "cpu_percent_of_pages": round(opened - closed, 2),
        "cursors": held,
        "grown_mb": round(grown, 1),
    }


async def _read(answer: httpx.Response) -> None:
    async for _ in answer.aiter_bytes():
        pass


async def _write_schedules(client: AsyncMongoClient[dict[str, Any]], database: str, url: str, count: int) -> None:
    """Copies of one that the API has made, so that they have its form, whatever that is."""
    async with AsyncScheduler(url) as scheduler:
        await scheduler.schedules.create_document(
            {
                "name": "schedule-0",
                "trigger": {"type": "cron", "expression": "0 3 * * *"},
                "job": {"definition": "log"},
                "labels": {"team": "a"},
            }
        )
    stored = client[database].get_collection("schedules", write_concern=WriteConcern(w=1))
    pattern = await stored.find_one({"_id": "schedule-0"})
    assert pattern is not None
    for first in range(1, count, _BATCH):
        await stored.insert_many(
            [{**pattern, "_id": f"schedule-{number}"} for number in range(first, min(first + _BATCH, count))],
            ordered=False,
        )


async def _mirrored(http: httpx.AsyncClient, schedules: int) -> None:
    async with asyncio.timeout(_READY_S):
        while True:
            answer = (await http.get("/v1/cluster")).raise_for_status().json()
            if answer["counts"]["schedules"] >= schedules:
                return
            await asyncio.sleep(0.5)


async def _asked(http: httpx.AsyncClient, paths: Sequence[str], requests: int) -> Figures:
    """The slowest of the view's requests, by its 50th and 99th percentile."""
    slowest: dict[str, float] = {}
    for path in paths:
        same: Callable[[], str] = partial(str, path)
        took = await timed("answer", http, requests, same)
        if took["answer_p99_ms"] >= slowest.get("answer_p99_ms", 0):
            slowest = took
    return slowest
