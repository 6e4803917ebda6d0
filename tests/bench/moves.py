"""What a move of a partition to another shard costs its tenant.

The tenant has many jobs that wait and schedules that fire, and its partition moves from shard to shard. The pause is
the longest time between two starts of its jobs from the begin of a move until all of it is there. ``fires_behind_max``
is how many jobs of fires waited when a move began: if many, the machine does not carry the load.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from pymongo import AsyncMongoClient

from hascheduler.client import AsyncScheduler
from hascheduler.client.options import BatchJob
from hascheduler.clock import SystemClock
from hascheduler.demo.evidence import Effects
from hascheduler.embedded.stack import Stack
from hascheduler.errors import WorldError
from hascheduler.model.job import TERMINAL, JobState
from hascheduler.model.partition import partition_of, shard_database
from hascheduler.shards.home import LayoutStore
from hascheduler.shards.layout import Layout
from hascheduler.simulate.report import percentile
from tests.bench.results import Figures
from tests.bench.stacks import DATABASE, Crew, interval_bodies, make_schedules, on_stack

_SHARDS = 4
_PENDING = 10_000
_REBALANCE_AFTER = "1s"
"""So that each shard is soon led where it should be."""
_TENANT = "moves"
_BATCH = 500
_AROUND_MS = 2_000
_MOVE_SETTLE_S = 6
_CAUGHT_UP_S = 10
_MOVE_PATIENCE_S = 120


def measure_slot_moves(schedules: int, slots: int, moves: int) -> dict[str, Figures]:
    """A tenant's jobs wait, its ``schedules`` fire every second, and its partition moves from shard to shard."""

    async def measure(stack: Stack) -> Figures:
        async with (
            AsyncMongoClient[dict[str, Any]](stack.mongodb_uri) as client,
            AsyncScheduler(next(iter(stack.urls.values()))) as scheduler,
        ):
            databases = [client[shard_database(name, index)] for index in range(_SHARDS)]
            try:
                return await _measure_moves(stack, scheduler, databases, schedules, moves)
            except TimeoutError:
                raise WorldError(f"not done in {_MOVE_PATIENCE_S} s: too much for this machine") from None

    name = f"{DATABASE}-moves"
    settings = {"HASCHEDULER_DATABASE": name, "HASCHEDULER_REBALANCE_AFTER": _REBALANCE_AFTER}
    label = f"{_PENDING:,} pending, {schedules:,} schedules every second"
    return {label: on_stack("slot-moves", Crew(3, _SHARDS, slots, _SHARDS), measure, settings)}


async def _measure_moves(
    stack: Stack, scheduler: AsyncScheduler, databases: Sequence[Any], schedules: int, moves: int
) -> Figures:
    clock, effects, outputs = SystemClock(), Effects(), [stack.log_of(name) for name in stack.processors]
    waiting = [BatchJob(definition="nowhere", tenant=_TENANT) for _ in range(_BATCH)]
    for _ in range(_PENDING // _BATCH):
        await scheduler.submit_many(waiting)
    bodies = interval_bodies(schedules, "moved", tenant=_TENANT)
    # Else the first of them fall behind while the others are made.
    await scheduler.cluster.pause("they begin together", schedules_only=True)
    await make_schedules(list(stack.urls.values()), bodies)
    await scheduler.cluster.resume()
    await asyncio.sleep(_MOVE_SETTLE_S)
    store = LayoutStore(databases[0])
    behind: list[int] = []
    began_ms: list[int] = []
    pauses_ms: list[int] = []
    took_ms: list[int] = []
    for _ in range(moves):
        behind.append(await _caught_up(databases, schedules))
        layout = await _layout(store)
        to = (layout.index_of(_TENANT) + 1) % len(databases)
        from_ms = clock.wall_ms()
        began_ms.append(from_ms)
        took_ms.append(await _move(store, layout, to) - from_ms)
        await asyncio.sleep(_MOVE_SETTLE_S)
        effects.read(outputs)
        pauses_ms.append(_longest(effects, from_ms - _AROUND_MS // 4, from_ms + took_ms[-1] + _AROUND_MS))
    undisturbed_ms = _longest(effects, began_ms[0] - _AROUND_MS, began_ms[0])
    await _drained(scheduler, databases)
    effects.read(outputs)
    missed, doubled = _missed_and_doubled(effects, schedules)
    left = sum([await database.jobs.count_documents({"definition": "nowhere"}) for database in databases])
    return {
        "moves": moves,
        "fires_behind_max": max(behind),
        "pause_p50_ms": percentile(pauses_ms, 50),
        "pause_max_ms": max(pauses_ms),
        "undisturbed_ms": undisturbed_ms,
        "moved_p50_ms": percentile(took_ms, 50),
        "moved_max_ms": max(took_ms),
        "lost_pending": _PENDING - left,
        "missed": missed,
        "doubled": doubled,
    }


async def _caught_up(databases: Sequence[Any], schedules: int) -> int:
    """How many jobs of fires wait once they are no more than half of the schedules, or after ten seconds."""
    waiting = {"state": JobState.PENDING.value, "schedule": {"$gt": ""}}
    behind = 0
    for _ in range(_CAUGHT_UP_S):
        behind = sum([await database.jobs.count_documents(waiting) for database in databases])
        if behind <= schedules // 2:
            break
        await asyncio.sleep(1)
    return behind


async def _drained(scheduler: AsyncScheduler, databases: Sequence[Any]) -> None:
    """Nothing fires any more, and all that has fired has run: what has not by then is missed."""
    await scheduler.cluster.pause("the moves are over", schedules_only=True)
    fired = {"schedule": {"$gt": ""}, "state": {"$nin": [state.value for state in TERMINAL]}}
    async with asyncio.timeout(_MOVE_PATIENCE_S):
        while True:
            left = [await database.jobs.find_one(fired, {"_id": True}) for database in databases]
            if not any(left):
                break
            await asyncio.sleep(1)
    await asyncio.sleep(_AROUND_MS / 1_000)


async def _layout(store: LayoutStore) -> Layout:
    stored = await store.get()
    if stored is None:
        raise WorldError("the deployment has no layout")
    return stored


async def _move(store: LayoutStore, layout: Layout, to: int) -> int:
    """Return when all of it is there, by the wall clock."""
    partition = partition_of(_TENANT)
    await store.replace(layout.epoch, layout.beginning({partition: to}))
    async with asyncio.timeout(_MOVE_PATIENCE_S):
        while not (await _layout(store)).is_at_rest(partition):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return SystemClock().wall_ms()


def _longest(effects: Effects, from_ms: int, until_ms: int) -> int:
    """The longest time between two starts in that span."""
    starts = sorted(effect.at_ms for effect in effects.all if from_ms <= effect.at_ms < until_ms)
    return max((after - before for before, after in pairwise(starts)), default=until_ms - from_ms)


def _missed_and_doubled(effects: Effects, schedules: int) -> tuple[int, int]:
    """Of each schedule, between its first and its last nominal time but for the last seconds."""
    times: dict[str, list[int]] = {}
    runs = Counter(effect.job_id for effect in effects.all)
    for effect in effects.all:
        if effect.nominal_ms is not None:
            times.setdefault(effect.schedule, []).append(effect.nominal_ms)
    missed = sum((max(seen) - min(seen)) // 1_000 + 1 - len(set(seen)) for seen in times.values())
    missed += schedules - len(times)
    return missed, sum(count - 1 for count in runs.values())
