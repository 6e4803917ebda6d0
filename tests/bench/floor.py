"""The least that a job can cost with this protocol and these drivers: its exchanges alone, with nothing around them.

One process does what replicas and processors do, through the server and the drivers that they use, and no more: jobs
arrive over HTTP and are inserted, the journal takes an entry, they are dispatched by a compare-and-set, a message goes
through the broker and is acknowledged, they are started and finished by a compare-and-set each. Every write waits for a
majority, but for the dispatch, which the journal holds already. As many change streams of the whole database are read
as there are replicas; each rests between an answer and the next request, while the server gathers events, and those of
followers rest for long. There is no validation, no decision, no log, no metric, no audit and no retry.

The least of all has a small document, no index, short updates, and streams of raw bytes that nobody decodes. Measured
*as stored*, a job has the document, the indexes and the updates of the system, and each stream is the one that a mirror
follows, decoded by the driver: what this form of the data costs, whatever the code around it. Measured *mirrored*, each
stream is folded into a mirror and a core of the system besides, as every replica does that may lead the next moment:
what a deployment costs in which a successor knows all that the leader knows.

What waits at the same moment shares an exchange, as in the system: dispatches as far apart as the leader's, to free
slots of two processors, and what arrived meanwhile for inserts, starts and finishes. Here one process leads and works
for all, where five would wake and each gather less. So what a whole system costs above this is hascheduler's own, and
what is below it no work on hascheduler can reach. The same holds for the time from the arrival of a submit to the
start, a chain of majority-acknowledged writes.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import psutil
import uvicorn
from pymongo import AsyncMongoClient
from pymongo.asynchronous.database import AsyncDatabase

from hascheduler.dispatch.dispatcher import Dispatcher
from hascheduler.embedded.children import run_in_foreground
from hascheduler.embedded.mongod import start_mongod
from hascheduler.embedded.rabbitmq import start_rabbitmq
from hascheduler.errors import WorldError
from hascheduler.mirror.changes import JobGone, JobSeen, ScheduleGone, ScheduleSeen
from hascheduler.mirror.mirror import Mirror
from hascheduler.model.values.instants import WallMs
from hascheduler.mongo.stream.events import event_pipeline
from hascheduler.mongo.stream.source import MongoChangeSource
from hascheduler.simulate.report import percentile
from tests.bench.cast import cpu_s, servers
from tests.bench.cost import Rate
from tests.bench.figures import Figures
from tests.bench.floor_at_rest import DATABASE, FOLLOWER_RESTS_S, follow
from tests.bench.floor_exchanges import Exchanges, Form, open_exchanges
from tests.bench.load import Load, loading

_PATIENCE_S = 30
_SETTLE_S = 5
_TAIL_S = 1
_STREAM_WAIT_MS = 1_000
_SLOTS = 32
_SLOTS_AT_ONCE = 128
"""Of a processor, as in the benchmarks of the cost and of the storm."""
_STORM_PATIENCE_S = 120
_FOLDED = JobSeen | JobGone | ScheduleSeen | ScheduleGone


@dataclass(frozen=True, slots=True)
class FloorPlan:
    """As many ``streams`` as there would be replicas; ``rest_ms`` is the leader's before it asks for more. It waits for
    ``batch_delay_max_ms`` at most before it decides."""

    form: Form
    streams: int
    rest_ms: int
    batch_delay_max_ms: int

    def case(self, load: str) -> str:
        return load if self.form is Form.LEAST else f"{load}, {self.form}"


def measure_floor(pace: Rate, seconds: int, plan: FloorPlan) -> Figures:
    """CPU in milliseconds a job, by process, on servers of its own: theirs, and this one's for all that speaks to
    them."""
    return run_in_foreground(_measure(pace, seconds, plan))


def measure_floor_at_once(count: int, plan: FloorPlan) -> Figures:
    """When the last of so many jobs has started whose schedules are all due at one instant, and how long the machine
    needs for the CPU of that if no core is ever idle: this one process can't keep them all busy."""
    return run_in_foreground(_measure_at_once(count, plan))


