"""A partition that moves from a real database to one that no session covers as well: as between two MongoDBs."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from pymongo import UpdateOne

from hascheduler.clock import SystemClock
from hascheduler.model.documents.job import new_job_document
from hascheduler.model.documents.leadership import decode_hold
from hascheduler.model.documents.verdict import verdict_document
from hascheduler.model.job import JobState, fire_job_id
from hascheduler.model.partition import partition_key, partition_of, with_partition
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import Verdict, VerdictRun
from hascheduler.mongo.connection import Database
from hascheduler.mongo.holds import MongoHoldStore
from hascheduler.mongo.tenants import MongoTenantStore
from hascheduler.ports.tenants import MARK
from hascheduler.shards.home import LayoutStore
from hascheduler.shards.layout import Layout
from hascheduler.shards.moves import PartitionMover, ShardDocuments
from tests.factories import make_job, make_schedule

pytestmark = pytest.mark.real

_TENANT = "moves"
_PARTITION = partition_of(_TENANT)
_KEY = partition_key(_PARTITION)
_PENDING, _ENDED, _SCHEDULES, _VERDICTS = 700, 900, 20, 40
_RETENTION_MS = 3_600_000
_LATE_MS = 15_000
_LOOK_S = 0.02
_FIRE_S = 0.1
_PATIENCE_S = 60


class _Board:
    """What the mover asks of a board on which all processes know the newest layout at once."""

    leading = True

    async def all_know(self, index: int) -> bool:
        return True

    async def all_have(self, epoch: int, patience_s: float) -> bool:
        return True


async def test_all_of_a_partition_moves_between_two_mongodbs(two_mongodbs: Sequence[Database]) -> None:
    here, there = two_mongodbs
    await _fill(here)
    layouts, board = LayoutStore(here), _Board()
    await layouts.create(Layout(1, ("a", "b"), (0,) * 256).beginning({_PARTITION: 1}))
    shards = [ShardDocuments(MongoTenantStore(each, _RETENTION_MS), MongoHoldStore(each)) for each in two_mongodbs]
    home: Any = board
    mover = PartitionMover(home, layouts, shards, keeps_to_parts=_always, clock=SystemClock(), late_ms=_LATE_MS)
    is_over = asyncio.Event()  # no cancellation: the driver may lose one
    async with asyncio.timeout(_PATIENCE_S), asyncio.TaskGroup() as tasks:
        leads = tasks.create_task(_lead(here, is_over))
        tasks.create_task(_lead(there, is_over, schedules=0))
        try:
            while await mover.step(_PARTITION):  # noqa: ASYNC110  # it is what takes the steps
                await asyncio.sleep(_LOOK_S)
        finally:
            is_over.set()
    fired = leads.result()
    for collection in ("jobs", "schedules", "verdicts"):
        assert await here[collection].count_documents({}) == 0
    for collection, count in (("schedules", _SCHEDULES), ("verdicts", _VERDICTS)):
        assert await there[collection].count_documents({MARK: {"$gt": 0}}) == count
    assert fired, "the leader went on while the partition was copied"
    assert await there.jobs.count_documents({"state": "pending"}) == _PENDING
    assert await there.jobs.count_documents({}) == _PENDING + _ENDED + fired


async def _always() -> bool:
    return True


async def _lead(database: Database, is_over: asyncio.Event, schedules: int = _SCHEDULES) -> int:
    """Fire all schedules again and again, and release the partition if it is held. Return how many fires there were."""
    names = [f"moved-{number}" for number in range(schedules)]
    fired = 0
    while not is_over.is_set():
        found = await database.holds.find_one({"_id": _KEY})
        hold = None if found is None else decode_hold(_KEY, found)
        if hold is not None and hold.is_held:
            if hold.is_awaited:
                await database.holds.update_one({"_id": _KEY, "rev": hold.rev}, {"$set": {"released": hold.rev}})
        elif names:
            at_ms = SystemClock().wall_ms()
            jobs = [_job(fire_job_id(name, at_ms), at_ms, schedule=name, nominal_ms=at_ms) for name in names]
            await database.jobs.insert_many(jobs, ordered=False)
            cursors = [UpdateOne({"_id": name}, {"$set": {"cursor_ms": at_ms}}) for name in names]
            await database.schedules.bulk_write(cursors, ordered=False)
            ended = {"$set": {"state": JobState.SUCCEEDED.value, "finished_at_ms": at_ms}, "$inc": {"rev": 3}}
            await database.jobs.update_many({"_id": {"$in": [each["_id"] for each in jobs]}}, ended)
            fired += len(jobs)
            await asyncio.sleep(_FIRE_S)
        await asyncio.sleep(_LOOK_S)
    return fired


async def _fill(database: Database) -> None:
    now_ms = SystemClock().wall_ms()
    ended = {"state": JobState.SUCCEEDED.value, "rev": 4, "finished_at_ms": now_ms - 60_000}
    jobs = [_job(with_partition(f"job:{number:08d}", _TENANT), now_ms - 60_000) for number in range(_PENDING)]
    jobs += [{**_job(f"done:{number:08d}", now_ms - 120_000), **ended} for number in range(_ENDED)]
    await database.jobs.insert_many(jobs)
    schedules = [make_schedule(f"moved-{number}") for number in range(_SCHEDULES)]
    await database.schedules.insert_many(
        [{**each, "job": {**each["job"], "tenant": _TENANT}, "cursor_ms": now_ms} for each in schedules]
    )
    times = [(f"moved-{number % _SCHEDULES}", WallMs(now_ms - 120_000 + number)) for number in range(_VERDICTS)]
    runs = [VerdictRun(name, Verdict.MISSED, at_ms, at_ms, 1) for name, at_ms in times]
    await database.verdicts.insert_many([verdict_document(run, run.last_ms, WallMs(now_ms)) for run in runs])


def _job(id: str, at_ms: int, **fields: Any) -> dict[str, Any]:
    return {**new_job_document(make_job(id, tenant=_TENANT)), "submitted_at_ms": at_ms, **fields}
