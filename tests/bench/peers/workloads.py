"""What is done to a system that runs, and for how long it is looked at."""

import asyncio
import time
from dataclasses import dataclass

from tests.bench.peers.figures import GRACE_MS, Figures, failover_of, fires_of, kill_of, throughput_of
from tests.bench.peers.running import Running
from tests.bench.stacks import now_ms

_WARM_UP_S = 8
_STALLED_S = 20
_LIMIT_S = 240
_OBSERVED_S = 25
"""After a kill: two and a half times the longest lease or lock that was set."""
_SETTLE_S = 5


@dataclass(frozen=True, slots=True)
class Load:
    """How much of each workload; ``schedules`` are those of the fires."""

    jobs: int = 5_000
    batch: int = 500
    schedules: tuple[int, ...] = (200, 1_000)
    seconds: int = 30
    failover_schedules: int = 100
    kills: int = 3


async def throughput(system: Running, jobs: int, batch: int) -> Figures:
    """Ends when all have run, or nothing has for a while."""
    begin_ms = await system.submit(jobs, batch)
    seen, seen_at, began = 0, time.monotonic(), time.monotonic()
    while seen < jobs and time.monotonic() < min(seen_at + _STALLED_S, began + _LIMIT_S):
        await asyncio.sleep(0.2)
        system.check()
        ran = len({effect.job_id for effect in system.effects()})
        if ran > seen:
            seen, seen_at = ran, time.monotonic()
    await asyncio.sleep(1)  # for what runs twice
    return throughput_of(system.effects(), jobs, begin_ms)


async def fires(system: Running, schedules: int, seconds: int) -> Figures:
    await system.schedule(schedules)
    await asyncio.sleep(_WARM_UP_S)
    from_ms = now_ms()
    until_ms = from_ms + 1_000 * seconds
    await _until(until_ms + GRACE_MS)
    system.check()
    return fires_of(system.effects(), schedules, from_ms, until_ms)


async def failover(system: Running, schedules: int, kills: int) -> Figures:
    await system.schedule(schedules)
    await asyncio.sleep(_WARM_UP_S)
    found = []
    for _ in range(kills):
        killed_at_ms = await system.kill()
        until_ms = killed_at_ms + 1_000 * _OBSERVED_S
        await _until(until_ms + GRACE_MS)
        found.append(kill_of(system.effects(), schedules, killed_at_ms, until_ms))
        await system.restore()
        await asyncio.sleep(_SETTLE_S)
    return failover_of(found)


async def _until(wall_ms: int) -> None:
    await asyncio.sleep(max(0, wall_ms - now_ms()) / 1_000)
