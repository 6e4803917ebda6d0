"""Large bodies are charged by their declared size, unread; no request queues behind slow ones."""

import asyncio
from functools import partial

import pytest

from hascheduler.api.edge import Edge
from hascheduler.api.http.shares import token_party
from hascheduler.api.middleware.pools import LARGE_BODIES_BYTES_MAX
from hascheduler.api.routing.route_rules import LARGE_BODY_BYTES_MAX
from tests.unit.api.doubles import World
from tests.unit.security.crowding import Caller, answer_of, crowded, fills, patient

__all__ = ["patient"]
pytestmark = pytest.mark.usefixtures("patient")


async def _drip(caller: Caller, length: int = LARGE_BODY_BYTES_MAX) -> asyncio.StreamReader:
    return await caller.begin("POST", "/v1/jobs:batch", b'{"jobs":', Content_Length=str(length))


async def test_a_submitter_whose_batches_drip_keeps_no_one_else_out(app: Edge, world: World) -> None:
    async with crowded(app, world) as crowd:
        greedy = await crowd.caller("submitter", "acme")
        held = await fills(world.pools.large_bodies, greedy, partial(_drip, greedy), 16)
        assert 0 < held <= LARGE_BODIES_BYTES_MAX / 2
        assert (await answer_of(await _drip(greedy)))[0] == 429
        await crowd.others_get_in()
        # Another's batch, small or as large as one may be, does not wait for those of the first.
        other = await crowd.caller("submitter", "umbrella")
        assert (await other.ask("POST", "/v1/jobs:batch", {"jobs": [{"definition": "log"}]}))[0] == 200
        assert await fills(world.pools.large_bodies, other, partial(_drip, other), 1) == LARGE_BODY_BYTES_MAX
    assert world.pools.large_bodies.in_use == 0


async def test_a_body_that_declares_no_size_is_charged_as_the_largest(app: Edge, world: World) -> None:
    async with crowded(app, world) as crowd:
        caller = await crowd.caller("submitter")

        async def chunked() -> asyncio.StreamReader:
            reader, writer = await caller.connect()
            head = f"POST /v1/jobs:batch HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {caller.token}\r\n"
            head += "content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{\r\n"
            writer.write(head.encode())
            return reader

        assert await fills(world.pools.large_bodies, caller, chunked, 1) == LARGE_BODY_BYTES_MAX
        assert world.pools.large_bodies.held(token_party(caller.id)) == LARGE_BODY_BYTES_MAX
