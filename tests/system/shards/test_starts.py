"""Processes that do not agree on the shards of their deployment do not start."""

import json

from tests.system.shards.processes import SHARD_COUNT, ShardedProcesses


async def ended(processes: ShardedProcesses, *arguments: str, **environment: str) -> tuple[int, str]:
    """The status of the command, and what it said last."""
    status, _, said = await processes.command(*arguments, HASCHEDULER_HTTP_PORT="0", **environment)
    return status, said.splitlines()[-1]


async def test_another_number_than_the_deployment_has(processes: ShardedProcesses) -> None:
    replica = await processes.replica("one")
    for command in (["serve"], ["processor", "processors.log"]):
        status, said = await ended(processes, *command, HASCHEDULER_SHARDS=str(SHARD_COUNT - 1))
        assert (status, said.endswith(f"; expected {SHARD_COUNT}")) == (2, True), said
    assert await replica.terminate() == 0
    for shards, asked in ((SHARD_COUNT - 1, "serve"), (SHARD_COUNT + 1, "migrate"), (SHARD_COUNT + 1, "check")):
        status, said = await ended(processes, asked, HASCHEDULER_SHARDS=str(shards))
        assert status == 2
        assert f"HASCHEDULER_SHARDS: {shards}, but the deployment in the database" in said
    assert f"{processes.database_name}-{SHARD_COUNT:04d}" not in await processes.mongo.list_database_names()


async def test_an_empty_database_in_the_place_of_a_shard_is_refused_by_every_process(
    processes: ShardedProcesses,
) -> None:
    """As a process finds it which was not told in which MongoDB the shard is."""
    replica = await processes.replica("one")
    assert await replica.terminate() == 0
    lost = processes.databases[2].name
    await processes.mongo.drop_database(lost)
    for command in (["processor", "processors.log"], ["migrate"], ["migrate", "--dry-run"], ["check"], ["serve"]):
        status, said = await ended(processes, *command)
        assert status == 2, said
        assert "HASCHEDULER_SHARD_MONGODB_URIS" in said, command
        assert "is not the one that shard 0002 has used so far" in said
    assert lost not in await processes.mongo.list_database_names()


async def test_before_the_first_replica_migrate_makes_all_databases(processes: ShardedProcesses) -> None:
    status, out, said = await processes.command("migrate", "--json")
    assert status == 0, said
    assert [each["database"] for each in json.loads(out)["shards"]] == [each.name for each in processes.databases]
    await processes.replica("one")
    status, _, said = await processes.command("migrate", "--json")
    assert status == 0, said
