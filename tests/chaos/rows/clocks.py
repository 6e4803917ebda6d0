"""Clocks are wrong, by a day or by a fifth, or show another local time."""

import asyncio
from collections.abc import Awaitable
from functools import partial

from hascheduler.client import AsyncScheduler
from hascheduler.client.answers import ScheduleResponse
from tests.chaos import zone_data
from tests.chaos.row import SHORT_LEASE, Row
from tests.chaos.stage import PROCESSORS, REPLICAS, Stage
from tests.chaos.users import LoadPlan
from tests.chaos.waiting import eventually

_DAY_S = 86_400
DAY_MS = 1_000 * _DAY_S
_AHEAD_MS = 3 * 3_600_000


async def _only_wrong(stage: Stage) -> None:
    """A follower's clock goes wrong, and then it is the only replica that is left."""
    for _ in range(stage.times(smoke=1, full=2)):
        leader, term = await stage.leader()
        wrong = stage.chance.choice([name for name in REPLICAS if name != leader.name])
        stage.cluster.set_clock(wrong, offset_ms=DAY_MS)
        await asyncio.sleep(3)
        began_s = stage.now_s()
        others = [name for name in REPLICAS if name != wrong]
        for name in others:
            await stage.cluster.kill(stage.cluster.replicas[name])
        await stage.quiet(4, 15)
        # One that starts can't tell whose clock is wrong, its own or MongoDB's: it must not decide.
        await stage.cluster.kill(stage.cluster.replicas[wrong])
        await stage.cluster.start_replica(wrong, ready=False)
        await stage.quiet(6, 15)
        for name in others:
            await stage.restart(name)
        await stage.leader(after_term=term)
        stage.excuse(began_s)
        stage.cluster.calm(wrong)
        await stage.quiet(8, 10)


async def _leader_goes_wrong(stage: Stage, *, offset_ms: int = 0, rate: float = 1.0) -> None:
    """The clock of the leader goes wrong while it leads."""
    for _ in range(stage.times(smoke=1, full=2)):
        leader, _ = await stage.leader()
        stage.cluster.set_clock(leader.name, offset_ms=offset_ms, rate=rate)
        await stage.quiet(10, 18)
        stage.cluster.calm(leader.name)
        await stage.quiet(5, 8)


async def _whole_process(stage: Stage) -> None:
    """Ahead, and the next time behind."""
    for turn in range(stage.times(smoke=2, full=4)):
        leader, _ = await stage.leader()
        stage.cluster.set_process_clock(leader.name, offset_s=-_DAY_S if turn % 2 else _DAY_S)
        await stage.quiet(10, 15)
        stage.cluster.calm(leader.name)
        await stage.quiet(5, 8)


async def _processors(stage: Stage) -> None:
    """One is a day ahead, one a day behind, and jobs fail and are tried again by the next processor."""
    for name, offset_ms in zip(PROCESSORS, (DAY_MS, -DAY_MS), strict=False):
        stage.cluster.set_clock(name, offset_ms=offset_ms)
    await stage.quiet(15, 30)


async def _zone_data_differ(stage: Stage) -> None:
    """Leadership goes to and fro between replicas to which one local time comes at different instants."""
    if not stage.kills:
        leader, _ = await stage.leader()
        (await stage.cluster.http.post(f"{leader.url}/v1/schedules", json=zone_data.BODY)).raise_for_status()
    for _ in range(stage.times(smoke=4, full=12)):
        await asyncio.sleep(stage.chance.uniform(3.0, 9.0))
        await stage.lose_leader(stage.cluster.kill)


def _reset(name: str, scheduler: AsyncScheduler) -> Awaitable[ScheduleResponse]:
    return scheduler.schedules.reset(name)


