"""Shards in two MongoDBs: one that stands still holds up its own shards alone."""

import os
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest
from pymongo import AsyncMongoClient
from pymongo.asynchronous.database import AsyncDatabase

from hascheduler.embedded.servers import Mongod, start_mongod
from hascheduler.model.partition import shard_database
from tests.system.processes import eventually
from tests.system.shards.processes import SHARD_COUNT, SHARDS, TENANTS, ShardedProcesses, sharded_environment

EVERY_MS = 200
ELSEWHERE = (2, 3)


@dataclass
class ProcessesOfTwo(ShardedProcesses):
    """The last two shards are in ``other``."""

    other: Mongod = field(kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.elsewhere: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(self.other.uri)

    @property
    def databases(self) -> list[AsyncDatabase[dict[str, Any]]]:
        return [
            (self.elsewhere if index in ELSEWHERE else self.mongo)[shard_database(self.database_name, index)]
            for index in range(SHARD_COUNT)
        ]

    async def stop(self) -> None:
        await super().stop()
        await self.elsewhere.close()

    async def status_of(self, tenant: str) -> int:
        """Of the answer to a submit."""
        answer = await self.http.post(self.any_url() + "/v1/jobs", json={"definition": "later", "tenant": tenant})
        return answer.status_code


@pytest.fixture(scope="module")
async def other_mongodb() -> AsyncIterator[Mongod]:
    async with start_mongod() as mongod:
        yield mongod


@pytest.fixture
async def two(
    tmp_path: Path, mongodb_uri: str, amqp_url: str, database_name: str, other_mongodb: Mongod
) -> AsyncIterator[ProcessesOfTwo]:
    environment = sharded_environment(mongodb_uri, amqp_url, database_name)
    environment["HASCHEDULER_SHARD_MONGODB_URIS"] = f"0002-0003={other_mongodb.uri}"
    async with ProcessesOfTwo(tmp_path, environment, mongodb_uri, database_name, other=other_mongodb) as running:
        try:
            yield running
        finally:
            with suppress(ProcessLookupError):
                os.kill(other_mongodb.pid, signal.SIGCONT)


async def test_a_mongodb_that_stands_still_holds_up_its_own_shards_alone(two: ProcessesOfTwo) -> None:
    await two.replica("one")
    await two.processor("worker-0", HASCHEDULER_SHARD=SHARDS[1])
    await two.schedule("tick", f"{EVERY_MS}ms", tenant=TENANTS[1])
    assert await two.status_of(TENANTS[2]) == 201
    await two.fired(3, "tick")
    os.kill(two.other.pid, signal.SIGSTOP)
    await two.fired(3, "tick")
    # One that starts now serves the others all the same.
    await two._replica("two")

    async def serves() -> bool:
        with suppress(httpx2.TransportError):
            answer = await two.http.get(f"{two.replicas['two'].url}/v1/cluster")
            return answer.status_code == 200
        return False

    await eventually(serves, "the second replica answers")
    await two.replicas["one"].kill()
    await two.fired(5, "tick")
    assert await two.status_of(TENANTS[2]) == 503
    answer = await two.http.get(f"{two.any_url()}/v1/jobs?tenant={TENANTS[2]}")
    assert (answer.status_code, f"shard {SHARDS[2]}" in answer.text) == (503, True), answer.text
    assert await two.status_of(TENANTS[1]) == 201
    os.kill(two.other.pid, signal.SIGCONT)

    async def takes() -> bool:
        return await two.status_of(TENANTS[2]) == 201

    await eventually(takes, "jobs of the other MongoDB are taken again")
    two.assert_no_gap("tick", EVERY_MS, 10)
    two.assert_no_effect_twice()
