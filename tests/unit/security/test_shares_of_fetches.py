"""Fetches that wait for work: one worker's token, and one address, leave room for others."""

import asyncio
from functools import partial

from hascheduler.api.edge import Edge
from hascheduler.api.http.shares import Pool
from tests.unit.api.doubles import World
from tests.unit.security.crowding import Caller, answer_of, crowded, fills


async def _fetch(caller: Caller, processor: str) -> asyncio.StreamReader:
    return await caller.begin("POST", "/v1/work/fetch", f'{{"processor": "{processor}", "wait": "60s"}}'.encode())


async def test_a_worker_who_fetches_all_it_can_keeps_no_one_else_out(app: Edge, world: World) -> None:
    world.pools.fetches = Pool("fetches", 40)
    async with crowded(app, world) as crowd:
        greedy = await crowd.caller("worker")
        _, registered = await greedy.ask(
            "POST", "/v1/work/processors", {"name": "greedy", "definitions": ["log"], "slots": 1}
        )
        fetch = partial(_fetch, greedy, registered["processor"])
        assert 0 < await fills(world.pools.fetches, greedy, fetch, 41) <= 20
        assert world.pools.in_flight.in_use == 0, "what waits is not in flight"
        assert (await answer_of(await fetch()))[0] == 429
        await crowd.others_get_in()
    assert world.pools.fetches.in_use == 0
