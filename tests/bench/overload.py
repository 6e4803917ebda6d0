"""What becomes of a system that is asked for several times what it can do: goodput, and the wait of what it accepts.

First the best: the offered rate is raised until no more jobs end each second. Then ``times`` the best is offered, by
clients that come again once, when their Retry-After is over; and then the rate of the best once more, since a machine
that others share may have become slower or faster meanwhile: the goodput is compared with the mean of both. It counts
jobs that ended within the span of the load. The clients take CPU of the same machine, three times as much and more:
``goodput_ratio_of_cpu`` compares what was done with the CPU that they left. A wait is from a job's submission to its
first start, by the stored times, of all that were accepted in the span.
"""

import asyncio
import os
import time
from typing import Any

from pymongo import AsyncMongoClient

from hascheduler.embedded.stack import Stack
from hascheduler.simulate.report import percentile
from tests.bench.figures import Figures
from tests.bench.load import Load, Sent, loading
from tests.bench.stacks import drained, now_ms, waits_ms

_FIRST_PER_S = 150
_GROWTH = 1.5
_STEPS_MAX = 9
_WARM_UP_S = 2
_STEP_S = 5
_STILL_BETTER = 1.05


async def measure_overload(stack: Stack, database: str, times: int, seconds: int, batch: int) -> Figures:
    """``batch`` jobs in a request; ``times`` the best for so many ``seconds``."""
    urls = tuple(stack.urls.values())
    async with AsyncMongoClient[dict[str, Any]](stack.mongodb_uri) as client:
        jobs = client[database]["jobs"]
        best_per_s, offered, offered_best, best_cores = 0, _FIRST_PER_S * (1 if batch == 1 else 4), 0, 0.0
        for _ in range(_STEPS_MAX):
            sent, goodput_per_s = await _offered(jobs, Load(urls, offered, _WARM_UP_S + _STEP_S, batch))
            await drained(jobs)
            better = goodput_per_s > best_per_s * _STILL_BETTER
            if goodput_per_s > best_per_s:
                best_per_s, offered_best, best_cores = goodput_per_s, offered, sent.cores
            if not better:
                break
            offered = round(offered * _GROWTH)
        begin_ms = now_ms()
        load = Load(urls, best_per_s * times, _WARM_UP_S + seconds, batch, heeds=True)
        sent, goodput_per_s = await _offered(jobs, load)
        backlog = await jobs.count_documents({"state": "pending"})
        end_ms = now_ms()
        settled_s = await drained(jobs)
        waited_ms = await waits_ms(jobs, {"submitted_at_ms": {"$gte": begin_ms, "$lt": end_ms}})
        _, best_after_per_s = await _offered(jobs, Load(urls, offered_best, _WARM_UP_S + _STEP_S, batch))
        await drained(jobs)
    ratio = 2 * goodput_per_s / max(best_per_s + best_after_per_s, 1)
    cores = os.cpu_count() or 1
    return {
        "times": times,
        "seconds": seconds,
        "batch": batch,
        "best_per_s": best_per_s,
        "best_after_per_s": best_after_per_s,
        "best_at_offered_per_s": offered_best,
        "offered_per_s": load.per_second,
        "goodput_per_s": goodput_per_s,
        "goodput_ratio": round(ratio, 3),
        "goodput_ratio_of_cpu": round(ratio * (cores - best_cores) / (cores - sent.cores), 3),
        "client_cores_best": best_cores,
        "client_cores": sent.cores,
        "accepted": sent.acknowledged,
        "refused": sent.refused,
        "failed_otherwise": sent.failed - (sent.refused - sent.readmitted),
        "wait_p50_ms": percentile(waited_ms, 50),
        "wait_p99_ms": percentile(waited_ms, 99),
        "wait_max_ms": max(waited_ms, default=0),
        "unfinished_after": backlog,
        "settled_s": settled_s,
        "ack_p50_ms": sent.ack_p50_ms,
        "ack_p99_ms": sent.ack_p99_ms,
        "refusal_p50_ms": sent.refusal_p50_ms,
        "retry_after_p50_s": sent.retry_after_p50_s,
        "retry_after_max_s": sent.retry_after_max_s,
        "readmitted_ratio": round(sent.readmitted / max(sent.came_back, 1), 3),
        "load_late_max_ms": sent.late_max_ms,
    }


async def _offered(jobs: Any, load: Load) -> tuple[Sent, int]:
    """What became of the load, and how many jobs ended each second of it, after the warm-up."""
    async with loading(load) as under_way:
        await asyncio.sleep(_WARM_UP_S)
        before, began = await jobs.count_documents({"state": "succeeded"}), time.monotonic()
        await asyncio.sleep(load.seconds - _WARM_UP_S)
        after, ended = await jobs.count_documents({"state": "succeeded"}), time.monotonic()
        sent = await under_way.sent()
    return sent, round((after - before) / (ended - began))
