"""What a replica's memory is made of where there are many shards: by how many of them it hosts.

One replica is real; the others are modelled by their heartbeats in the home. So the real one hosts the shards that it
would be a candidate of among so many replicas. It runs on the ``mongo`` transport. In each shard the same number of
jobs wait, for a definition that no processor has.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pymongo import AsyncMongoClient

from hascheduler.client import AsyncScheduler
from hascheduler.clock import SystemClock
from hascheduler.embedded.servers import start_mongod
from hascheduler.model.documents.job import new_job_document
from hascheduler.model.partition import shard_database, shard_name, with_partition
from hascheduler.mongo.connection import connect, open_database
from hascheduler.mongo.replicas import MongoReplicaBoard
from hascheduler.schema.replica import ReplicaStatus
from hascheduler.shards.layout import Layout
from tests.bench.figures import Figures
from tests.bench.lone_replica import LoneReplica, start_lone_replica
from tests.bench.stacks import write_documents
from tests.factories import make_job, make_replica

REPLICAS = 20
CANDIDATES = 2
_DATABASE = "bench-shards-memory"
_BEAT_S = 1.0


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """So many ``shards`` with ``jobs`` each; the replica is looked at for ``seconds`` while it rests."""

    shards: int
    jobs: int
    seconds: int

    @property
    def names(self) -> Sequence[str]:
        return [shard_name("default", index) for index in range(self.shards)]


async def measure_shards_memory(plan: MemoryPlan, folder: Path) -> dict[str, Figures]:
    few = {"HASCHEDULER_SHARDS": str(plan.shards), "HASCHEDULER_SHARD_CANDIDATES": str(CANDIDATES)}
    every = {"HASCHEDULER_SHARDS": str(plan.shards)}
    async with start_mongod() as mongod, connect(mongod.uri) as client:
        async with modelled(client, plan), start_lone_replica(mongod.uri, _DATABASE, folder, few) as real:
            await real.leads()  # the databases are there
        await _write(client, plan)
        async with modelled(client, plan), start_lone_replica(mongod.uri, _DATABASE, folder, few) as real:
            some = await _measured(real, plan)
        async with start_lone_replica(mongod.uri, _DATABASE, folder, every) as real:
            all_of_them = await _measured(real, plan)
    jobs = f"{plan.shards} shards with {plan.jobs:,} jobs each"
    return {
        f"{jobs}, {CANDIDATES} candidates of {REPLICAS} replicas": some,
        f"{jobs}, all hosted": all_of_them,
    }


async def _measured(real: LoneReplica, plan: MemoryPlan) -> Figures:
    ready_s = await real.leads()
    resting = await real.rests(plan.seconds)
    return {**resting, "ready_s": ready_s, "hosted": await _hosted(real)}


async def _hosted(real: LoneReplica) -> int:
    async with AsyncScheduler(real.url) as scheduler:
        status: Any = await scheduler.cluster.status()
    return sum(shard["followed"] for shard in status["shards"])


@asynccontextmanager
async def modelled(client: AsyncMongoClient[Any], plan: MemoryPlan) -> AsyncIterator[None]:
    """The heartbeats of all replicas but the real one, for as long as this lasts."""
    board = MongoReplicaBoard(open_database(client, _DATABASE))
    beating = asyncio.create_task(_beat(board, modelled_replicas()), name="modelled replicas")
    try:
        yield
    finally:
        beating.cancel()
        await asyncio.wait([beating])


def modelled_replicas() -> Sequence[ReplicaStatus]:
    at_ms = SystemClock().wall_ms()
    names = [f"modelled-{number}" for number in range(1, REPLICAS)]
    return [make_replica(f"{name}.1", name=name, beat=0, started_at_ms=at_ms) for name in names]


async def _beat(board: MongoReplicaBoard, replicas: Sequence[ReplicaStatus]) -> None:
    beat = 0
    while True:
        beat += 1
        await asyncio.gather(*(board.beat(status.model_copy(update={"beat": beat})) for status in replicas))
        await asyncio.sleep(_BEAT_S)


async def _write(client: AsyncMongoClient[Any], plan: MemoryPlan) -> None:
    layout, at_ms = Layout.even(plan.names), SystemClock().wall_ms()
    for index in range(plan.shards):
        tenant = next(f"t{n}" for n in range(100_000) if layout.index_of(f"t{n}") == index)
        job = make_job(definition="nowhere", tenant=tenant, fairness_key=tenant, submitted_at_ms=at_ms)
        ids = (with_partition(f"job:{index:04d}{number:08d}", tenant) for number in range(plan.jobs))
        documents = (new_job_document(replace(job, id=id)) for id in ids)
        await write_documents(client[shard_database(_DATABASE, index)].jobs, documents)
