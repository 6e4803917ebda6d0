"""One party can't take all places in flight, however slowly it sends: others get in, operators and workers too."""

import asyncio

import pytest

from hascheduler.api.edge import Edge
from hascheduler.api.http.shares import Pool, address_party, token_party
from hascheduler.api.middleware.pools import IN_FLIGHT, IN_FLIGHT_MAX
from tests.unit.api.doubles import World
from tests.unit.security.crowding import HERE, THERE, Caller, answer_of, crowded, fills, patient
from tests.unit.telemetry.scraping import scrape

__all__ = ["patient"]
pytestmark = pytest.mark.usefixtures("patient")


async def _drip(caller: Caller) -> asyncio.StreamReader:
    return await caller.begin("POST", "/v1/jobs", b"{", Content_Length="400")


async def test_a_submitter_whose_bodies_drip_keeps_no_one_else_out(app: Edge, world: World) -> None:
    async with crowded(app, world) as crowd:
        greedy = await crowd.caller("submitter", "acme")
        held = await fills(world.pools.in_flight, greedy, lambda: _drip(greedy), IN_FLIGHT_MAX + 1)
        assert 0 < held <= IN_FLIGHT_MAX / 2
        await crowd.others_get_in()
        # Its own next one is told that it is its own share, and when to come again.
        refused = await _drip(greedy)
        head = await refused.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 429")
        assert b"retry-after: 1\r\n" in head.lower()
        assert world.pools.in_flight.held(token_party(greedy.id)) == held
    told = scrape(world.metrics.registry)
    assert told.of("hascheduler_share_refusals_total", pool="in_flight", reason="token_share") >= 2
    assert world.pools.in_flight.in_use == 0


async def test_an_address_with_many_tokens_keeps_no_other_address_out(app: Edge, world: World) -> None:
    world.pools.in_flight = Pool(IN_FLIGHT, 40, 8)
    async with crowded(app, world) as crowd:
        for _ in range(12):
            greedy = await crowd.caller("submitter", "acme", HERE)
            await fills(world.pools.in_flight, greedy, lambda: _drip(greedy), 40)  # noqa: B023  # called at once
        assert world.pools.in_flight.held(address_party(HERE)) <= 24
        await crowd.others_get_in(THERE)


async def test_a_full_pool_admits_operators_and_workers_and_answers_submitters_503(app: Edge, world: World) -> None:
    world.pools.in_flight = Pool(IN_FLIGHT, 8, 4)
    async with crowded(app, world) as crowd:
        for number in range(4):
            greedy = await crowd.caller("submitter", "acme", f"127.0.1.{number + 1}")
            await fills(world.pools.in_flight, greedy, lambda: _drip(greedy), 1)  # noqa: B023  # called at once
        assert world.pools.in_flight.free() == 0
        status, problem = await (await crowd.caller("submitter")).ask("POST", "/v1/jobs", {"definition": "log"})
        assert (status, problem["type"]) == (503, "urn:hascheduler:problem:too-busy")
        # An operator of one tenant is one of many; those of all tenants keep the system going.
        assert (await (await crowd.caller("operator", "acme")).ask("GET", "/v1/jobs"))[0] == 503
        assert (await (await crowd.caller("operator")).ask("GET", "/v1/jobs"))[0] == 200
        assert (await (await crowd.caller("admin")).ask("GET", "/v1/tokens"))[0] == 200
        worker = {"name": "far", "definitions": ["log"], "slots": 1}
        assert (await (await crowd.caller("worker")).ask("POST", "/v1/work/processors", worker))[0] == 201
        for probe in ("/livez", "/readyz", "/leaderz"):
            assert (await answer_of(await crowd.stranger().begin("GET", probe)))[0] == 200


async def test_refusals_for_want_of_a_share_leave_no_audit_records(app: Edge, world: World) -> None:
    world.pools.in_flight = Pool(IN_FLIGHT, 0)
    async with crowded(app, world) as crowd:
        submitter = await crowd.caller("submitter")
        for _ in range(3):
            assert (await submitter.ask("POST", "/v1/jobs", {"definition": "log"}))[0] == 503
        await world.audit_writer.flush()
    assert not [each for each in world.everything()["audit"] if each.get("token_id") == submitter.id]
