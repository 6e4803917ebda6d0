"""A deployment of real processes grows and is divided; `tests.chaos.rows.shards` moves partitions in trouble."""

import json

from hascheduler.model.partition import partition_of
from tests.system.shards.processes import SHARD_COUNT, SHARDS, TENANTS, ShardedProcesses


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
    for tenant, shard in zip(TENANTS[1:], SHARDS[1:], strict=True):  # an even layout would take 192 moves
        status, _, err = await processes.command("shards", "apply", "--tenant", tenant, "--to", shard)
        assert status == 0, err
    _, out, _ = await processes.command("shards", "plan", "--json")
    assert [shard["partitions"] for shard in json.loads(out)["shards"]] == [253, 1, 1, 1]
    layout = await processes.database.routing.find_one({})
    assert layout is not None
    for id, tenant in zip(ids, TENANTS, strict=True):
        assert await processes.stored(id) == [layout["partitions"][partition_of(tenant)]]
        assert (await processes.get(f"/v1/jobs/{id}"))["id"] == id
    assert [each["name"] for each in (await processes.get("/v1/schedules"))["items"]] == [
        f"s-{index}" for index in range(SHARD_COUNT)
    ]
