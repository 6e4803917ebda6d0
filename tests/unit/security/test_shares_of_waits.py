"""Submits that wait for the end of their jobs: over its share a caller is answered 202 at once, none is kept out."""

import asyncio
from functools import partial

from hascheduler.api.edge import Edge
from hascheduler.api.http.shares import Pool
from hascheduler.api.middleware.pools import WAITS_MAX
from tests.unit.api.doubles import World
from tests.unit.security.crowding import Caller, answer_of, crowded, fills

SUBMIT = b'{"definition": "log"}'


async def _wait(caller: Caller) -> asyncio.StreamReader:
    return await caller.begin("POST", "/v1/jobs?wait=5m", SUBMIT)


async def test_a_submitter_who_waits_for_all_it_can_keeps_no_one_else_out(app: Edge, world: World) -> None:
    world.pools.waits = Pool("waits", 40)
    async with crowded(app, world) as crowd:
        greedy = await crowd.caller("submitter", "acme")
        held = await fills(world.pools.waits, greedy, partial(_wait, greedy), 41)
        assert 0 < held <= 20
        assert world.pools.in_flight.in_use == 0, "who waits is not in flight"
        # The next one has its job, and is not waited for.
        before = len(world.everything()["jobs"])
        assert (await answer_of(await _wait(greedy)))[0] == 202
        assert len(world.everything()["jobs"]) == before + 1
        await crowd.others_get_in()
        # Another's wait is one.
        patient = await crowd.caller("submitter", "umbrella")
        assert await fills(world.pools.waits, patient, partial(_wait, patient), 1) == 1
    assert world.pools.waits.in_use == 0


def test_one_token_may_wait_for_five_hundred() -> None:
    """As before there were shares."""
    assert WAITS_MAX // 2 == 500
