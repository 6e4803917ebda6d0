"""Celery 5 on RabbitMQ: ``program.py work | submit COUNT | schedule COUNT``.

Settings, by its user guide (*Optimizing*, *Calling tasks*, *Workers*):

- ``confirm_publish``: a message counts as sent when the broker has confirmed it; messages are persistent by default.
  Without the two it is about twice as fast, and a crash of the broker loses jobs.
- ``task_acks_late`` stays off, as by default: a worker that dies takes what it has prefetched back to the queue, but
  not what it was running.
- ``worker_prefetch_multiplier`` 64: "if you have lots of short-duration tasks … 50 or 150".
- ``task_ignore_result``, no events, gossip, mingle, heartbeats or remote control: nothing that is not needed.
- Two worker processes, as many as cores.
- Eight threads submit, each with a connection of the pool: each confirm is waited for.
- Beat keeps its own schedule in memory; the default writes it to a file as well.
"""

import os
import sys
import threading
from datetime import timedelta
from typing import Any

from celery import Celery, signals  # type: ignore[import-not-found]

from tests.bench.peers.effect_lines import leave

_THREADS = 8

app = Celery("peer", broker=os.environ["AMQP_URL"])
app.conf.update(
    broker_transport_options={"confirm_publish": True},
    broker_pool_limit=_THREADS,
    broker_connection_retry_on_startup=True,
    task_ignore_result=True,
    task_serializer="json",
    worker_prefetch_multiplier=64,
    worker_enable_remote_control=False,
    worker_send_task_events=False,
    worker_disable_rate_limits=True,
    worker_hijack_root_logger=False,
)


def run(task: Any, job: str) -> None:
    leave(f"{job}:{task.request.id}")


noop = app.task(name="noop", bind=True)(run)


def _work() -> None:
    signals.worker_ready.connect(lambda **_: leave(f"ready:{os.getpid()}"), weak=False)
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel=ERROR"]
    app.worker_main(["worker", "--pool=prefork", "--concurrency=2", *quiet])


def _submit(count: int) -> None:
    numbers = iter(range(count))
    taking = threading.Lock()
    leave("begin:")

    def submit() -> None:
        with app.producer_pool.acquire(block=True) as producer:
            while True:
                with taking:
                    number = next(numbers, None)
                if number is None:
                    return
                noop.apply_async((f"job:{number}",), producer=producer)

    threads = [threading.Thread(target=submit) for _ in range(_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _schedule(count: int) -> None:
    each = timedelta(seconds=1)
    app.conf.beat_schedule = {
        f"s-{number}": {"task": "noop", "schedule": each, "args": (f"fire:s-{number}",)} for number in range(count)
    }
    signals.beat_init.connect(lambda **_: leave("scheduled:"), weak=False)
    app.Beat(scheduler="celery.beat:Scheduler", loglevel="ERROR", quiet=True).run()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["work"]:
            _work()
        case ["submit", count]:
            _submit(int(count))
        case ["schedule", count]:
            _schedule(int(count))
