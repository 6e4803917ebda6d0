"""Plays a processor that speaks HTTP."""

import asyncio
from typing import Any

from tests.unit.api.doubles import World
from tests.unit.api.requests import Client, post

NOBODY = "http:nobody.00000000"


async def registered(client: Client, **changes: Any) -> str:
    body = {"name": "far", "definitions": ["log"], "slots": 2, **changes}
    return str((await post(client, "/v1/work/processors", body, 201))["processor"])


async def promised(client: Client, world: World, processor: str, **job: Any) -> dict[str, Any]:
    """A new job, dispatched to ``processor``, as its requests name it."""
    job_id = (await post(client, "/v1/jobs", {"definition": "log", **job}, 201))["id"]
    await world.dispatch(job_id, processor)
    return {"processor": processor, "job": job_id, "attempt": 1}


async def started(client: Client, world: World, processor: str, **job: Any) -> dict[str, Any]:
    named = await promised(client, world, processor, **job)
    await post(client, "/v1/work/start", named)
    return named


def attempt(named: dict[str, Any]) -> dict[str, Any]:
    return {"job": named["job"], "attempt": named["attempt"]}


async def waits(world: World, processor: str) -> None:
    """Until a fetch of the processor is held open."""
    while processor not in world.view.waiters.by_name:  # noqa: ASYNC110  # turns of the loop, not time
        await asyncio.sleep(0)
