"""The processes of one test, on databases of its own."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.system.shards.processes import SHARD_COUNT, ShardedProcesses


@pytest.fixture
async def processes(
    tmp_path: Path, mongodb_uri: str, amqp_url: str, database_name: str
) -> AsyncIterator[ShardedProcesses]:
    running = ShardedProcesses(
        tmp_path,
        {
            "HASCHEDULER_MONGODB_URI": mongodb_uri,
            "HASCHEDULER_AMQP_URL": amqp_url,
            "HASCHEDULER_DATABASE": database_name,
            "HASCHEDULER_SHARDS": str(SHARD_COUNT),
            "HASCHEDULER_REBALANCE_AFTER": "1s",
            "HASCHEDULER_LEASE_DURATION": "3s",
            "HASCHEDULER_RENEW_DEADLINE": "2s",
            "HASCHEDULER_RETRY_PERIOD": "500ms",
            "HASCHEDULER_HEARTBEAT_INTERVAL": "300ms",
            "HASCHEDULER_HEARTBEAT_TIMEOUT": "1500ms",
        },
        mongodb_uri,
        database_name,
    )
    try:
        yield running
    finally:
        await running.stop()
