"""One party can't take all of what is limited, however slowly it sends or however long it waits: others get in."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import pytest

from hascheduler.api.edge import Edge
from hascheduler.api.http.limits import Limit, NoRoom, address_party
from hascheduler.api.routing.route_rules import LARGE_BODY_BYTES_MAX
from tests.unit.api.doubles import World
from tests.unit.api.test_cluster import HEADING
from tests.unit.security.crowding import HERE, THERE, Caller, answer_of, crowded, fills, patient, until
from tests.unit.telemetry.scraping import scrape

__all__ = ["patient"]
pytestmark = pytest.mark.usefixtures("patient")


async def _drip(caller: Caller) -> asyncio.StreamReader:
    return await caller.begin("POST", "/v1/jobs", b"{", Content_Length="400")


async def _drip_batch(caller: Caller) -> asyncio.StreamReader:
    return await caller.begin("POST", "/v1/jobs:batch", b'{"jobs":', Content_Length=str(LARGE_BODY_BYTES_MAX))


async def _drip_chunks(caller: Caller) -> asyncio.StreamReader:
    """It declares no size."""
    reader, writer = await caller.connect()
    head = f"POST /v1/jobs:batch HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {caller.token}\r\n"
    writer.write(f"{head}content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{{\r\n".encode())
    return reader


async def _wait(caller: Caller) -> asyncio.StreamReader:
    return await caller.begin("POST", "/v1/jobs?wait=5m", b'{"definition": "log"}')


async def _follow(caller: Caller) -> asyncio.StreamReader:
    return await caller.begin("GET", "/v1/events")


async def _record(caller: Caller) -> asyncio.StreamReader:
    return await caller.begin("GET", "/v1/cluster/recording?for=1m")


Holds = Callable[[Caller], object]
GREEDY: dict[str, tuple[str, str, Holds, int, int]] = {
    "bodies that drip": ("in_flight", "submitter", _drip, 128, 429),
    "batches that drip": ("large_bodies", "submitter", _drip_batch, 16 * 1024 * 1024, 429),
    "batches of unknown size that drip": ("large_bodies", "submitter", _drip_chunks, 16 * 1024 * 1024, 429),
    "waits for jobs": ("waits", "submitter", _wait, 20, 202),
    "streams of events": ("followers", "viewer", _follow, 45, 429),
}
"""What is held, by whom, how, the most that one may have, and how more is answered."""


@pytest.mark.parametrize("row", GREEDY)
async def test_who_takes_all_it_can_keeps_no_one_else_out(app: Edge, world: World, row: str) -> None:
    kind, role, hold, most, answered = GREEDY[row]
    if kind == "waits":
        world.limits[kind] = Limit("waits", 40)
    limit = world.limits[kind]
    async with crowded(app, world) as crowd:
        greedy = await crowd.caller(role, "acme")
        assert 0 < await fills(limit, greedy, partial(hold, greedy), 130) <= most
        if kind not in ("in_flight", "large_bodies"):
            assert world.limits["in_flight"].in_use == 0, "what waits is not in flight"
        more: asyncio.StreamReader = await hold(greedy)  # type: ignore[misc]  # one of the above
        head = await more.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 %d" % answered)
        assert (b"retry-after: " in head.lower()) == (answered == 429)
        await crowd.others_get_in()
        # Another has its share of the same.
        other = await crowd.caller(role, "umbrella")
        assert await fills(limit, other, partial(hold, other), 1) > 0
        await greedy.leave()
        await until(lambda: limit.held(("token", greedy.id)) == 0)
    assert limit.in_use == 0
    told = scrape(world.metrics.registry)
    assert told.of("hascheduler_share_refusals_total", pool=kind, reason="token_share") >= 2


async def test_a_worker_who_fetches_all_it_can_keeps_no_one_else_out(app: Edge, world: World) -> None:
    world.limits["fetches"] = Limit("fetches", 40)
    async with crowded(app, world) as crowd:
        greedy = await crowd.caller("worker")
        terms = {"name": "greedy", "definitions": ["log"], "slots": 1}
        _, registered = await greedy.ask("POST", "/v1/work/processors", terms)
        body = b'{"processor": "%b", "wait": "60s"}' % registered["processor"].encode()
        fetch = partial(greedy.begin, "POST", "/v1/work/fetch", body)
        assert 0 < await fills(world.limits["fetches"], greedy, fetch, 41) <= 20
        assert world.limits["in_flight"].in_use == 0, "what waits is not in flight"
        await crowd.others_get_in()
    assert world.limits["fetches"].in_use == 0


async def test_an_operator_who_records_all_it_can_keeps_no_one_else_out(app: Edge, world: World) -> None:
    world.view.heading = HEADING
    limit, greedy = world.limits["recordings"], ("token", "greedy")
    with suppress(NoRoom):
        while True:
            limit.take((greedy,))
    held = limit.held(greedy)
    assert held == limit.total / 2
    async with crowded(app, world) as crowd:
        reader = await _record(await crowd.caller("operator"))
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
    await until(lambda: limit.in_use == held)


def test_one_token_may_wait_for_five_hundred(world: World) -> None:
    assert world.limits["waits"].total // 2 == 500


async def test_an_address_with_many_tokens_keeps_no_other_address_out(app: Edge, world: World) -> None:
    limit = world.limits["in_flight"] = Limit("some", 40, 8)
    async with crowded(app, world) as crowd:
        for _ in range(12):
            greedy = await crowd.caller("submitter", "acme", HERE)
            await fills(limit, greedy, partial(_drip, greedy), 40)
        assert limit.held(address_party(HERE)) <= 24
        await crowd.others_get_in(THERE)


async def test_what_is_full_has_room_for_operators_and_workers_and_answers_submitters_503(
    app: Edge, world: World
) -> None:
    limit = world.limits["in_flight"] = Limit("requests", 8, 4)
    async with crowded(app, world) as crowd:
        for number in range(4):
            greedy = await crowd.caller("submitter", "acme", f"127.0.1.{number + 1}")
            await fills(limit, greedy, partial(_drip, greedy), 1)
        assert limit.free() == 0
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
    world.limits["in_flight"] = Limit("some", 0)
    async with crowded(app, world) as crowd:
        submitter = await crowd.caller("submitter")
        for _ in range(3):
            assert (await submitter.ask("POST", "/v1/jobs", {"definition": "log"}))[0] == 503
        await world.audit_writer.flush()
    assert not [each for each in world.everything()["audit"] if each.get("token_id") == submitter.id]
