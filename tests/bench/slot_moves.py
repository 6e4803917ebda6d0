"""What a slot that moves to another shard costs its tenant: how long nothing of it starts, and that nothing is missed.

One tenant has many jobs that wait for a processor that is not there, and schedules that fire every second, evenly
spread over it. Its slot moves from shard to shard, again and again, while everything runs. The pause is the longest
time between two starts of its jobs, from the begin of a move until all of the slot is there, by the handler's clock;
what it is without a move is told beside it. Until then the tenant's submits are refused.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from pymongo import AsyncMongoClient

from hascheduler.client import AsyncScheduler
from hascheduler.client.bodies import BatchJob
from hascheduler.clock import SystemClock
from hascheduler.demo.evidence import Effects
from hascheduler.embedded.stack import Stack
from hascheduler.errors import WorldError
from hascheduler.model.routing import Routing, shard_database, slot_of
from hascheduler.model.values.instants import format_instant
from hascheduler.mongo.routing import MongoRoutingStore
from hascheduler.simulate.report import percentile
from tests.bench.figures import Figures
from tests.bench.made_schedules import make_schedules
from tests.bench.shards import SHARDS
from tests.bench.stacks import DATABASE, Crew, on_stack

_TENANT = "moves"
_BATCH = 500
_AROUND_MS = 2_000
_SETTLE_S = 6
_PATIENCE_S = 120


@dataclass(frozen=True, slots=True)
class MovePlan:
    """``pending`` jobs and ``schedules`` of one tenant, whose slot moves so many times."""

    pending: int
    schedules: int
    moves: int


def measure_slot_moves(plan: MovePlan) -> dict[str, Figures]:
    async def measure(stack: Stack) -> Figures:
        async with AsyncMongoClient[dict[str, Any]](stack.mongodb_uri) as client:
            databases = [client[shard_database(_database(), index)] for index in range(SHARDS)]
            return await _measure(stack, databases, plan)

    settings = {"HASCHEDULER_DATABASE": _database(), "HASCHEDULER_REBALANCE_AFTER": "1s"}
    label = f"{plan.pending:,} pending, {plan.schedules:,} schedules"
    return {label: on_stack("slot-moves", Crew(3, SHARDS, 32, SHARDS), measure, settings)}


def _database() -> str:
    return f"{DATABASE}-moves"


async def _measure(stack: Stack, databases: Sequence[Any], plan: MovePlan) -> Figures:
    clock, effects, outputs = SystemClock(), Effects(), [stack.log_of(name) for name in stack.processors]
    async with AsyncScheduler(next(iter(stack.urls.values()))) as scheduler:
        waiting = [BatchJob(definition="nowhere", tenant=_TENANT) for _ in range(_BATCH)]
        for _ in range(plan.pending // _BATCH):
            await scheduler.submit_many(waiting)
    begin_ms = clock.wall_ms()
    bodies = [
        {
            "name": f"moved-{number}",
            "trigger": {
                "type": "interval",
                "every": "1s",
                "anchor": format_instant(begin_ms + 1_000 * number // plan.schedules),
            },
            "job": {"definition": "noop", "tenant": _TENANT},
        }
        for number in range(plan.schedules)
    ]
    await make_schedules(list(stack.urls.values()), bodies)
    await asyncio.sleep(_SETTLE_S)
    quiet_ms, store = clock.wall_ms(), MongoRoutingStore(databases[0])
    pauses_ms: list[int] = []
    open_ms: list[int] = []
    took_ms: list[int] = []
    for number in range(plan.moves):
        routing = await _routing(store)
        to = (routing.index_of(_TENANT) + 1 + number) % SHARDS
        from_ms = clock.wall_ms()
        opened_ms, there_ms = await _move(store, routing, to)
        open_ms.append(opened_ms - from_ms)
        took_ms.append(there_ms - from_ms)
        await asyncio.sleep(_SETTLE_S)
        effects.read(outputs)
        pauses_ms.append(_longest(effects, from_ms - _AROUND_MS // 4, from_ms + took_ms[-1] + _AROUND_MS))
    undisturbed_ms = _longest(effects, quiet_ms - _AROUND_MS, quiet_ms)
    await asyncio.sleep(_SETTLE_S)
    effects.read(outputs)
    missed, doubled = _missed_and_doubled(effects, plan)
    left = sum([await database.jobs.count_documents({"definition": "nowhere"}) for database in databases])
    return {
        "moves": plan.moves,
        "pause_p50_ms": percentile(pauses_ms, 50),
        "pause_max_ms": max(pauses_ms),
        "undisturbed_ms": undisturbed_ms,
        "open_p50_ms": percentile(open_ms, 50),
        "open_max_ms": max(open_ms),
        "moved_p50_ms": percentile(took_ms, 50),
        "moved_max_ms": max(took_ms),
        "lost_pending": plan.pending // _BATCH * _BATCH - left,
        "missed": missed,
        "doubled": doubled,
        "pauses_ms": pauses_ms,
    }


async def _routing(store: MongoRoutingStore) -> Routing:
    stored = await store.get()
    if stored is None:
        raise WorldError("the deployment has no routing")
    return stored


async def _move(store: MongoRoutingStore, routing: Routing, to: int) -> tuple[int, int]:
    """When it is decided there, and when all of it is there, by the wall clock."""
    slot, opened_ms = slot_of(_TENANT), 0
    await store.replace(routing.epoch, routing.beginning({slot: to}))
    async with asyncio.timeout(_PATIENCE_S):
        while not (now := await _routing(store)).is_at_rest(slot):
            if slot in now.leaving and not opened_ms:
                opened_ms = SystemClock().wall_ms()
            await asyncio.sleep(0.01)
    there_ms = SystemClock().wall_ms()
    return opened_ms or there_ms, there_ms


def _longest(effects: Effects, from_ms: int, until_ms: int) -> int:
    """The longest time between two starts in that span."""
    starts = sorted(effect.at_ms for effect in effects.all if from_ms <= effect.at_ms < until_ms)
    return max((after - before for before, after in pairwise(starts)), default=until_ms - from_ms)


def _missed_and_doubled(effects: Effects, plan: MovePlan) -> tuple[int, int]:
    """Of each schedule, between its first and its last nominal time but for the last seconds."""
    times: dict[str, list[int]] = {}
    runs = Counter(effect.job_id for effect in effects.all)
    for effect in effects.all:
        if effect.nominal_ms is not None:
            times.setdefault(effect.schedule, []).append(effect.nominal_ms)
    missed = sum((max(seen) - min(seen)) // 1_000 + 1 - len(set(seen)) for seen in times.values())
    missed += plan.schedules - len(times)
    return missed, sum(count - 1 for count in runs.values())
