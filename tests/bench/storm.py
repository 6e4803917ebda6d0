"""A great many one-off schedules that are all due at one instant: when the last one has started, and in which order.

They have priorities from 0 to 10 by turns, are otherwise alike, and are of one fairness key, so what the policy says
is: the more urgent first, and of equals the one whose job's id comes first. How much of that came to pass is judged
from the handlers' effects and the stored jobs alone: of all pairs that did not start in one millisecond, the share that
started in that order. By chance it would be 50 %; whatever is already with a processor is not overtaken.
"""

import asyncio
from typing import Any

from pymongo import AsyncMongoClient

from hascheduler.clock import SystemClock
from hascheduler.demo.evidence import Effects
from hascheduler.embedded.stack import Stack
from hascheduler.model.values.instants import format_instant
from hascheduler.simulate.report import percentile
from tests.bench.figures import Figures
from tests.bench.made_schedules import make_schedules
from tests.bench.order import percent_in_order

_TRIED = 200
_ALLOWANCE = 1.5
_PAUSE_MS = 5_000
_DAY_MS = 86_400_000
_PATIENCE_S = 120


async def measure_storm(stack: Stack, database: str, schedules: int) -> Figures:
    due_ms, effects = await make_storm(stack, schedules), Effects()
    await storm_over(stack, due_ms, schedules, effects)
    async with AsyncMongoClient[dict[str, Any]](stack.mongodb_uri) as client:
        keys = {
            job["_id"]: (-job["priority"], job["submitted_at_ms"], job["sequence"], job["_id"])
            async for job in client[database]["jobs"].find({}, ["priority", "submitted_at_ms", "sequence"])
        }
    after_ms = [effect.at_ms - due_ms for effect in effects.all]
    started = [(effect.at_ms, keys[effect.job_id]) for effect in effects.all if effect.job_id in keys]
    ids = {effect.job_id for effect in effects.all}
    return {
        "expected": schedules,
        "started": len(ids),
        "missed": schedules - len(ids),
        "doubled": len(effects.all) - len(ids),
        "first_started_ms": min(after_ms, default=0),
        "half_started_ms": percentile(after_ms, 50),
        "last_started_ms": max(after_ms, default=0),
        "pairs_by_priority_percent": percent_in_order((at_ms, key[0]) for at_ms, key in started),
        "pairs_by_policy_percent": percent_in_order(started),
    }


async def make_storm(stack: Stack, schedules: int) -> int:
    """When they are all due, in Unix milliseconds: some seconds from now. `RuntimeError` where that is too soon."""
    clock, urls = SystemClock(), list(stack.urls.values())
    # How fast schedules are made here: none may be due before all are there.
    began_ms = clock.wall_ms()
    await make_schedules(urls, [_body("tried", number, began_ms + _DAY_MS) for number in range(_TRIED)])
    took_ms = clock.wall_ms() - began_ms
    due_ms = clock.wall_ms() + round(_ALLOWANCE * took_ms * schedules / _TRIED) + _PAUSE_MS
    await make_schedules(urls, [_body("storm", number, due_ms) for number in range(schedules)])
    if clock.wall_ms() > due_ms:
        raise RuntimeError(f"{schedules:,} schedules were not made by the time that they were due")
    return due_ms


async def storm_over(stack: Stack, due_ms: int, schedules: int, effects: Effects) -> None:
    """Wait until so many jobs have started, by their ``effects``, or for long."""
    clock = SystemClock()
    await asyncio.sleep(max(due_ms - clock.wall_ms(), 0) / 1_000)
    while len(effects.all) < schedules and clock.wall_ms() < due_ms + 1_000 * _PATIENCE_S:
        await asyncio.sleep(0.2)
        effects.read(map(stack.log_of, stack.processors))


def _body(prefix: str, number: int, due_ms: int) -> dict[str, Any]:
    trigger = {"type": "once", "at": format_instant(due_ms)}
    return {
        "name": f"{prefix}-{number:06d}",
        "trigger": trigger,
        "job": {"definition": "noop", "priority": number % 11},
    }
