"""The processes of one test, on databases of its own."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.system.processes import environment_of
from tests.system.shards.processes import SHARD_COUNT, ShardedProcesses


@pytest.fixture
async def processes(
    tmp_path: Path, mongodb_uri: str, amqp_url: str, database_name: str
) -> AsyncIterator[ShardedProcesses]:
    running = ShardedProcesses(
        tmp_path,
        environment_of(mongodb_uri, amqp_url, database_name)
        | {"HASCHEDULER_SHARDS": str(SHARD_COUNT), "HASCHEDULER_REBALANCE_AFTER": "1s"},
        mongodb_uri,
        database_name,
    )
    try:
        yield running
    finally:
        await running.stop()
