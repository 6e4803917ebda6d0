"""Processes that do not agree on the shards of their deployment do not start."""

import pytest

from tests.system.shards.processes import SHARD_COUNT, ShardedProcesses


async def ended(processes: ShardedProcesses, *arguments: str, **environment: str) -> tuple[int, str]:
    """The status of the command, and what it said last."""
    status, _, said = await processes.command(*arguments, HASCHEDULER_HTTP_PORT="0", **environment)
    return status, said.splitlines()[-1]


@pytest.mark.parametrize("shards", [1, SHARD_COUNT - 1])
async def test_fewer_shards_than_the_deployment_has(processes: ShardedProcesses, shards: int) -> None:
    await processes.replica("one")
    for command in (["serve"], ["processor", "processors.log"]):
        status, said = await ended(processes, *command, HASCHEDULER_SHARDS=str(shards))
        assert status == 2
        assert f"HASCHEDULER_SHARDS: {shards}, and the deployment in the database" in said
        assert said.endswith(f"; expected {SHARD_COUNT}")


async def test_a_routing_that_was_broken_by_hand(processes: ShardedProcesses) -> None:
    replica = await processes.replica("one")
    assert await replica.terminate() == 0
    await processes.database.routing.update_one({}, {"$set": {"slots": [0, 1, 2]}})
    status, said = await ended(processes, "serve")
    assert status == 2
    assert said == "hascheduler: slots: 3 slots; expected 256"
