"""The processes of a system by what they do, what each has used of the machine, and which of the replicas leads."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import psutil

from hascheduler.embedded.stack import Stack

Cast = Mapping[str, Sequence[psutil.Process]]
KINDS = ("leader", "follower", "processor", "mongod", "rabbitmq", "load")
_NAMES = {"mongod": "mongod", "beam.smp": "rabbitmq"}
_PATIENCE_S = 30


async def leading(stack: Stack, database: Any, shard: str = "default") -> tuple[str, int]:
    """The name of the replica that holds the lease of that shard, whose ``database`` it is, once one does, and its
    term."""
    async with asyncio.timeout(_PATIENCE_S):
        while True:
            lease = await database["leases"].find_one({"_id": shard})
            name = lease["holder"].rpartition(".")[0] if lease else ""
            if lease and name in stack.replicas:
                return name, int(lease["term"])
            await asyncio.sleep(0.01)


def cast_of(stack: Stack, leader: str) -> dict[str, list[psutil.Process]]:
    """By kind; servers only where they were started here."""
    cast: dict[str, list[psutil.Process]] = {
        "leader": [psutil.Process(stack.replicas[leader].pid)],
        "follower": [psutil.Process(child.pid) for name, child in stack.replicas.items() if name != leader],
        "processor": [psutil.Process(child.pid) for child in stack.processors.values()],
    }
    return cast | servers()


def servers() -> dict[str, list[psutil.Process]]:
    """This process's own, by kind."""
    found: dict[str, list[psutil.Process]] = {}
    for process in psutil.Process().children(recursive=True):
        kind = _NAMES.get(process.name())
        if kind is not None:
            found.setdefault(kind, []).append(process)
    return found


def cpu_s(cast: Cast) -> dict[str, float]:
    """What each kind has used so far, of all its processes together."""
    return {kind: sum(process_cpu_s(process) for process in processes) for kind, processes in cast.items()}


def resident_mb(process: psutil.Process) -> float:
    return round(process.memory_info().rss / 2**20, 1)


def own_mb(process: psutil.Process) -> float:
    """What would be free without it: no pages that it shares with others."""
    return round(process.memory_full_info().uss / 2**20, 1)


def process_cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system
