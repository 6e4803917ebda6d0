"""How long a partition stands still that moves from one database to another of the same server: from the hold in the
source until the target opens. ``python -m tests.bench.partition_moves --runs 3``.

The partition has jobs that wait, schedules that fire every second, and what has ended lately. Its leader is played: it
advances cursors and inserts and ends jobs until it sees the hold, and releases it then.
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from pymongo import InsertOne, UpdateOne

from hascheduler.clock import SystemClock
from hascheduler.embedded.servers import start_mongod
from hascheduler.model.documents.hold import decode_hold, encode_hold
from hascheduler.model.documents.job import new_job_document
from hascheduler.model.documents.verdict import verdict_document
from hascheduler.model.hold import Hold, partition_key
from hascheduler.model.job import JobState, fire_job_id
from hascheduler.model.partition import partition_of, with_partition
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import Verdict, VerdictRun
from hascheduler.mongo.connection import Database, connect, open_database
from hascheduler.mongo.schema.indexes import ensure_collections_and_indexes
from hascheduler.mongo.tenants import MongoTenantStore
from hascheduler.shards.layout import Layout
from hascheduler.shards.moves import PartitionMover, ShardDocuments
from hascheduler.simulate.report import percentile
from tests.factories import make_job, make_schedule

_TENANT = "moves"
_PARTITION = partition_of(_TENANT)
_KEY = partition_key(_PARTITION)
_RETENTION_MS = 3_600_000
_LATE_MS = 15_000
_AT_ONCE = 1_000
_TICKS_A_SECOND = 10
_LOOK_S = 0.02


@dataclass(frozen=True)
class PartitionPlan:
    """What the partition has at the begin of a move."""

    pending: int = 10_000
    schedules: int = 1_000
    ended: int = 30_000
    verdicts: int = 10_000


@dataclass(slots=True)
class _TimedHolds:
    """`hascheduler.ports.holds.HoldStore`, which remembers when its holds were put and lifted."""

    database: Database
    held_at: float = 0.0
    opened_at: float = 0.0

    async def get(self, key: str) -> Hold | None:
        found = await self.database.holds.find_one({"_id": key})
        return None if found is None else decode_hold(key, found)

    async def all(self) -> Mapping[str, Hold]:
        return {each["_id"]: decode_hold(each["_id"], each) async for each in self.database.holds.find()}

    async def put(self, hold: Hold) -> bool:
        if not hold.is_held:
            self.opened_at = time.perf_counter()
        await self.database.holds.replace_one(
            {"_id": hold.key, "rev": {"$lt": hold.rev}}, encode_hold(hold), upsert=True
        )
        if hold.is_held and hold.rev == 2:
            self.held_at = time.perf_counter()
        return True


@dataclass(slots=True)
class _Home:
    """What a mover asks of `GatewayBoard` and of `LayoutStore`, in memory."""

    layout: Layout = field(default_factory=lambda: Layout(1, ("a", "b"), (0,) * 256).beginning({_PARTITION: 1}))
    leading: bool = True

    async def all_know(self, index: int) -> bool:
        return True

    async def all_have(self, epoch: int, patience_s: float) -> bool:
        await asyncio.sleep(_LOOK_S)
        return True

    async def get(self) -> Layout | None:
        return self.layout

    async def replace(self, epoch: int, layout: Layout) -> bool:
        self.layout = layout if self.layout.epoch == epoch else self.layout
        return self.layout is layout


async def measured_move(databases: Sequence[Database], plan: PartitionPlan) -> dict[str, float]:
    await _filled(databases[0], plan)
    before = await _counts(databases)
    home: Any = _Home()
    holds = [_TimedHolds(each) for each in databases]
    shards = [
        ShardDocuments(MongoTenantStore(database, _RETENTION_MS), hold)
        for database, hold in zip(databases, holds, strict=True)
    ]

    async def keeps_to_parts() -> bool:
        return True

    mover = PartitionMover(home, home, shards, keeps_to_parts=keeps_to_parts, clock=SystemClock(), late_ms=_LATE_MS)
    began_at = time.perf_counter()
    async with _leaders(databases):
        while await mover.step(_PARTITION):  # noqa: ASYNC110  # it is what takes the steps
            await asyncio.sleep(_LOOK_S)
    rest_at = time.perf_counter()
    after = await _counts(databases)
    assert sum(after[0].values()) == 0, after
    assert all(after[1][name] >= before[0][name] for name in before[0]), (before, after)
    return {
        "copy_ms": (holds[0].held_at - began_at) * 1_000,
        "pause_ms": (holds[1].opened_at - holds[0].held_at) * 1_000,
        "rest_ms": (rest_at - holds[1].opened_at) * 1_000,
    }


@asynccontextmanager
async def _leaders(databases: Sequence[Database]) -> AsyncIterator[None]:
    is_over = asyncio.Event()  # no cancellation: the driver may lose one
    async with asyncio.TaskGroup() as tasks:
        for database in databases:
            tasks.create_task(_lead(database, is_over))
        try:
            yield
        finally:
            is_over.set()


async def _lead(database: Database, is_over: asyncio.Event) -> None:
    """Decide, while the partition is not held; release what is held."""
    names = [each["_id"] async for each in database.schedules.find({}, ["_id"])]
    tick = 0
    while not is_over.is_set():
        found = await database.holds.find_one({"_id": _KEY})
        hold = None if found is None else decode_hold(_KEY, found)
        if hold is not None and hold.is_held:
            if hold.is_awaited:
                await database.holds.update_one({"_id": _KEY, "rev": hold.rev}, {"$set": {"released": hold.rev}})
            await asyncio.sleep(_LOOK_S)
        elif names:
            at_ms = SystemClock().wall_ms()
            due = names[tick % _TICKS_A_SECOND :: _TICKS_A_SECOND]
            fired = [_job(fire_job_id(name, at_ms), at_ms, schedule=name, nominal_ms=at_ms) for name in due]
            if fired:
                await database.jobs.insert_many(fired, ordered=False)
                await database.schedules.bulk_write(
                    [UpdateOne({"_id": name}, {"$set": {"cursor_ms": at_ms}}) for name in due], ordered=False
                )
                ended = {"$set": {"state": JobState.SUCCEEDED.value, "finished_at_ms": at_ms}, "$inc": {"rev": 3}}
                await database.jobs.update_many({"_id": {"$in": [each["_id"] for each in fired]}}, ended)
            tick += 1
            await asyncio.sleep(1 / _TICKS_A_SECOND)
        else:
            await asyncio.sleep(_LOOK_S)


async def _filled(database: Database, plan: PartitionPlan) -> None:
    now_ms = SystemClock().wall_ms()
    ended = {"state": JobState.SUCCEEDED.value, "rev": 4, "finished_at_ms": now_ms - 60_000}
    jobs = [_job(with_partition(f"job:{n:08d}", _TENANT), now_ms - 60_000) for n in range(plan.pending)]
    jobs += [{**_job(f"done:{n:08d}", now_ms - 120_000), **ended} for n in range(plan.ended)]
    names = [f"moved-{n:05d}" for n in range(plan.schedules)]
    schedules = []
    for name in names:
        schedule = make_schedule(name)
        schedules.append({**schedule, "job": {**schedule["job"], "tenant": _TENANT}, "cursor_ms": now_ms})
    times = [(names[n % len(names)], WallMs(now_ms - 120_000 + n)) for n in range(plan.verdicts)]
    verdicts = [
        verdict_document(VerdictRun(name, Verdict.MISSED, at_ms, at_ms, 1), at_ms, WallMs(now_ms))
        for name, at_ms in times
    ]
    for collection, documents in (("jobs", jobs), ("schedules", schedules), ("verdicts", verdicts)):
        for start in range(0, len(documents), _AT_ONCE):
            writes = [InsertOne(each) for each in documents[start : start + _AT_ONCE]]
            await database[collection].bulk_write(writes, ordered=False)


def _job(id: str, at_ms: int, **fields: Any) -> dict[str, Any]:
    payload = {"to": "someone@example.com", "template": "welcome", "n": 17}
    return {**new_job_document(make_job(id, tenant=_TENANT, payload=payload)), "submitted_at_ms": at_ms, **fields}


async def _counts(databases: Sequence[Database]) -> Sequence[Mapping[str, int]]:
    names = ("jobs", "schedules", "verdicts")
    return [{name: await database[name].count_documents({}) for name in names} for database in databases]


async def _run(runs: int, plan: PartitionPlan) -> dict[str, Any]:
    found: list[dict[str, float]] = []
    async with start_mongod() as mongod, connect(mongod.uri) as client:
        for run in range(runs):
            databases = [open_database(client, f"moves-{run}-{name}") for name in ("a", "b")]
            for database in databases:
                await ensure_collections_and_indexes(database)
            found.append(await measured_move(databases, plan))
            print({name: round(value) for name, value in found[-1].items()}, file=sys.stderr)
            for database in databases:
                await client.drop_database(database.name)
    pauses = sorted(round(each["pause_ms"]) for each in found)
    return {
        "pause_min_ms": pauses[0],
        "pause_p50_ms": percentile(pauses, 50),
        "copy_min_ms": round(min(each["copy_ms"] for each in found)),
        "rest_min_ms": round(min(each["rest_ms"] for each in found)),
    }


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--runs", type=int, default=3)
    arguments.add_argument("--pending", type=int, default=PartitionPlan.pending)
    arguments.add_argument("--schedules", type=int, default=PartitionPlan.schedules)
    arguments.add_argument("--ended", type=int, default=PartitionPlan.ended)
    given = arguments.parse_args()
    plan = PartitionPlan(given.pending, given.schedules, given.ended)
    print(json.dumps(asyncio.run(_run(given.runs, plan))))


if __name__ == "__main__":
    main()
