"""taskiq on RabbitMQ, with taskiq-aio-pika: ``program.py work | submit COUNT | schedule COUNT``.

Settings, by its documentation (*CLI*, *Available brokers*, *Scheduling tasks*):

- Two worker processes, as many as cores, on uvloop, which the CLI takes where it is installed.
- ``--ack-type when_executed``: a message is acknowledged after its task, so a worker that dies gives it back.
- ``--no-parse``: arguments need no validation here.
- ``qos`` 200 and ``--max-async-tasks 200``; the default prefetch of 10 starves the workers.
- A classic durable queue instead of the default quorum queue; messages are persistent, and each publish is confirmed.
- Schedules are labels of the task, each with an interval of 1 s, the shortest there is; all are due at the full second.
"""

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import Any

from taskiq import TaskiqEvents, TaskiqScheduler  # type: ignore[import-not-found]
from taskiq.schedule_sources import LabelScheduleSource  # type: ignore[import-not-found]
from taskiq_aio_pika import AioPikaBroker, Queue, QueueType  # type: ignore[import-not-found]

from tests.bench.peers.effect_lines import leave

_SUBMITS_AT_ONCE = 64
_PREFETCH = 200

broker = AioPikaBroker(os.environ["AMQP_URL"], qos=_PREFETCH, task_queues=[Queue(type=QueueType.CLASSIC)])


async def run(job: str, nominal_ms: int | None = None) -> None:
    leave(job if nominal_ms is None else f"{job}:{nominal_ms}", nominal_ms)


schedules = [
    {"interval": 1, "args": [f"fire:s-{number}"], "schedule_id": f"s-{number}"}
    for number in range(int(os.environ.get("SCHEDULES", "0")))
]
noop = broker.register_task(run, task_name="noop", schedule=schedules)
broker.add_event_handler(TaskiqEvents.WORKER_STARTUP, lambda _: leave(f"ready:{os.getpid()}"))
broker.add_event_handler(TaskiqEvents.CLIENT_STARTUP, lambda _: leave("scheduled:") if schedules else None)


def _with_nominal(task: Any) -> None:
    """Called when a schedule is due, before anything is sent: the scheduler looks at each full second."""
    task.kwargs["nominal_ms"] = int(time.time()) * 1_000


source = LabelScheduleSource(broker)
source.pre_send = _with_nominal
scheduler = TaskiqScheduler(broker, [source])


async def _submit(count: int) -> None:
    numbers = iter(range(count))
    await broker.startup()
    leave("begin:")

    async def submit() -> None:
        for number in numbers:
            await noop.kiq(f"job:{number}")

    async with asyncio.TaskGroup() as tasks:
        for _ in range(_SUBMITS_AT_ONCE):
            tasks.create_task(submit())
    await broker.shutdown()


def _become(*arguments: str) -> None:
    taskiq = str(Path(sys.executable).with_name("taskiq"))
    here = ["--app-dir", str(Path(__file__).parent), "--log-level", "ERROR"]
    os.execv(taskiq, [taskiq, *arguments, *here])


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["work"]:
            most = ["--workers", "2", "--max-async-tasks", str(_PREFETCH)]
            _become("worker", "program:broker", *most, "--no-parse", "--ack-type", "when_executed")
        case ["submit", count]:
            asyncio.run(_submit(int(count)))
        case ["schedule", count]:
            os.environ["SCHEDULES"] = count
            _become("scheduler", "program:scheduler")
