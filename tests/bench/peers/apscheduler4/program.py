"""APScheduler 4 with its MongoDB data store: ``program.py work | submit COUNT | schedule COUNT``.

Settings, by its user guide and API reference:

- ``max_running_jobs=None`` for the task: the default of 1 runs one job after the other.
- Only the ``async`` executor, as the handler does not block.
- ``max_concurrent_jobs=100``, the default: it is how many jobs are acquired at a time.
- ``lease_duration`` 10 s, not 30: what a dead instance holds is free sooner. The same as ours, and as Agenda's lock.
- No results are kept, and no clean-up runs.
- The local event broker: none that exists speaks to MongoDB or AMQP. An instance therefore does not hear of jobs that
  others add, so each instance submits a share of the jobs itself, and schedules are made before instances start.
"""

import asyncio
import os
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pymongo
from apscheduler import AsyncScheduler, current_job  # type: ignore[import-not-found]
from apscheduler.datastores.mongodb import MongoDBDataStore  # type: ignore[import-not-found]
from apscheduler.executors.async_ import AsyncJobExecutor  # type: ignore[import-not-found]
from apscheduler.triggers.interval import IntervalTrigger  # type: ignore[import-not-found]

from tests.bench.peers.effect_lines import leave

_SUBMITS_AT_ONCE = 16
_AHEAD_S = 5


async def noop(job: str) -> None:
    leave(job)


async def tick() -> None:
    job = current_job.get()
    nominal_ms = round(job.scheduled_fire_time.timestamp() * 1_000)
    leave(f"fire:{job.schedule_id}:{nominal_ms}", nominal_ms)


async def main(role: str, count: int) -> None:
    client: pymongo.MongoClient[dict[str, Any]] = pymongo.MongoClient(os.environ["MONGODB_URI"])
    scheduler = AsyncScheduler(
        MongoDBDataStore(client, database="peer"),
        job_executors={"async": AsyncJobExecutor()},
        lease_duration=10,
        cleanup_interval=None,
    )
    async with scheduler:
        for function in (noop, tick):
            await scheduler.configure_task(function.__name__, func=function, max_running_jobs=None)
        if role == "schedule":
            await _schedule(scheduler, count)
            return
        await scheduler.start_in_background()
        leave(f"ready:{os.getpid()}")
        if role == "submit":
            await _submit(scheduler, count)
        await scheduler.wait_until_stopped()


async def _submit(scheduler: Any, count: int) -> None:
    numbers = iter(range(count))
    leave(f"begin:{os.getpid()}")

    async def submit() -> None:
        for number in numbers:
            await scheduler.add_job("noop", args=[f"job:{os.getpid()}-{number}"])

    async with asyncio.TaskGroup() as tasks:
        for _ in range(_SUBMITS_AT_ONCE):
            tasks.create_task(submit())


async def _schedule(scheduler: Any, count: int) -> None:
    begin = datetime.now(UTC) + timedelta(seconds=_AHEAD_S)
    for number in range(count):
        trigger = IntervalTrigger(seconds=1, start_time=begin + timedelta(seconds=number / count))
        await scheduler.add_schedule("tick", trigger, id=f"s-{number}")
    leave("scheduled:")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0))
