"""The lines between processes and servers are reset, half open, silent one way, slow."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from hascheduler.schema.failover import Cause
from tests.chaos.cluster import Life
from tests.chaos.proxy import Line
from tests.chaos.row import SHORT_LEASE, Row
from tests.chaos.stage import Stage
from tests.chaos.users import LoadPlan


async def _reset_lines(stage: Stage) -> None:
    for _ in range(stage.times(smoke=12, full=60)):
        await asyncio.sleep(stage.chance.uniform(0.5, 1.5))
        lines = stage.chance.choice((stage.to_mongodb, stage.to_rabbitmq))
        lines[stage.chance.choice(list(lines))].reset()


async def _half_open_lines(stage: Stage) -> None:
    for _ in range(stage.times(smoke=3, full=8)):
        await asyncio.sleep(stage.chance.uniform(3, 6))
        stage.to_mongodb[stage.chance.choice(list(stage.to_mongodb))].half_open()
        stage.to_rabbitmq[stage.chance.choice(list(stage.to_rabbitmq))].half_open()
    await stage.quiet(8, 15)


def _trouble_line(
    stage: Stage, trouble: Callable[[Line], Awaitable[None] | None], leader: Life
) -> Awaitable[None] | None:
    return trouble(stage.to_mongodb[leader.name])


async def _one_way_lines(stage: Stage) -> None:
    """Of the leader nothing goes out, or nothing comes in."""
    for turn in range(stage.times(smoke=2, full=6)):
        await asyncio.sleep(2)
        hold = partial(Line.hold, up=bool(turn % 2), down=not turn % 2)
        leader = await stage.overtake(partial(_trouble_line, stage, hold))
        await stage.to_mongodb[leader.name].repair()
        await asyncio.sleep(2)


async def _leader_loses_mongodb(stage: Stage) -> None:
    """Its process goes on and can be reached by the others; refused one time, silent the other."""
    causes = []
    for turn in range(stage.times(smoke=2, full=4)):
        await asyncio.sleep(4)
        leader = await stage.overtake(partial(_trouble_line, stage, Line.cut if turn % 2 else Line.hold))
        causes.append(await stage.failover_cause())
        # It is not back before the next leader has been silent for as long, or was followed needlessly.
        await asyncio.sleep(4)
        await stage.to_mongodb[leader.name].repair()
        await asyncio.sleep(2)
    if Cause.STOOD_STILL not in causes:
        raise AssertionError(f"no leader was followed before its lease ran out: {causes}")


async def _slow_lines(stage: Stage) -> None:
    for delay_s in (0.02, 0.1, 0.3):
        for line in [*stage.to_mongodb.values(), *stage.to_rabbitmq.values()]:
            line.delay_s = delay_s
        await stage.quiet(6, 12)


_row = partial(Row, lines=True)
ROWS = (
    _row("lines-reset", "connections to MongoDB and RabbitMQ are reset", _reset_lines, gap_s=5.0),
    _row("lines-half-open", "servers close connections silently", _half_open_lines, gap_s=15.0),
    _row(
        "lines-one-way",
        "nothing of the leader's gets to MongoDB, or nothing comes back",
        _one_way_lines,
        settings=SHORT_LEASE,
        gap_s=10.0,
    ),
    _row(
        "leader-loses-mongodb",
        "the leader is cut off from MongoDB alone; the lease is the usual 10 s",
        _leader_loses_mongodb,
        gap_s=6.0,
    ),
    _row("lines-slow", "everything takes up to 300 ms longer each way", _slow_lines, gap_s=5.0, load=LoadPlan(30, 8)),
)
