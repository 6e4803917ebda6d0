"""Schedules that fire: whether each nominal time has its effect, how late, in which order, and how soon another leader
decides when one ends.

The lag is from the nominal time to the start of the handler, by the handler's own reading of the clock.
"""

import asyncio
import signal
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from pymongo import AsyncMongoClient

from hascheduler.clock import SystemClock
from hascheduler.demo.evidence import Effects
from hascheduler.embedded.stack import Stack
from hascheduler.errors import WorldError
from hascheduler.model.values.instants import format_instant
from hascheduler.simulate.report import percentile
from tests.bench.results import Figures
from tests.bench.stacks import interval_bodies, leading, make_schedules

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


async def measure_storm(stack: Stack, database: str, schedules: int) -> Figures:
    """One-off schedules that are all due at one instant, with priorities from 0 to 10 in turns and one fairness key.

    The order of the policy is the more urgent first, and of equals the first id. The share of pairs in that order would
    be 50 % by chance; what is already with a processor is not overtaken.
    """
    due_ms, effects = await make_storm(stack, schedules), Effects()
    await storm_over(stack, due_ms, schedules, effects)
    async with AsyncMongoClient[dict[str, Any]](stack.mongodb_uri) as client:
        keys = {
            job["_id"]: (-job["priority"], job["submitted_at_ms"], job["sequence"], job["_id"])
            async for job in client[database]["jobs"].find({}, ["priority", "submitted_at_ms", "sequence"])
        }
    after_ms = [effect.at_ms - due_ms for effect in effects.all]
    ids = {effect.job_id for effect in effects.all}
    in_order = percent_in_order((effect.at_ms, keys[effect.job_id]) for effect in effects.all if effect.job_id in keys)
    return {
        "expected": schedules,
        "missed": schedules - len(ids),
        "doubled": len(effects.all) - len(ids),
        "half_started_ms": percentile(after_ms, 50),
        "last_started_ms": max(after_ms, default=0),
        "pairs_by_policy_percent": in_order,
    }


async def make_storm(stack: Stack, schedules: int) -> int:
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


async def storm_over(stack: Stack, due_ms: int, schedules: int, effects: Effects) -> None:
    """Wait until so many jobs have started, by their ``effects``, or for two minutes."""
    clock = SystemClock()
    await asyncio.sleep(max(due_ms - clock.wall_ms(), 0) / 1_000)
    while len(effects.all) < schedules and clock.wall_ms() < due_ms + 1_000 * _STORM_S:
        await asyncio.sleep(0.2)
        effects.read(map(stack.log_of, stack.processors))


def _once(prefix: str, number: int, due_ms: int) -> dict[str, Any]:
    job = {"definition": "noop", "priority": number % 11}
    return {"name": f"{prefix}-{number:06d}", "trigger": {"type": "once", "at": format_instant(due_ms)}, "job": job}


def percent_in_order(started: Iterable[tuple[int, Any]]) -> float:
    """Of all pairs of ``(instant, key)`` the share that happened in the order of their keys, in O(n log n).

    Pairs with one key, or at one instant, are in no order.
    """
    right = wrong = 0
    earlier: list[Any] = []
    for _, group in groupby(sorted(started, key=lambda one: one[0]), key=lambda one: one[0]):
        keys = [key for _, key in group]
        for key in keys:
            right += bisect_left(earlier, key)
            wrong += len(earlier) - bisect_right(earlier, key)
        for key in keys:
            insort(earlier, key)
    return round(100 * right / (right + wrong), 2) if right + wrong else 100.0


# When the leader ends

_PHASES = 50
_TAKEOVER_S = 60


async def measure_failover(stack: Stack, database: str, plan: Mapping[signal.Signals, int]) -> dict[str, Figures]:
    """So many times each of those signals, to whichever replica leads, while something is due every 20 ms.

    ``dispatch_…`` is from the signal to the journal entry with the next term's first dispatches, ``start_…`` to the
    first start of one of those jobs. What a leader still decides after SIGTERM, or wakes up to after SIGSTOP, is in
    neither.
    """
    await make_schedules(list(stack.urls.values()), interval_bodies(_PHASES))
    async with AsyncMongoClient[dict[str, Any]](stack.mongodb_uri) as client:
        takeovers = _Takeovers(stack, client[database])
        return {
            each.name: _takeover_figures([await takeovers.measure(each) for _ in range(times)])
            for each, times in plan.items()
            if times
        }


async def next_dispatch(database: Any, after: Any, term: int) -> tuple[int, set[str]]:
    """When a later term than that dispatched for the first time, by a journal entry ``after`` that one, and which
    jobs."""
    later = {"_id": {"$gt": after}, "term": {"$gt": term}, "kind": "decisions"}
    while True:
        async for entry in database["journal"].find(later).sort("_id", 1):
            ids = {row[1] for row in entry["decisions"] if row[0] == "dispatch"}
            if ids:
                return int(entry["at_ms"]), ids
        await asyncio.sleep(0.005)


async def dispatch_pause_ms(database: Any, after: Any, term: int) -> int:
    """From the last dispatch before that term, by a journal entry ``after`` that one, to its first."""
    first_ms, _ = await next_dispatch(database, after, term - 1)
    earlier = {"_id": {"$gt": after}, "term": {"$lt": term}, "kind": "decisions"}
    async for entry in database["journal"].find(earlier).sort("_id", -1):
        if any(row[0] == "dispatch" for row in entry["decisions"]):
            return first_ms - int(entry["at_ms"])
    raise WorldError(f"nothing was dispatched before term {term}")


async def journal_end(database: Any) -> Any:
    """The id of the newest entry."""
    return (await database["journal"].find_one({}, ["_id"], sort=[("_id", -1)]))["_id"]


class _Takeovers:
    def __init__(self, stack: Stack, database: Any) -> None:
        self._stack = stack
        self._database = database
        self._clock = SystemClock()
        self._effects = Effects()

    async def measure(self, number: signal.Signals) -> tuple[int, int]:
        """To the first dispatch, and to the first start, in ms; then all replicas are there again."""
        await asyncio.sleep(1)  # quiet again after the one before
        name, term = await leading(self._stack, self._database)
        newest = await journal_end(self._database)
        self._read()
        self._effects.all.clear()
        at_ms = self._clock.wall_ms()
        self._stack.replicas[name].signal(number)
        async with asyncio.timeout(_TAKEOVER_S):
            dispatched_at_ms, ids = await next_dispatch(self._database, newest, term)
            started_at_ms = await self._started(ids)
        if number is signal.SIGSTOP:
            self._stack.replicas[name].signal(signal.SIGCONT)
        else:
            await self._stack.replicas[name].wait()
            await self._stack.start_replica(name)
        await self._stack.ready(name)
        return dispatched_at_ms - at_ms, started_at_ms - at_ms

    def _read(self) -> None:
        self._effects.read(map(self._stack.log_of, self._stack.processors))

    async def _started(self, ids: set[str]) -> int:
        while True:
            self._read()
            started = [each.at_ms for each in self._effects.all if each.job_id in ids]
            if started:
                return min(started)
            await asyncio.sleep(0.005)


def _takeover_figures(took: Sequence[tuple[int, int]]) -> Figures:
    figures: dict[str, Any] = {"kills": len(took)}
    for name, values in zip(("dispatch", "start"), zip(*took, strict=True), strict=True):
        figures |= {f"{name}_p{part}_ms": percentile(values, part) for part in (50, 99)}
        figures[f"{name}_max_ms"] = max(values)
    return figures
