"""Many schedules that fire every second: how many nominal times had their effect, and how late."""

import asyncio
from typing import Any

import httpx

from hascheduler.clock import SystemClock
from hascheduler.demo.evidence import Effects, Expectation
from hascheduler.embedded.stack import Stack
from hascheduler.model.instants import format_instant
from hascheduler.model.percentiles import percentile

_WARM_UP_MS = 3_000


async def measure_fires(stack: Stack, schedules: int, seconds: int) -> dict[str, Any]:
    """``schedules`` intervals of 1 s, their phases spread evenly, observed for ``seconds`` after a warm-up."""
    clock = SystemClock()
    url = next(iter(stack.urls.values()))
    start_ms = clock.wall_ms() + _WARM_UP_MS
    async with httpx.AsyncClient(timeout=30) as http:
        bounded = asyncio.Semaphore(16)

        async def create(number: int) -> Expectation:
            anchor = format_instant(start_ms + 1_000 * number // schedules)
            body = {
                "name": f"bench-{number}",
                "trigger": {"type": "interval", "every": "1s", "anchor": anchor},
                "job": {"definition": "log"},
            }
            async with bounded:
                return Expectation.of((await http.post(f"{url}/v1/schedules", json=body)).raise_for_status().json())

        expectations = await asyncio.gather(*(create(number) for number in range(schedules)))
        from_ms = clock.wall_ms() + _WARM_UP_MS
        until_ms = from_ms + seconds * 1_000
        await asyncio.sleep((until_ms - clock.wall_ms()) / 1_000 + 3)
        effects = Effects()
        effects.read([stack.log_of(name) for name in stack.processors])
        for expectation in expectations:
            await http.delete(f"{url}/v1/schedules/{expectation.name}")
    expected = {
        job
        for expectation in expectations
        for job in expectation.jobs_until(until_ms)
        if int(job.rpartition(":")[2]) > from_ms
    }
    seen = [effect for effect in effects.all if effect.job_id in expected]
    lags = [effect.lag_ms for effect in seen]
    return {
        "schedules": schedules,
        "seconds": seconds,
        "expected": len(expected),
        "fired": len({effect.job_id for effect in seen}),
        "missed": len(expected - {effect.job_id for effect in seen}),
        "doubled": len(seen) - len({effect.job_id for effect in seen}),
        "lag_p50_ms": percentile(lags, 50),
        "lag_p99_ms": percentile(lags, 99),
        "lag_max_ms": max(lags, default=0),
    }
