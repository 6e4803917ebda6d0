"""Partitions move between shards of real processes, and deployments grow: nothing is missed, nothing doubled."""

import asyncio
import json
from collections import Counter

from hascheduler.model.partition import partition_of
from tests.system.shards.processes import SHARD_COUNT, SHARDS, TENANTS, ShardedProcesses

EVERY_MS = 200


async def apply(processes: ShardedProcesses, *options: str) -> dict[str, object]:
    status, out, err = await processes.command("shards", "apply", *options, "--json")
    assert status == 0, err
    document: dict[str, object] = json.loads(out)
    return document


async def test_a_partition_moves_again_and_again_while_leaders_are_killed_and_its_schedule_misses_nothing(
    processes: ShardedProcesses,
) -> None:
    await processes.together("one", "two", "three")
    for index in range(SHARD_COUNT):
        await processes.processor(f"worker-{index}")
    tenant = TENANTS[1]
    await processes.schedule("tick", f"{EVERY_MS}ms", tenant=tenant)
    await processes.fired(5, "tick")
    waiting = (await processes.post("/v1/jobs", {"definition": "later", "tenant": tenant}))["id"]
    for number, to in enumerate((2, 3, 0, 1)):
        applying = asyncio.create_task(apply(processes, "--tenant", tenant, "--to", SHARDS[to]))
        if number % 2:
            leaders = await processes.leaders()
            name, _count = Counter(process.name for process in leaders.values()).most_common(1)[0]
            await processes.replicas[name].kill()
            await processes.replica(name)
        await applying
        assert await processes.stored(waiting) == [to]
        await processes.fired(3, "tick")
    await processes.post(f"/v1/jobs/{waiting}/cancel", {})
    await processes.settled()
    processes.assert_no_gap("tick", EVERY_MS, 20)
    processes.assert_no_effect_twice()
    for nominal_ms in processes.nominal_times("tick"):
        assert await processes.stored(f"fire:tick:{nominal_ms}") == [1]


async def test_a_deployment_of_one_shard_grows_and_is_divided(processes: ShardedProcesses) -> None:
    one = await processes.replica("one", HASCHEDULER_SHARDS="1")
    for index, tenant in enumerate(TENANTS):
        await processes.schedule(f"s-{index}", "1h", tenant=tenant)
    ids = [(await processes.post("/v1/jobs", {"definition": "later", "tenant": tenant}))["id"] for tenant in TENANTS]
    assert await one.terminate() == 0
    await processes.replica("two")
    status, out, _ = await processes.command("shards", "plan", "--even", "--json")
    planned = json.loads(out)
    assert status == 0
    assert [(shard["partitions"], shard["then"]) for shard in planned["shards"]] == [(256, 64), *[(0, 64)] * 3]
    applied = await apply(processes, "--even")
    assert [shard["partitions"] for shard in applied["shards"]] == [64] * SHARD_COUNT  # type: ignore[attr-defined]
    layout = await processes.database.routing.find_one({})
    assert layout is not None
    for id, tenant in zip(ids, TENANTS, strict=True):
        assert await processes.stored(id) == [layout["partitions"][partition_of(tenant)]]
        assert (await processes.get(f"/v1/jobs/{id}"))["id"] == id
    assert [each["name"] for each in (await processes.get("/v1/schedules"))["items"]] == [
        f"s-{index}" for index in range(SHARD_COUNT)
    ]
