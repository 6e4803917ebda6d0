"""Caps over several shards, with real processes: they hold while leaders are killed."""

from collections import Counter

import pytest

from tests.system.shards.processes import SHARD_COUNT, TENANTS, ShardedProcesses

DEFINITION = "sleep"


async def most_at_once(processes: ShardedProcesses) -> int:
    """Of all jobs in all shards, by the instants at which they were dispatched and ended."""
    edges: list[tuple[int, int]] = []
    for database in processes.databases:
        async for job in database.jobs.find({"definition": DEFINITION}):
            assert job["state"] == "succeeded"
            edges += [(job["dispatched_at_ms"], 1), (job["finished_at_ms"], -1)]
    running = most = 0
    for _, change in sorted(edges):
        running += change
        most = max(most, running)
    return most


@pytest.mark.parametrize("at_once", [1, SHARD_COUNT + 1])
async def test_a_cap_is_kept_and_used_by_all_shards_while_their_leaders_are_killed(
    processes: ShardedProcesses, at_once: int
) -> None:
    await processes.together("one", "two", "three")
    for index in range(SHARD_COUNT):
        await processes.processor(f"worker-{index}", slots=at_once)
    await processes.put(f"/v1/definitions/{DEFINITION}", {"max_concurrency": at_once})
    for tenant in TENANTS:
        job = {"definition": DEFINITION, "tenant": tenant, "payload": {"seconds": 0.1}}
        await processes.post("/v1/jobs:batch", {"jobs": [job] * (4 * at_once)})
    for _ in range(2):
        leaders = await processes.spread()
        name, _count = Counter(process.name for process in leaders.values()).most_common(1)[0]
        await processes.replicas[name].kill()
        await processes.replica(name)
    await processes.none_live()
    assert await most_at_once(processes) <= at_once
