"""Several leaders at once, spread over the replicas: whichever is lost, every nominal time has its effect, once."""

from collections import Counter

from tests.system.shards.processes import SHARD_COUNT, TENANTS, ShardedProcesses

EVERY_MS = 200
SCHEDULES = [f"tick-{index}" for index in range(SHARD_COUNT)]


async def test_the_replica_that_leads_most_is_killed_again_and_again_and_nothing_is_missed_or_doubled(
    processes: ShardedProcesses,
) -> None:
    await processes.together("one", "two", "three")
    for index in range(SHARD_COUNT):
        await processes.processor(f"worker-{index}")
    for name, tenant in zip(SCHEDULES, TENANTS, strict=True):
        await processes.schedule(name, f"{EVERY_MS}ms", tenant=tenant)
    for _ in range(3):
        leaders = await processes.spread()
        await processes.fired(5, *SCHEDULES)
        name, _count = Counter(process.name for process in leaders.values()).most_common(1)[0]
        await processes.replicas[name].kill()
        await processes.fired(5, *SCHEDULES)
        await processes.replica(name)
    await processes.spread()
    await processes.settled()
    for name in SCHEDULES:
        processes.assert_no_gap(name, EVERY_MS, 30)
    processes.assert_no_effect_twice()
    await processes.assert_terms_never_return()
    for index, name in enumerate(SCHEDULES):
        for nominal_ms in processes.nominal_times(name):
            assert await processes.stored(f"fire:{name}:{nominal_ms}") == [index]
