"""Each shard is followed by two replicas of three, and any replica answers for all of them."""

import asyncio
from collections.abc import Mapping

from hascheduler.embedded.children import Daemon
from tests.system.processes import eventually
from tests.system.shards.processes import SHARDS, TENANTS, ShardedProcesses

EVERY_MS = 200
NAMES = ("one", "two", "three")
TWO = {"HASCHEDULER_SHARD_CANDIDATES": "2"}


async def followers(processes: ShardedProcesses, asked: Daemon) -> Mapping[str, list[str]]:
    cluster = (await processes.http.get(f"{asked.url}/v1/cluster")).json()
    return {shard["name"]: shard["followers"] for shard in cluster["shards"]}


async def settled(processes: ShardedProcesses) -> Mapping[str, list[str]]:
    """Once each shard but the home has two followers that live, and a leader among them."""

    async def look() -> Mapping[str, list[str]] | None:
        living = {name for name, process in processes.replicas.items() if process.running}
        found = [await followers(processes, processes.replicas[name]) for name in sorted(living)]
        is_even = all(len(of[shard]) == 2 and set(of[shard]) <= living for of in found for shard in SHARDS[1:])
        return found[0] if is_even and all(of == found[0] for of in found) else None

    found = await eventually(look, "each shard has two followers")
    leaders = await processes.leaders()
    assert all(leaders[shard].name in found[shard] for shard in SHARDS[1:])
    return found


async def test_a_replica_answers_for_a_shard_that_others_follow(processes: ShardedProcesses) -> None:
    await processes.together(*NAMES, **TWO)
    of_shard = await settled(processes)
    for shard, tenant in zip(SHARDS[1:], TENANTS[1:], strict=True):
        [stranger] = set(NAMES) - set(of_shard[shard])
        url = processes.replicas[stranger].url
        job = (await processes.http.post(f"{url}/v1/jobs", json={"definition": "log", "tenant": tenant})).json()["id"]

        async def explained() -> bool:
            why = await processes.http.get(f"{url}/v1/jobs/{job}/why", headers={"x-request-id": "asked"})  # noqa: B023
            assert why.status_code == 200, why.text
            assert why.headers["x-request-id"] == "asked"
            return bool(why.json()["seen"])

        await eventually(explained, "a follower tells why it waits")

        waiting = asyncio.create_task(processes.http.get(f"{url}/v1/jobs/{job}?wait=20s"))
        await processes.processor(f"worker-{shard}", HASCHEDULER_SHARD=shard)
        assert (await waiting).json()["state"] == "succeeded"
        body = {"definition": "log", "tenant": tenant}
        done = await processes.http.post(f"{url}/v1/jobs?wait=20s", json=body)
        assert done.json()["state"] == "succeeded"


async def test_a_candidate_is_killed_and_another_follows_and_nothing_is_missed_or_doubled(
    processes: ShardedProcesses,
) -> None:
    await processes.together(*NAMES, **TWO)
    schedules = [f"tick-{shard}" for shard in SHARDS]
    for shard, tenant in zip(SHARDS, TENANTS, strict=True):
        await processes.processor(f"worker-{shard}", HASCHEDULER_SHARD=shard)
        await processes.schedule(f"tick-{shard}", f"{EVERY_MS}ms", tenant=tenant)
    before = await settled(processes)
    await processes.fired(5, *schedules)
    lost = before[SHARDS[1]][0]
    await processes.replicas[lost].kill()
    await processes.fired(5, *schedules)
    after = await settled(processes)
    assert all(lost not in after[shard] for shard in SHARDS)
    await processes.replica(lost, **TWO)
    assert await eventually(lambda: again(processes, before), "all is as it was")
    await processes.fired(5, *schedules)
    await processes.settled()
    for name in schedules:
        processes.assert_no_gap(name, EVERY_MS, 15)
    processes.assert_no_effect_twice()
    await processes.assert_terms_never_return()


async def again(processes: ShardedProcesses, before: Mapping[str, list[str]]) -> bool:
    return await settled(processes) == before
