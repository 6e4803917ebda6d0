"""How soon a job starts that is submitted while others are, at a given rate.

Jobs that do nothing are submitted one by one over HTTP, at all replicas in turn, from a process of its own. The time is
from just before a request is sent, as the sender reads the machine's clock, to the start of the handler, as that one
reads it.
"""

import asyncio
from pathlib import Path

from hascheduler.demo.evidence import Effects
from hascheduler.embedded.stack import Stack
from hascheduler.simulate.report import percentile
from tests.bench.figures import Figures
from tests.bench.load import Load, loading, read_sent

_WARM_UP_S = 3
_PATIENCE_S = 30


async def measure_starts(stack: Stack, per_second: int, seconds: int, folder: Path) -> Figures:
    """Over ``seconds`` after a warm-up."""
    ids, effects = folder / "acknowledged", Effects()
    load = Load(tuple(stack.urls.values()), per_second, _WARM_UP_S + seconds, ids_to=str(ids))
    async with loading(load) as under_way:
        sent = await under_way.sent()
    sent_ms = read_sent(ids)
    begin_ms = min(sent_ms.values(), default=0) + 1_000 * _WARM_UP_S
    missing = set(sent_ms)
    for _ in range(10 * _PATIENCE_S):
        missing -= {effect.job_id for effect in effects.read(map(stack.log_of, stack.processors))}
        if not missing:
            break
        await asyncio.sleep(0.1)
    started = [effect for effect in effects.all if sent_ms.get(effect.job_id, 0) >= begin_ms]
    starts_ms = [effect.at_ms - sent_ms[effect.job_id] for effect in started]
    return {
        "seconds": seconds,
        "jobs": len(starts_ms),
        "failed": sent.failed,
        "unstarted": len(missing),
        "doubled": len(effects.all) - len({effect.job_id for effect in effects.all}),
        "start_p50_ms": percentile(starts_ms, 50),
        "start_p99_ms": percentile(starts_ms, 99),
        "start_max_ms": max(starts_ms, default=0),
        "ack_p50_ms": sent.ack_p50_ms,
        "ack_p99_ms": sent.ack_p99_ms,
        "load_late_max_ms": sent.late_max_ms,
        "starts_ms": starts_ms,
    }
