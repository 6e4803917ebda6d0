"""Makes many schedules over HTTP, at all replicas in turn."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import aiohttp
import orjson

from hascheduler.demo.evidence import Expectation

_IN_FLIGHT = 32
_JSON = {"content-type": "application/json"}


async def make_schedules(urls: Sequence[str], bodies: Sequence[Mapping[str, Any]]) -> list[Expectation]:
    """In the order of ``bodies``."""
    made: dict[int, Expectation] = {}
    async with aiohttp.ClientSession(raise_for_status=True) as http:

        async def make(numbers: Iterator[int]) -> None:
            for number in numbers:
                url = f"{urls[number % len(urls)]}/v1/schedules"
                async with http.post(url, data=orjson.dumps(bodies[number]), headers=_JSON) as answer:
                    made[number] = Expectation.of(orjson.loads(await answer.read()))

        left = iter(range(len(bodies)))
        async with asyncio.TaskGroup() as tasks:
            for _ in range(_IN_FLIGHT):
                tasks.create_task(make(left))
    return [made[number] for number in range(len(bodies))]
