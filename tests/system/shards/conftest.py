"""The processes of one test, on databases of its own."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.system.shards.processes import ShardedProcesses, sharded_environment


@pytest.fixture
async def processes(
    tmp_path: Path, mongodb_uri: str, amqp_url: str, database_name: str
) -> AsyncIterator[ShardedProcesses]:
    environment = sharded_environment(mongodb_uri, amqp_url, database_name)
    async with ShardedProcesses(tmp_path, environment, mongodb_uri, database_name) as running:
        yield running
