"""Replicas with one name, a lease that is deleted, a loop that hangs, a stream that is late."""

import asyncio
from dataclasses import replace

from hascheduler.schema.failover import Cause
from tests.chaos.row import SHORT_LEASE, Row
from tests.chaos.stage import REPLICAS, Stage


async def _one_name(stage: Stage) -> None:
    """All of them start again under one name, and leaders are killed as before."""
    for name in REPLICAS:
        place = stage.cluster.places[name]
        stage.cluster.places[name] = replace(place, settings={"HASCHEDULER_REPLICA_ID": "twin"})
        await stage.cluster.kill(stage.cluster.replicas[name])
        await stage.restart(name)
    for _ in range(stage.times(smoke=3, full=10)):
        await asyncio.sleep(stage.chance.uniform(1, 2))
        await stage.lose_leader(stage.cluster.kill)


async def _deleted_lease(stage: Stage) -> None:
    for _ in range(stage.times(smoke=6, full=25)):
        await asyncio.sleep(stage.chance.uniform(1, 3))
        await stage.database["leases"].delete_one({"_id": "default"})
    await stage.quiet(6, 6)


async def _hanging_loop(stage: Stage) -> None:
    causes = []
    for _ in range(stage.times(smoke=2, full=5)):
        await asyncio.sleep(2)
        leader = await stage.overtake(lambda leader: stage.cluster.hang(leader.name))
        causes.append(await stage.failover_cause())
        await asyncio.sleep(1)
        stage.cluster.calm(leader.name)
        await asyncio.sleep(2)
    if Cause.RELEASED not in causes:
        raise AssertionError(f"no leader gave its lease up before it ran out: {causes}")


async def _late_stream(stage: Stage) -> None:
    """First a follower's, who is then left alone with the leadership; then the leader's own; then everybody's."""
    await asyncio.sleep(2)
    leader = await stage.overtake(lambda leader: stage.cluster.delay_stream(leader.name, 30_000))
    await stage.quiet(3, 30)
    stage.cluster.calm(leader.name)
    await asyncio.sleep(3)
    leader, term = await stage.leader()
    for name in REPLICAS:
        if name != leader.name:
            stage.cluster.delay_stream(name, 30_000)
    await stage.quiet(3, 30)
    await stage.cluster.kill(leader)
    began_s = stage.now_s()
    # The two that are left hear nothing new for half a minute, so neither may lead.
    await stage.quiet(8, 20)
    for name in REPLICAS:
        stage.cluster.calm(name)
    await stage.leader(after_term=term)
    stage.excuse(began_s)
    await stage.restart(leader.name)
    await stage.quiet(3, 10)


ROWS = (
    Row(
        "one-name", "all replicas have one host name, and the leader is killed", _one_name, gap_s=4.0, takeover_ms=1_000
    ),
    Row("deleted-lease", "a user deletes the lease", _deleted_lease, gap_s=4.0),
    Row(
        "hanging-loop",
        "the leader's dispatch loop hangs while renewals go on",
        _hanging_loop,
        settings=SHORT_LEASE,
        gap_s=9.0,
    ),
    Row(
        "late-stream",
        "the change stream is 30 s late: the leader's, a follower's, everybody's",
        _late_stream,
        settings=SHORT_LEASE,
        gap_s=9.0,
    ),
)
