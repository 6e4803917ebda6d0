"""The floor with one process that takes jobs in, leads and works for all, so that each exchange carries the most.

As many change streams of the whole database are read as there are replicas; each rests between an answer and the next
request, while the server gathers events, and those of followers rest for long.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import psutil

from hascheduler.daemon.loop.batch_delay import PER_DECISION_MS, BatchDelay
from tests.bench.cast import Cast
from tests.bench.floor.exchanges import (
    PATIENCE_S,
    Leader,
    Start,
    Worker,
    open_database,
    open_receiving,
    open_sending,
    wall_ms,
)
from tests.bench.floor.forms import PROCESSORS, Written, schedule_names
from tests.bench.floor.intake import Intake, serving
from tests.bench.floor.plan import FloorPlan, Running
from tests.bench.floor.streams import FOLLOWER_RESTS_S, follow_in_form


class _OneProcess:
    def __init__(self, url: str, leader: Leader, workers: Sequence[Worker]) -> None:
        self.urls: tuple[str, ...] = (url,)
        self.cast: Cast = {"drivers": [psutil.Process()]}
        self._leader = leader
        self._workers = workers

    async def fire(self, schedules: int) -> None:
        ended = sum(worker.ended for worker in self._workers) + schedules
        self._leader.fire(schedule_names(schedules))
        async with asyncio.timeout(4 * PATIENCE_S):
            while sum(worker.ended for worker in self._workers) < ended:  # noqa: ASYNC110  # asked rarely, as its own turns would count
                await asyncio.sleep(0.1)

    async def end(self) -> list[Start]:
        return [start for worker in self._workers for start in worker.starts]


@asynccontextmanager
async def open_one_process(mongodb_uri: str, amqp_url: str, plan: FloorPlan, slots: int) -> AsyncIterator[Running]:
    """With all its loops and streams; so many ``slots`` of each processor."""
    written, delay = Written.of(plan.form, wall_ms()), BatchDelay(PER_DECISION_MS, plan.batch_delay_max_ms)
    async with AsyncExitStack() as opened:
        database = await opened.enter_async_context(open_database(mongodb_uri))
        sending = await opened.enter_async_context(open_sending(amqp_url))
        arriving = await opened.enter_async_context(open_receiving(amqp_url, *PROCESSORS))
        loops = await opened.enter_async_context(asyncio.TaskGroup())
        leader = Leader(database, written, slots, sending, delay)
        workers = [
            Worker(database, written.moves[name], arrived, partial(leader.free, name))
            for name, arrived in zip(PROCESSORS, arriving, strict=True)
        ]
        running = [loops.create_task(leader.run()), *(loops.create_task(worker.run()) for worker in workers)]
        for number in range(plan.replicas):
            followed = await opened.enter_async_context(open_database(mongodb_uri))
            rest_s = FOLLOWER_RESTS_S if number else plan.rest_ms / 1_000
            running.append(loops.create_task(follow_in_form(followed, plan.form, rest_s)))
        async with serving(Intake(database, written, leader.add)) as url:
            yield _OneProcess(url, leader, workers)
        for task in running:
            task.cancel()
