"""What is to come of many schedules: how soon `/v1/forecast` and a page of `/v1/timeline` answer, and at what cost.

The schedules are those of `tests.bench.schedules`, in one replica that leads and has nothing else to do. The *first*
forecast is one that the answer waits for; the others are asked for one after the other, with what keeps it fresh beside
them. CPU is that of the replica, in a span in which a forecast is asked for ten times a second, and in one of the same
length before in which nobody asks.
"""

import asyncio
import time
from pathlib import Path
from typing import Any

import httpx
from pymongo import AsyncMongoClient

from hascheduler.embedded.mongod import start_mongod
from hascheduler.simulate.report import percentile
from tests.bench.cast import process_cpu_s
from tests.bench.figures import Figures
from tests.bench.lone_replica import start_lone_replica
from tests.bench.schedules import write_schedules

_DATABASE = "bench-forecast"
_BETWEEN_S = 0.1
_SETTLE_S = 5
_QUERIES = {
    "day": "/v1/forecast",
    "lane": "/v1/forecast?lane=default",
    "week": "/v1/forecast?ahead=7d&bucket=1h",
    "timeline": "/v1/timeline?limit=50",
    "timeline_by_text": "/v1/timeline?limit=50&text=99",
}


async def measure_forecasts(count: int, seconds: int, folder: Path) -> Figures:
    """With ``count`` schedules; each query for ``seconds``."""
    async with start_mongod() as mongod, AsyncMongoClient[dict[str, Any]](mongod.uri) as client:
        async with start_lone_replica(mongod.uri, _DATABASE, folder) as replica:
            await replica.leads()
        await write_schedules(client, _DATABASE, count)
        async with (
            start_lone_replica(mongod.uri, _DATABASE, folder) as replica,
            httpx.AsyncClient(base_url=replica.url, timeout=60) as http,
        ):
            await replica.leads()
            await asyncio.sleep(_SETTLE_S)
            figures: dict[str, Any] = {"schedules": count}
            before_s = process_cpu_s(replica.process)
            await asyncio.sleep(seconds)
            figures["idle_cpu_percent"] = round(100 * (process_cpu_s(replica.process) - before_s) / seconds, 1)
            for name, path in _QUERIES.items():
                figures[f"{name}_first_ms"] = await _asked(http, path)
                before_s, spans = process_cpu_s(replica.process), await _asked_for(http, path, seconds)
                figures[f"{name}_cpu_percent"] = round(100 * (process_cpu_s(replica.process) - before_s) / seconds, 1)
                figures[f"{name}_p50_ms"] = percentile(spans, 50)
                figures[f"{name}_p99_ms"] = percentile(spans, 99)
            return figures


async def _asked_for(http: httpx.AsyncClient, path: str, seconds: int) -> list[int]:
    until, spans = time.monotonic() + seconds, list[int]()
    while time.monotonic() < until:
        spans.append(await _asked(http, path))
        await asyncio.sleep(_BETWEEN_S)
    return spans


async def _asked(http: httpx.AsyncClient, path: str) -> int:
    """In ms."""
    began = time.perf_counter()
    (await http.get(path)).raise_for_status()
    return round((time.perf_counter() - began) * 1_000)
