"""The leader is killed, asked to go, or stalls."""

import asyncio

from hascheduler.schema.failover import Cause
from tests.chaos.row import SHORT_LEASE, Row
from tests.chaos.stage import REPLICAS, Stage


async def _leader_sigkill(stage: Stage) -> None:
    for _ in range(stage.times(smoke=4, full=50)):
        # At any phase of whatever it is doing.
        await asyncio.sleep(stage.chance.uniform(0.5, 1.5))
        await stage.lose_leader(stage.cluster.kill)


async def _leader_sigterm(stage: Stage) -> None:
    for _ in range(stage.times(smoke=4, full=20)):
        await asyncio.sleep(stage.chance.uniform(0.5, 1.5))
        await stage.lose_leader(stage.cluster.terminate)


async def _leader_sigstop(stage: Stage) -> None:
    is_first, causes = not stage.kills, []
    times = stage.times(smoke=2, full=6)
    for turn in range(times):
        await asyncio.sleep(stage.chance.uniform(3.0, 4.0))
        leader = await stage.overtake(stage.cluster.freeze)
        causes.append(await stage.failover_cause())
        # The last is back while it still trusts its lease, which makes the replicas more patient from then on.
        await asyncio.sleep(stage.chance.uniform(*((0.1, 0.5) if turn == times - 1 else (2.5, 4.0))))
        stage.cluster.thaw(leader)
        await asyncio.sleep(2.0)
    if is_first and Cause.STOOD_STILL not in causes:
        raise AssertionError(f"no leader was followed before its lease ran out: {causes}")


async def _shard_leader_killed(stage: Stage) -> None:
    for _ in range(stage.times(smoke=4, full=20)):
        await asyncio.sleep(stage.chance.uniform(0.5, 1.5))
        # Of any shard: with it go the others that it leads.
        await stage.lose_leader(stage.cluster.kill, shard=stage.chance.randrange(stage.row.shards))


async def _all_replicas_down(stage: Stage) -> None:
    await asyncio.sleep(5)
    began_s = stage.now_s()
    for name in REPLICAS:
        await stage.cluster.kill(stage.cluster.replicas[name])
    await stage.quiet(10, 60)
    await asyncio.gather(*(stage.restart(name) for name in REPLICAS))
    await stage.leader(after_term=1)
    stage.excuse(began_s)
    await stage.quiet(8, 20)


ROWS = (
    Row(
        "leader-sigkill",
        "the leader is killed at any phase of its work; the lease is the usual 10 s",
        _leader_sigkill,
        smoke=True,
        takeover_ms=500,
    ),
    Row("leader-sigterm", "the leader is asked to end", _leader_sigterm, takeover_ms=500),
    Row(
        "leader-sigstop",
        "the leader stalls until another leads, and wakes up",
        _leader_sigstop,
        settings=SHORT_LEASE,
        gap_s=8.0,
    ),
    Row(
        "shard-leader-killed",
        "of four shards the leader of any is killed, with all that it leads, while shards move back",
        _shard_leader_killed,
        shards=4,
        settings={"HASCHEDULER_REBALANCE_AFTER": "1s"},
        takeover_ms=1_000,
    ),
    Row("all-replicas-down", "no replica for a minute", _all_replicas_down),
)
