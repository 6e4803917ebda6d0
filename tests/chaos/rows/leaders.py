"""The leader is killed, asked to go, or stalls."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from hascheduler.schema.failover import Cause
from tests.chaos.cluster import Cluster, Life
from tests.chaos.row import SHORT_LEASE, Row
from tests.chaos.stage import REPLICAS, Stage


async def _leader_ends(stage: Stage, *, by: Callable[[Cluster, Life], Awaitable[None]], full: int = 20) -> None:
    """At any phase of whatever it is doing; with the leader of one shard go the others that it leads."""
    for _ in range(stage.times(smoke=4, full=full)):
        await asyncio.sleep(stage.chance.uniform(0.5, 1.5))
        await stage.lose_leader(partial(by, stage.cluster), shard=stage.chance.randrange(stage.row.shards))


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
        partial(_leader_ends, by=Cluster.kill, full=50),
        smoke=True,
        takeover_ms=500,
    ),
    Row("leader-sigterm", "the leader is asked to end", partial(_leader_ends, by=Cluster.terminate), takeover_ms=500),
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
        partial(_leader_ends, by=Cluster.kill),
        shards=4,
        settings={"HASCHEDULER_REBALANCE_AFTER": "1s"},
        takeover_ms=1_000,
    ),
    Row("all-replicas-down", "no replica for a minute", _all_replicas_down),
)
