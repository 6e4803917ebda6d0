"""A great many jobs that wait, written straight into the database: a replica that has them all, and takes from them.

The jobs: 10,000 fairness keys in 4 lanes, 100 targets a key, priority 5 for nine in ten of them. A replica has made the
indexes before; what it kept then is taken off for the bytes of a job. One replica starts on them; *stalls* are the
longest that its loop was kept from turning, while it loads and while it dispatches. Then a processor with 64 slots
takes jobs that do nothing: how many start each second is told by their effects. What a dispatch costs is the one figure
here that the replica tells of itself: the time within the core's steps, by the dispatches that came of them, in that
span.
"""

import asyncio
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
from pymongo import AsyncMongoClient

from hascheduler.demo.evidence import Effects
from hascheduler.embedded.servers import start_mongod
from hascheduler.model.documents.job import new_job_document
from hascheduler.model.values.instants import WallMs
from tests.bench.figures import Figures
from tests.bench.lone_replica import LoneReplica, start_lone_replica
from tests.bench.stacks import now_ms, write_documents
from tests.bench.stalls import watched_stalls
from tests.factories import make_job

_KEYS = 10_000
_SLOTS = 64
_FIRST_PATIENCE_S = 60
_DATABASE = "bench-pending"


async def measure_pending(count: int, seconds: int, folder: Path) -> Figures:
    """``seconds`` each at rest and dispatching."""
    async with start_mongod() as mongod:
        async with start_lone_replica(mongod.uri, _DATABASE, folder) as replica:
            await replica.leads()
            empty = await replica.rests(1)
        async with AsyncMongoClient[dict[str, Any]](mongod.uri) as client:
            began = time.monotonic()
            await write_documents(client[_DATABASE]["jobs"], _documents(count))
            written_s = round(time.monotonic() - began)
        async with start_lone_replica(mongod.uri, _DATABASE, folder) as replica:
            async with watched_stalls(replica.health_url) as stalls:
                ready_s = await replica.leads()
                loading_ms = stalls.take_ms()
            # Unwatched: to be asked a hundred times a second is no rest.
            resting = await replica.rests(seconds)
            return {
                "pending": count,
                "written_in_s": written_s,
                "ready_s": ready_s,
                **resting,
                "bytes_per_job": round((resting["memory_mb"] - empty["memory_mb"]) * 2**20 / count),
                "stall_loading_ms": loading_ms,
                **await _dispatching(replica, seconds),
            }


async def _dispatching(replica: LoneReplica, seconds: int) -> Figures:
    effects = Effects()
    async with (
        httpx.AsyncClient(base_url=replica.url, timeout=60) as http,
        replica.processor(("tests.bench.handlers",), _SLOTS) as output,
        watched_stalls(replica.health_url) as stalls,
    ):
        async with asyncio.timeout(_FIRST_PATIENCE_S):
            while not effects.read([output]):  # noqa: ASYNC110  # a file does not tell
                await asyncio.sleep(0.02)
        before, began = await _read_metrics(http), time.monotonic()
        effects.all.clear()
        await asyncio.sleep(seconds)
        started = len(effects.read([output]))
        after, took_s = await _read_metrics(http), time.monotonic() - began
    steps_s = after["hascheduler_step_seconds_sum"] - before["hascheduler_step_seconds_sum"]
    dispatches = 'hascheduler_decisions_total{kind="dispatch"}'
    decided = after[dispatches] - before[dispatches]
    return {
        "started_per_s": round(started / took_s),
        "decision_us": round(1e6 * steps_s / decided, 1) if decided else 0,
        "stall_dispatching_ms": stalls.take_ms(),
    }


async def _read_metrics(http: httpx.AsyncClient) -> dict[str, float]:
    """Return each sample that the replica tells of itself by its name, with its labels as they stand in the text."""
    text = (await http.get("/metrics")).raise_for_status().text
    rows = (line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#"))
    return {name: float(value) for name, _, value in rows}


def _documents(count: int) -> Iterator[dict[str, Any]]:
    chance = random.Random(1)
    now = now_ms()
    for number in range(count):
        key = number % _KEYS
        yield new_job_document(
            make_job(
                f"job:{number:017x}bench",
                definition="noop",
                target=f"target-{key}-{chance.randrange(100)}",
                payload=None,
                tenant="default",
                lane=f"lane-{key % 4}",
                fairness_key=f"key-{key}",
                priority=5 if chance.random() < 0.9 else chance.randrange(11),
                labels={},
                submitted_at_ms=WallMs(now - (count - number) // 10),
            )
        )
