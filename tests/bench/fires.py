"""Many schedules that fire every second: how many nominal times had their effect, and how late.

They are intervals of 1 s whose phases are spread evenly over the second. The lag is from the nominal time to the start
of the handler, by the handler's own clock reading; those that come within ten seconds after the end are late, not
missed.
"""

import asyncio
from collections.abc import Sequence

from hascheduler.clock import SystemClock
from hascheduler.demo.evidence import Effect, Effects
from hascheduler.embedded.stack import Stack
from hascheduler.simulate.report import percentile
from tests.bench.figures import Figures
from tests.bench.made_schedules import interval_bodies, make_schedules

_WARM_UP_MS = 3_000
_PATIENCE_MS = 10_000


async def measure_fires(stack: Stack, schedules: int, seconds: int) -> Figures:
    """``schedules`` of them, observed for ``seconds`` after a warm-up."""
    clock = SystemClock()
    expectations = await make_schedules(list(stack.urls.values()), interval_bodies(schedules))
    from_ms = clock.wall_ms() + _WARM_UP_MS
    until_ms = from_ms + seconds * 1_000
    expected = {
        job
        for expectation in expectations
        for job in expectation.jobs_until(until_ms)
        if int(job.rpartition(":")[2]) > from_ms
    }
    effects = Effects()
    await asyncio.sleep((until_ms - clock.wall_ms()) / 1_000)
    missing = expected
    while missing and clock.wall_ms() < until_ms + _PATIENCE_MS:
        await asyncio.sleep(0.2)
        missing = missing - {effect.job_id for effect in effects.read(map(stack.log_of, stack.processors))}
    return _figures([effect for effect in effects.all if effect.job_id in expected], len(expected), seconds)


def _figures(seen: Sequence[Effect], expected: int, seconds: int) -> Figures:
    lags = [effect.lag_ms for effect in seen]
    fired = len({effect.job_id for effect in seen})
    return {
        "seconds": seconds,
        "expected": expected,
        "fired": fired,
        "missed": expected - fired,
        "doubled": len(seen) - fired,
        "lag_p50_ms": percentile(lags, 50),
        "lag_p99_ms": percentile(lags, 99),
        "lag_max_ms": max(lags, default=0),
        "lags_ms": lags,
    }
