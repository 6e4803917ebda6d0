"""How long nobody decides: from ending the leader to the first decision of the next term."""

import asyncio
import signal
from typing import Any

import httpx
from pymongo import AsyncMongoClient

from hascheduler.clock import SystemClock
from hascheduler.embedded.stack import Stack
from hascheduler.model.instants import format_instant
from hascheduler.model.percentiles import percentile

_PHASES = 50


async def measure_failover(stack: Stack, database: str, kills: int) -> dict[str, Any]:
    """``kills`` each of SIGTERM and SIGKILL, and one SIGSTOP, with something due every 20 ms."""
    clock = SystemClock()
    client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(stack.mongodb_uri)
    async with client, httpx.AsyncClient(timeout=30) as http:
        start_ms = clock.wall_ms()
        for number in range(_PHASES):
            anchor = format_instant(start_ms + 1_000 * number // _PHASES)
            trigger = {"type": "interval", "every": "1s", "anchor": anchor}
            body = {"name": f"bench-{number}", "trigger": trigger, "job": {"definition": "log"}}
            (await http.post(f"{next(iter(stack.urls.values()))}/v1/schedules", json=body)).raise_for_status()
        figures: dict[str, Any] = {}
        plan = {"SIGTERM": kills, "SIGKILL": kills, "SIGSTOP": 1}
        for name, times in plan.items():
            took = [await _end_leader(stack, client[database], signal.Signals[name]) for _ in range(times)]
            figures[name] = {"times": times, "p50_ms": percentile(took, 50), "max_ms": max(took)}
    return figures


async def _end_leader(stack: Stack, database: Any, number: signal.Signals) -> int:
    clock = SystemClock()
    await asyncio.sleep(1)
    lease = await database.leases.find_one({"_id": "default"})
    name = lease["holder"].rpartition(".")[0]
    at_ms = clock.wall_ms()
    stack.replicas[name].signal(number)
    async with asyncio.timeout(60):
        while True:
            later = {"term": {"$gt": lease["term"]}, "kind": "decisions"}
            entry = await database.journal.find_one(later, sort=[("_id", 1)])
            if entry is not None:
                break
            await asyncio.sleep(0.005)
    if number is signal.SIGSTOP:
        stack.replicas[name].signal(signal.SIGCONT)
    else:
        await stack.replicas[name].wait()
        await stack.start_replica(name)
    await stack.ready(name)
    return int(entry["at_ms"]) - at_ms