async def _put_right(stage: Stage) -> None:
    """All replicas start with clocks that are three hours ahead, and so is MongoDB's. Then MongoDB's is put right, some
    beats later those of the replicas, and all schedules are reset."""
    cluster, names = stage.cluster, list(stage.load.schedules)

    async def cursors() -> list[int]:
        found = cluster.client[cluster.database]["schedules"].find({}, ["cursor_ms"])
        return [each["cursor_ms"] - cluster.epoch_ms - round(1_000 * stage.now_s()) async for each in found]

    async def fire_ahead() -> bool:
        return min(await cursors()) > _AHEAD_MS - 10_000

    async def fire_again() -> bool:
        return all(-5_000 < ahead_ms < 1_000 for ahead_ms in await cursors())

    async def knows_the_time(name: str) -> bool:
        answer = await cluster.http.get(f"{cluster.replicas[name].url}/v1/schedules/{names[0]}")
        return answer.is_success and answer.json()["ahead_until"] is not None

    _, term = await stage.leader()
    for name in REPLICAS:
        await cluster.kill(cluster.replicas[name])
        cluster.set_clock(name, offset_ms=_AHEAD_MS, database_ms=_AHEAD_MS)
    began_s = stage.now_s()
    await asyncio.gather(*(stage.restart(name) for name in REPLICAS))
    await stage.leader(after_term=term)
    await eventually(fire_ahead, "all schedules fire three hours ahead")
    for name in REPLICAS:
        cluster.set_clock(name, offset_ms=_AHEAD_MS)
    await stage.quiet(4, 6)
    for name in REPLICAS:
        cluster.calm(name)
        await eventually(partial(knows_the_time, name), f"{name} knows that its schedules are ahead")
    for name in names:
        await stage.load.answered(partial(_reset, name))
    await eventually(fire_again, "all schedules fire again")
    stage.excuse(began_s)
    await stage.quiet(8, 10)


_BELIEVED = {**SHORT_LEASE, "HASCHEDULER_CLOCK_SKEW_MAX": "2s"}
"""So that a clock that runs wrong gets as far as that while the row lasts."""
_SKEW_MS = 2_000 + 500
"""What a replica's clock may be wrong, and how far it gets until that is noticed."""
_wrong_row = partial(Row, settings=SHORT_LEASE, gap_s=9.0)
_rate_row = partial(Row, settings=_BELIEVED, gap_s=9.0, skew_ms=_SKEW_MS)
_ahead = partial(_leader_goes_wrong, offset_ms=DAY_MS)
_behind = partial(_leader_goes_wrong, offset_ms=-DAY_MS)
ROWS = (
    _wrong_row("clock-day-ahead", "the leader's clock is a day ahead", _ahead),
    _wrong_row("clock-day-behind", "the leader's clock is a day behind", _behind),
    _wrong_row(
        "clock-of-all-libraries",
        "a day ahead or behind, for drivers and libraries of the leader too",
        _whole_process,
        faketime=True,
    ),
    _wrong_row("clock-only-wrong", "the only replica left has a clock a day ahead", _only_wrong),
    _rate_row("clock-fast", "the leader's clocks run a fifth too fast", partial(_leader_goes_wrong, rate=1.2)),
    _rate_row("clock-slow", "the leader's clocks run a sixth too slow", partial(_leader_goes_wrong, rate=1 / 1.2)),
    Row(
        "zone-data-differ",
        "each replica has other time-zone data, and the leader is killed between one local time and the same again",
        _zone_data_differ,
        zone_data=True,
        stray=True,
        gap_s=None,
    ),
    Row(
        "clock-put-right",
        "the replicas' clocks and MongoDB's are three hours ahead from a start on, and are put right one after the"
        " other; then all schedules are reset",
        _put_right,
        settings=SHORT_LEASE,
        load=LoadPlan(schedules=20, catch_up_max=10),
        skew_ms=_AHEAD_MS + 5_000,
        gap_s=None,
    ),
    Row("clock-processors", "one processor is a day ahead, one a day behind", _processors),
)
