"""One API before all shards: what is written at one replica is found at any, in the shard where it belongs."""

from tests.system.check.test_live import checked
from tests.system.processes import eventually
from tests.system.shards.processes import SHARD_COUNT, SHARDS, TENANTS, ShardedProcesses


async def test_what_would_cross_shards_is_refused_with_a_clear_word(processes: ShardedProcesses) -> None:
    await processes.replica("one")
    url = processes.any_url()
    atomic = {"atomic": True, "jobs": [{"definition": "log", "tenant": tenant} for tenant in TENANTS[:2]]}
    refused = await processes.http.post(f"{url}/v1/jobs:batch", json=atomic)
    assert refused.status_code == 422, refused.text
    for shard in SHARDS[:2]:
        assert shard in refused.text
    first = await processes.post("/v1/jobs", {"definition": "later", "tenant": TENANTS[0]})
    refused = await processes.http.post(
        f"{url}/v1/jobs", json={"definition": "log", "tenant": TENANTS[1], "depends_on": [first["id"]]}
    )
    assert refused.status_code == 422, refused.text
    rare = {"rate_limit": {"count": SHARD_COUNT - 1, "per": "1m"}}
    small = await processes.http.put(f"{url}/v1/definitions/log", json=rare)
    assert small.status_code == 422
    assert small.json()["errors"][0]["path"] == "rate_limit.count"
    # Each shard has its copy when the write is answered.
    await processes.http.put(f"{url}/v1/definitions/log", json={"max_concurrency": SHARD_COUNT})
    for database in processes.databases:
        definition = await database.definitions.find_one({"_id": "log"})
        assert definition is not None
        assert definition["max_concurrency"] == SHARD_COUNT


async def test_what_is_put_into_the_wrong_shard_is_found_by_its_leader_and_the_check(
    processes: ShardedProcesses,
) -> None:
    await processes.replica("one", HASCHEDULER_AUDIT_INTERVAL="10s")
    for index, tenant in enumerate(TENANTS):
        await processes.post("/v1/jobs", {"definition": "later", "tenant": tenant})
        await processes.schedule(f"s-{index}", "1h", tenant=tenant)
    status, said = await checked(processes)
    assert (status, said["findings"], said["complete"]) == (0, [], True)
    job = await processes.databases[1].jobs.find_one({})
    assert job is not None
    await processes.databases[2].jobs.insert_one(job)
    await processes.database.names.delete_one({"_id": "s-3"})
    status, said = await checked(processes)
    assert status == 1
    found = {(finding["kind"], finding["document"]) for finding in said["findings"]}
    assert found == {
        ("misplaced", f"{SHARDS[2]}: jobs/{job['_id']}"),
        ("name_unreserved", f"{SHARDS[3]}: schedules/s-3"),
    }

    async def logged() -> bool:
        lines = {(line["shard"], line["kind"], line["document"]) for line in processes.logged("check_finding")}
        return lines == {
            (SHARDS[2], "misplaced", f"jobs/{job['_id']}"),
            (SHARDS[3], "name_unreserved", "schedules/s-3"),
        }

    await eventually(logged, "the leaders of those shards find it", 60)