async def _measure(pace: Rate, seconds: int, plan: FloorPlan) -> Figures:
    async with _running(plan, _SLOTS) as exchanges, _serving(exchanges) as url:
        cast = {**servers(), "drivers": [psutil.Process()]}
        load = Load((url,), pace.per_second, _SETTLE_S + seconds + _TAIL_S, pace.batch)
        async with loading(load) as sending:
            await asyncio.sleep(_SETTLE_S)
            before, finished, began_at = cpu_s(cast), exchanges.finished, asyncio.get_running_loop().time()
            exchanges.starts_ms.clear()
            await asyncio.sleep(seconds)
            after, took_s = cpu_s(cast), asyncio.get_running_loop().time() - began_at
            jobs, starts_ms = exchanges.finished - finished, list(exchanges.starts_ms)
            sent = await sending.sent()
    if sent.failed or not jobs:
        raise WorldError(f"{sent.failed} submits failed, and {jobs} jobs have ended")
    by_kind = {kind: 1_000 * (after[kind] - before[kind]) / jobs for kind in cast}
    return {
        "jobs_per_s": round(jobs / took_s, 1),
        "start_p50_ms": percentile(starts_ms, 50),
        "start_p99_ms": percentile(starts_ms, 99),
        "cpu_ms_per_job": round(sum(by_kind.values()), 3),
        **{f"{kind}_cpu_ms_per_job": round(ms, 3) for kind, ms in by_kind.items()},
    }


async def _measure_at_once(count: int, plan: FloorPlan) -> Figures:
    async with _running(plan, _SLOTS_AT_ONCE) as exchanges:
        schedules = await exchanges.make_schedules(count)
        await asyncio.sleep(_SETTLE_S)
        cast = {**servers(), "drivers": [psutil.Process()]}
        before_s = sum(cpu_s(cast).values())
        exchanges.fire(schedules)
        async with asyncio.timeout(_STORM_PATIENCE_S):
            while exchanges.finished < count:  # noqa: ASYNC110  # asked rarely, as its own turns would count
                await asyncio.sleep(0.1)
        used_s = sum(cpu_s(cast).values()) - before_s
    return {
        "last_started_ms": max(exchanges.starts_ms),
        "cpu_bound_ms": round(1_000 * used_s / (os.cpu_count() or 1)),
        "cpu_ms_per_job": round(1_000 * used_s / count, 3),
    }


@asynccontextmanager
async def _running(plan: FloorPlan, slots: int) -> AsyncIterator[Exchanges]:
    """On servers of its own, with all its loops and streams; ``slots`` of each processor."""
    async with AsyncExitStack() as opened:
        mongod = await opened.enter_async_context(start_mongod())
        rabbitmq = await opened.enter_async_context(start_rabbitmq())
        loops = await opened.enter_async_context(asyncio.TaskGroup())
        exchanges = await opened.enter_async_context(
            open_exchanges(mongod.uri, rabbitmq.url, plan.form, slots, plan.batch_delay_max_ms)
        )
        running = [loops.create_task(exchanges.lead())]
        running += [loops.create_task(exchanges.work(each)) for each in exchanges.processors]
        for number in range(plan.streams):
            client = await opened.enter_async_context(AsyncMongoClient[dict[str, Any]](mongod.uri))
            rest_s = FOLLOWER_RESTS_S if number else plan.rest_ms / 1_000
            running.append(loops.create_task(_follow(client[DATABASE], plan.form, rest_s)))
        yield exchanges
        for task in running:
            task.cancel()


async def _follow(database: AsyncDatabase[dict[str, Any]], form: Form, rest_s: float) -> None:
    match form:
        case Form.LEAST:
            await follow(database, rest_s)
        case Form.AS_STORED:
            await follow(database, rest_s, event_pipeline(), codec=None)
        case Form.MIRRORED:
            await _mirror(database, rest_s)


async def _mirror(database: AsyncDatabase[dict[str, Any]], rest_s: float) -> None:
    """The stream, the mirror and the core of a replica that follows, and nothing around them."""
    stream, mirror, core = await MongoChangeSource(database).open(None), Mirror(), Dispatcher()
    async for changes in stream.snapshot():
        mirror.fold(changes)
    while True:
        batch = await stream.next_batch(_STREAM_WAIT_MS)
        facts = [fact for fact in mirror.fold(batch.changes).facts if isinstance(fact, _FOLDED)]
        if facts:
            core.step(WallMs(time.time_ns() // 1_000_000), facts)
        await asyncio.sleep(rest_s)


@asynccontextmanager
async def _serving(exchanges: Exchanges) -> AsyncIterator[str]:
    """The address at which an application takes jobs that does nothing else, under the server of the API."""
    server = uvicorn.Server(
        uvicorn.Config(
            exchanges.submit,
            port=0,
            http="httptools",
            interface="asgi3",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
        )
    )
    serving = asyncio.create_task(server.serve(), name="uvicorn")
    try:
        async with asyncio.timeout(_PATIENCE_S):
            while not server.started:  # noqa: ASYNC110  # it has no event for that
                await asyncio.sleep(0.01)
        host, port = server.servers[0].sockets[0].getsockname()
        yield f"http://{host}:{port}"
    finally:
        server.should_exit = True
        await serving
