"""Processors are killed, stand still, are cut off; users cancel, or ask for far more than can be done."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

from hascheduler.model.job import LIVE
from tests.chaos.cluster import Cluster, Life
from tests.chaos.row import Row
from tests.chaos.stage import PROCESSORS, Stage
from tests.chaos.users import WITH_LONG, LoadPlan
from tests.chaos.waiting import NotWithin, eventually

_PAST_THE_DEADLINE_S = 7.0
_BLOCKS_S = 20.0
FEW, FEW_MIN = LoadPlan(schedules=10, submits_per_s=5), 300
"""For rows in which each job has a minute: a queue on a busy machine is not to be the trouble."""


async def _processor_ends(stage: Stage, *, by: Callable[[Cluster, Life], Awaitable[None]], after_s: float = 0) -> None:
    for _ in range(stage.times(smoke=4, full=15)):
        await asyncio.sleep(stage.chance.uniform(1.0, 2.0))
        life = stage.any_processor()
        await by(stage.cluster, life)
        await asyncio.sleep(after_s)
        await stage.restart(life.name)
    # The last one's jobs are given to others when it has been silent for long.
    await asyncio.sleep(_PAST_THE_DEADLINE_S)


async def _again(stage: Stage, name: str) -> None:
    await stage.cluster.terminate(stage.cluster.processors[name])
    await stage.restart(name)


async def _processor_sigstop(stage: Stage) -> None:
    for _ in range(stage.times(smoke=2, full=6)):
        await asyncio.sleep(1)
        life = stage.any_processor()
        stage.cluster.freeze(life)
        await asyncio.sleep(_PAST_THE_DEADLINE_S)
        stage.cluster.thaw(life)
        await asyncio.sleep(2)


async def _blocked_loop(stage: Stage) -> None:
    """All that was asked for by then ends within a minute, and no attempt is lost."""
    for _ in range(stage.times(smoke=1, full=3)):
        await asyncio.gather(*(stage.load.submit("block", payload=_BLOCKS_S) for _ in range(2)))
        await all_end(stage)
        lost = await stage.database["jobs"].find({"losses": {"$gt": 0}}, {"attempts": 1}).to_list(3)
        if lost:
            raise AssertionError(f"lost beside a blocked loop: {lost}")


async def _cut_off(stage: Stage, *, from_mongodb: bool) -> None:
    lines = stage.to_mongodb if from_mongodb else stage.to_rabbitmq
    for turn in range(stage.times(smoke=2, full=6)):
        await asyncio.sleep(1)
        line = lines[stage.chance.choice(PROCESSORS)]
        # Refused one time, silent the other.
        if turn % 2:
            await line.cut()
        else:
            line.hold()
        await asyncio.sleep(_PAST_THE_DEADLINE_S)
        await line.repair()
        await asyncio.sleep(3)


async def _broker_port_closed(stage: Stage) -> None:
    """One starts without a broker: it is given nothing, and all is done by the others."""
    name = stage.chance.choice(PROCESSORS)
    line = stage.to_rabbitmq[name]
    await stage.cluster.terminate(stage.cluster.processors[name])
    await line.cut()
    await stage.restart(name)
    id = await _is_given_work(stage, name, able=False)
    await stage.quiet(15, 30)
    await all_end(stage)
    given = {"$or": [{"processor": id}, {"attempts.processor": id}]}
    if await stage.database["jobs"].count_documents(given):
        raise NotWithin(f"{id} was given jobs although it consumed nothing")
    await line.repair()
    await _is_given_work(stage, name, able=True)


async def _rights_revoked(stage: Stage) -> None:
    """One may not declare its queue any more, and then may again."""
    name = stage.chance.choice(PROCESSORS)
    place = stage.cluster.places[name]
    stage.cluster.places[name] = replace(place, amqp_url=await stage.broker.grant("strange"))
    await _again(stage, name)
    await _is_given_work(stage, name, able=True)
    await stage.broker.revoke("strange")
    await _is_given_work(stage, name, able=False)
    await stage.quiet(5, 20)
    await all_end(stage)
    await stage.broker.grant("strange")
    await _is_given_work(stage, name, able=True)
    stage.cluster.places[name] = place
    await _again(stage, name)


async def _is_given_work(stage: Stage, name: str, *, able: bool) -> str:
    """Wait until the newest process of that name is registered so; return its id."""

    async def find() -> str | None:
        newest = await stage.database["processors"].find_one(
            {"name": name, "draining": not able}, sort=[("expire_at", -1)]
        )
        return None if newest is None else str(newest["_id"])

    return await eventually(find, f"{name} is {'given' if able else 'not given'} work")


async def all_end(stage: Stage) -> None:
    """Wait until all that is due now has ended, which takes a minute at most whatever goes wrong with one processor."""
    jobs = stage.database["jobs"]
    live = {"state": {"$in": sorted(state.value for state in LIVE)}}
    due = [each["_id"] async for each in jobs.find(live, {"_id": True})]

    async def ended() -> bool:
        return not await jobs.count_documents({"_id": {"$in": due}, **live})

    await eventually(ended, f"{len(due)} jobs that were due have ended", limit_s=60)


async def _cancel_storm(stage: Stage) -> None:
    for _ in range(stage.times(smoke=3, full=10)):
        asked = await asyncio.gather(*(stage.load.submit("slow") for _ in range(60)))
        asked += await asyncio.gather(*(stage.load.submit("quick") for _ in range(60)))
        chosen = stage.chance.sample(asked, 100)
        await asyncio.gather(*(stage.load.cancel(one.id) for one in chosen))
        await asyncio.sleep(2)
    await stage.quiet(6, 10)


async def _overload(stage: Stage) -> None:
    """Ten times what may run of a definition meanwhile, for a while; other jobs are not to wait."""
    for _ in range(stage.times(smoke=6, full=12)):
        began_s = stage.now_s()
        await asyncio.gather(*(stage.load.submit("slow") for _ in range(130)))
        await asyncio.sleep(max(0.0, 1.0 - (stage.now_s() - began_s)))
    await stage.quiet(5, 10)


ROWS = (
    Row(
        "processor-port-closed",
        "a processor starts that can't reach RabbitMQ, beside healthy ones",
        _broker_port_closed,
        lines=True,
        load=FEW,
        obligations_min=FEW_MIN,
        recovery_max_s=60.0,
    ),
    Row(
        "processor-rights-revoked",
        "a processor loses its rights in RabbitMQ while it works, and gets them back",
        _rights_revoked,
        load=FEW,
        obligations_min=FEW_MIN,
        recovery_max_s=60.0,
    ),
    Row("processor-sigkill", "processors are killed at work", partial(_processor_ends, by=Cluster.kill, after_s=1)),
    Row("processor-sigterm", "processors are asked to end", partial(_processor_ends, by=Cluster.terminate)),
    Row(
        "processor-sigstop",
        "a processor stalls past its deadline, and wakes with jobs that others have",
        _processor_sigstop,
        smoke=True,
        load=LoadPlan(definitions=WITH_LONG),
    ),
    Row(
        "processor-blocked",
        "coroutine handlers block the event loop that they share with others",
        _blocked_loop,
        recovery_max_s=60.0,
    ),
    Row(
        "processor-without-mongodb",
        "a processor is cut off from MongoDB alone, past its deadline",
        partial(_cut_off, from_mongodb=True),
        lines=True,
        load=LoadPlan(definitions=WITH_LONG),
    ),
    Row(
        "processor-without-rabbitmq",
        "a processor is cut off from RabbitMQ alone",
        partial(_cut_off, from_mongodb=False),
        lines=True,
    ),
    Row(
        "cancel-storm",
        "most jobs are cancelled at once: waiting, dispatched or running",
        _cancel_storm,
        load=LoadPlan(cancel_every=1),
    ),
    Row("overload", "ten times what can be done of one definition is submitted", _overload, recovery_max_s=180.0),
)
