"""What is done to a system that runs, and what its effects come to."""

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import Any

from hascheduler.demo.evidence import Effect
from hascheduler.simulate.report import percentile
from tests.bench.peers.running import Running
from tests.bench.stacks import now_ms

Figures = dict[str, Any]

_WARM_UP_S = 8
_STALLED_S = 20
_LIMIT_S = 240
_OBSERVED_S = 25
"""After a kill: two and a half times the longest lease or lock that was set."""
_SETTLE_S = 5
GRACE_MS = 3_000
BEFORE_KILL_MS = 2_000
"""What was due so shortly before a kill is counted with it: it may be lost or run twice because of it."""


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
    """Medians and the worst of times, and sums of counts."""
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
    last = [kill["resumed_last_ms"] for kill in found]
    return {
        "kills": kills,
        "resumed_p50_ms": round(median(kill["resumed_p50_ms"] for kill in found)),
        "resumed_last_ms": round(median(last)),
        "resumed_last_worst_ms": max(last),
        **{name: sum(kill[name] for kill in found) for name in ("never_resumed", "expected", "not_fired", "doubled")},
    }


async def _until(wall_ms: int) -> None:
    await asyncio.sleep(max(0, wall_ms - now_ms()) / 1_000)


def throughput_of(effects: Sequence[Effect], jobs: int, begin_ms: int) -> Figures:
    """From the first submit to the last effect; what had not run by then is ``lost``."""
    ran = Counter(effect.job_id for effect in effects)
    last_ms = max((effect.at_ms for effect in effects), default=begin_ms)
    return {
        "jobs_per_s": round(1_000 * len(ran) / max(1, last_ms - begin_ms)),
        "lost": jobs - len(ran),
        "doubled": ran.total() - len(ran),
    }


def fires_of(effects: Sequence[Effect], schedules: int, from_ms: int, until_ms: int) -> Figures:
    """Schedules of a period of 1 s over ``from_ms`` < time ≤ ``until_ms``: what was not fired or twice, and the lag.

    No schedule makes up for another one: one that fired too often counts as if it had fired as often as expected.
    """
    fires, each = _fires(effects, from_ms, until_ms), (until_ms - from_ms) // 1_000
    different = {fire.job_id: _schedule_of(fire) for fire in fires}
    fired = sum(min(each, count) for count in Counter(different.values()).values())
    known = all(fire.nominal_ms is not None for fire in fires)
    lags = [fire.lag_ms for fire in fires]
    return {
        "expected": schedules * each,
        "not_fired": schedules * each - fired,
        "not_fired_percent": round(100 * (1 - fired / (schedules * each)), 2),
        "doubled": len(fires) - len(different) if known else None,
        "lag_p50_ms": percentile(lags, 50) if known and fires else None,
        "lag_p99_ms": percentile(lags, 99) if known and fires else None,
    }


def kill_of(effects: Sequence[Effect], schedules: int, killed_at_ms: int, until_ms: int) -> Figures:
    """How long after a kill each schedule had its first effect for a later nominal time; what was lost or doubled."""
    first: dict[str, int] = {}
    for fire in _fires(effects, killed_at_ms, until_ms):
        name = _schedule_of(fire)
        first[name] = min(first.get(name, fire.at_ms), fire.at_ms)
    waits = [at_ms - killed_at_ms for at_ms in first.values()]
    around = fires_of(effects, schedules, killed_at_ms - BEFORE_KILL_MS, until_ms)
    return {
        "resumed_p50_ms": percentile(waits, 50),
        "resumed_last_ms": max(waits, default=0),
        "never_resumed": schedules - len(first),
        **{name: around[name] for name in ("expected", "not_fired", "doubled")},
    }


def _fires(effects: Sequence[Effect], from_ms: int, until_ms: int) -> list[Effect]:
    """Those whose nominal time, or where it is unknown the time of the effect, lies in between."""
    return [
        effect
        for effect in effects
        if effect.job_id.startswith("fire:")
        and from_ms < (effect.at_ms if effect.nominal_ms is None else effect.nominal_ms) <= until_ms
    ]


def _schedule_of(fire: Effect) -> str:
    return fire.job_id.split(":")[1]
