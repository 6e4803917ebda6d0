"""Many schedules that fire at a steady rate, made through the SDK at all replicas in turn."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

from hascheduler.client import AsyncScheduler
from hascheduler.clock import SystemClock
from hascheduler.demo.evidence import Expectation
from hascheduler.model.values.instants import format_instant

_IN_FLIGHT = 32


def interval_bodies(
    count: int, prefix: str = "bench", *, every_s: int = 1, definition: str = "noop", tenants: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Return schedules that fire every so many seconds, evenly spread over them, for the ``tenants`` in turns."""
    begin_ms = SystemClock().wall_ms()
    bodies = []
    for number in range(count):
        anchor = format_instant(begin_ms + 1_000 * every_s * number // count)
        trigger = {"type": "interval", "every": f"{every_s}s", "anchor": anchor}
        job = {"definition": definition, **({"tenant": tenants[number % len(tenants)]} if tenants else {})}
        bodies.append({"name": f"{prefix}-{number}", "trigger": trigger, "job": job})
    return bodies


async def make_schedules(urls: Sequence[str], bodies: Sequence[Mapping[str, Any]]) -> list[Expectation]:
    """In the order of ``bodies``."""
    made: dict[int, Expectation] = {}
    async with AsyncExitStack() as stack:
        schedulers = [await stack.enter_async_context(AsyncScheduler(url)) for url in urls]

        async def make(numbers: Iterator[int]) -> None:
            for number in numbers:
                schedules = schedulers[number % len(schedulers)].schedules
                made[number] = Expectation.of(await schedules.create_document(bodies[number]))

        left = iter(range(len(bodies)))
        async with asyncio.TaskGroup() as tasks:
            for _ in range(_IN_FLIGHT):
                tasks.create_task(make(left))
    return [made[number] for number in range(len(bodies))]
