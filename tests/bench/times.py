"""Schedules that fire: whether each nominal time has its effect, how late, and how soon another leader decides when
one ends.

The lag is from the nominal time to the start of the handler, by the handler's own reading of the clock.
"""

import asyncio
import signal
from collections.abc import Mapping, Sequence
from typing import Any

from hascheduler.clock import SystemClock
from hascheduler.demo.evidence import Effects
from hascheduler.embedded.stack import Stack
from hascheduler.model.values.instants import format_instant
from hascheduler.simulate.report import percentile
from tests.bench.results import Figures
from tests.bench.stacks import interval_bodies, leading, make_schedules, open_database

_WARM_UP_MS = 3_000
_LATE_MS = 10_000
"""What fires so long after the end is late, not missed."""


async def measure_fires(stack: Stack, schedules: int, seconds: int) -> Figures:
    """``schedules`` that fire every second, spread evenly over it, for ``seconds`` after a warm-up."""
    clock = SystemClock()
    expectations = await make_schedules(list(stack.urls.values()), interval_bodies(schedules))
    from_ms = clock.wall_ms() + _WARM_UP_MS
    until_ms = from_ms + seconds * 1_000
    expected = {
        job
        for expectation in expectations
        for job in expectation.jobs_until(until_ms)
        if int(job.rpartition(":")[2]) > from_ms
    }
    effects = Effects()
    await asyncio.sleep((until_ms - clock.wall_ms()) / 1_000)
    missing = expected
    while missing and clock.wall_ms() < until_ms + _LATE_MS:
        await asyncio.sleep(0.2)
        missing = missing - {effect.job_id for effect in effects.read(map(stack.log_of, stack.processors))}
    seen = [effect for effect in effects.all if effect.job_id in expected]
    lags, fired = [effect.lag_ms for effect in seen], len({effect.job_id for effect in seen})
    return {
        "expected": len(expected),
        "fired": fired,
        "missed": len(expected) - fired,
        "doubled": len(seen) - fired,
        "lag_p50_ms": percentile(lags, 50),
        "lag_p99_ms": percentile(lags, 99),
        "lag_max_ms": max(lags, default=0),
    }


# All at once

_TRIED = 200
_ALLOWANCE = 1.5
_PAUSE_MS = 5_000
_DAY_MS = 86_400_000
_STORM_S = 120


async def measure_storm(stack: Stack, schedules: int) -> Figures:
    """Measure one-off schedules that are all due at one instant, with priorities from 0 to 10 in turns."""
    clock, effects = SystemClock(), Effects()
    due_ms = await _make_storm(stack, schedules)
    await asyncio.sleep(max(due_ms - clock.wall_ms(), 0) / 1_000)
    while len(effects.all) < schedules and clock.wall_ms() < due_ms + 1_000 * _STORM_S:
        await asyncio.sleep(0.2)
        effects.read(map(stack.log_of, stack.processors))
    after_ms = [effect.at_ms - due_ms for effect in effects.all]
    ids = {effect.job_id for effect in effects.all}
    return {
        "expected": schedules,
        "missed": schedules - len(ids),
        "doubled": len(effects.all) - len(ids),
        "last_started_ms": max(after_ms, default=0),
    }


async def _make_storm(stack: Stack, schedules: int) -> int:
    """Return when they are all due, in Unix milliseconds. Raise `RuntimeError` if they were not made by then."""
    clock, urls = SystemClock(), list(stack.urls.values())
    # How fast schedules are made here: none may be due before all are there.
    began_ms = clock.wall_ms()
    await make_schedules(urls, [_once("tried", number, began_ms + _DAY_MS) for number in range(_TRIED)])
    took_ms = clock.wall_ms() - began_ms
    due_ms = clock.wall_ms() + round(_ALLOWANCE * took_ms * schedules / _TRIED) + _PAUSE_MS
    await make_schedules(urls, [_once("storm", number, due_ms) for number in range(schedules)])
    if clock.wall_ms() > due_ms:
        raise RuntimeError(f"{schedules:,} schedules were not made by the time that they were due")
    return due_ms


def _once(prefix: str, number: int, due_ms: int) -> dict[str, Any]:
    job = {"definition": "noop", "priority": number % 11}
    return {"name": f"{prefix}-{number:06d}", "trigger": {"type": "once", "at": format_instant(due_ms)}, "job": job}


# When the leader ends

_PHASES = 50
_TAKEOVER_S = 60


async def measure_failover(stack: Stack, plan: Mapping[signal.Signals, int]) -> dict[str, Figures]:
    """So many times each of those signals, to whichever replica leads, while something is due every 20 ms.

    ``dispatch_…`` is from the signal to the journal entry with the next term's first dispatches. What a leader still
    decides after SIGTERM, or wakes up to after SIGSTOP, is not in it.
    """
    await make_schedules(list(stack.urls.values()), interval_bodies(_PHASES))
    async with open_database(stack) as database:
        return {
            each.name: _takeover_figures([await _take_over_ms(stack, database, each) for _ in range(times)])
            for each, times in plan.items()
            if times
        }


async def _take_over_ms(stack: Stack, database: Any, number: signal.Signals) -> int:
    """Return the time to the first dispatch, once all replicas are there again."""
    await asyncio.sleep(1)  # quiet again after the one before
    name, term = await leading(stack, database)
    newest = (await database["journal"].find_one({}, ["_id"], sort=[("_id", -1)]))["_id"]
    at_ms = SystemClock().wall_ms()
    stack.replicas[name].signal(number)
    async with asyncio.timeout(_TAKEOVER_S):
        dispatched_at_ms = await _next_dispatch_ms(database, newest, term)
    if number is signal.SIGSTOP:
        stack.replicas[name].signal(signal.SIGCONT)
    else:
        await stack.replicas[name].wait()
        await stack.start_replica(name)
    await stack.ready(name)
    return dispatched_at_ms - at_ms


async def _next_dispatch_ms(database: Any, after: Any, term: int) -> int:
    """Return when a later term than that dispatched for the first time, by a journal entry ``after`` that one."""
    later = {"_id": {"$gt": after}, "term": {"$gt": term}, "kind": "decisions"}
    while True:
        async for entry in database["journal"].find(later).sort("_id", 1):
            if any(row[0] == "dispatch" for row in entry["decisions"]):
                return int(entry["at_ms"])
        await asyncio.sleep(0.005)


def _takeover_figures(took_ms: Sequence[int]) -> Figures:
    figures = {f"dispatch_p{part}_ms": percentile(took_ms, part) for part in (50, 99)}
    return {"kills": len(took_ms), **figures, "dispatch_max_ms": max(took_ms)}
