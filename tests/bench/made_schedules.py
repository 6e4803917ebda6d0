"""Makes many schedules through the SDK, at all replicas in turn."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

from hascheduler.client import AsyncScheduler
from hascheduler.demo.evidence import Expectation

_IN_FLIGHT = 32


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
