"""What a system costs that has nothing to do: CPU and memory of each kind of process."""

import asyncio
from typing import Any

from pymongo import AsyncMongoClient

from hascheduler.embedded.stack import Stack
from tests.bench.cast import Cast, cast_of, cpu_s, leading, own_mb, resident_mb
from tests.bench.figures import Figures

_SETTLE_S = 10


async def measure_idle(stack: Stack, database: str, seconds: int) -> dict[str, Figures]:
    """By kind, each process on average; memory at the end."""
    await asyncio.sleep(_SETTLE_S)
    async with AsyncMongoClient[dict[str, Any]](stack.mongodb_uri) as client:
        leader, _ = await leading(stack, client[database])
    cast = {kind: processes for kind, processes in cast_of(stack, leader).items() if processes}
    return await usage_of(cast, seconds)


async def usage_of(cast: Cast, seconds: int) -> dict[str, Figures]:
    """By kind, each process on average; memory at the end. `psutil.NoSuchProcess` where one has ended."""
    before = cpu_s(cast)
    await asyncio.sleep(seconds)
    after = cpu_s(cast)
    return {
        kind: {
            "cpu_percent": round(100 * (after[kind] - before[kind]) / seconds / len(processes), 2),
            "resident_mb": round(sum(map(resident_mb, processes)) / len(processes), 1),
            "memory_mb": round(sum(map(own_mb, processes)) / len(processes), 1),
        }
        for kind, processes in cast.items()
    }
