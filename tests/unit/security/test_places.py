"""One party can't take all places, however slowly it sends or long it waits: others get in, on every port."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import pytest

from hascheduler.api.edge import Edge
from hascheduler.api.http import connection, server
from hascheduler.api.http.limits import Limit, address_party
from hascheduler.api.ops import health_port
from hascheduler.api.ops.health_port import HealthPort
from hascheduler.api.routing import route_rules
from hascheduler.api.routing.route_rules import LARGE_BODY_BYTES_MAX
from hascheduler.daemon.leadership import liveness as liveness_module
from hascheduler.daemon.leadership.liveness import GREETING, LivenessServer
from hascheduler.telemetry.registry import new_registry
from tests.unit.api.doubles import World
from tests.unit.security.crowding import HERE, LIMIT_S, THERE, Caller, answer_of, crowded, fills, patient, until
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
    assert told.of("hascheduler_http_rejections_total", pool=kind, reason="token_share") >= 2


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


# Shares of the connections, the last of which are a reserve

MAX, RESERVE = 40, 8


def limit_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "CONNECTIONS_MAX", MAX)
    monkeypatch.setattr(server, "CONNECTIONS_RESERVE", RESERVE)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    limit_connections(monkeypatch)


@pytest.mark.usefixtures("few")
async def test_an_address_whose_connections_idle_keeps_no_other_out(app: Edge, world: World) -> None:
    async with crowded(app, world) as crowd:
        idle = crowd.stranger(HERE)
        readers = [(await idle.connect())[0] for _ in range(2 * MAX)]
        assert (await answer_of(readers[-1]))[0] == 429
        await crowd.others_get_in(THERE)


@pytest.mark.usefixtures("few")
async def test_when_all_idle_the_oldest_gives_way_to_a_newcomer(app: Edge, world: World) -> None:
    async with crowded(app, world) as crowd:
        idle = [(await crowd.stranger(f"127.0.2.{number + 1}").connect())[0] for number in range(2 * MAX)]
        viewer = await crowd.caller("viewer", "acme", THERE)
        await until(lambda: sum(not reader.at_eof() for reader in idle) <= MAX)
        assert scrape(world.metrics.registry).of("hascheduler_connections_closed_total", reason="idle") >= MAX
        assert (await viewer.ask("GET", "/v1/jobs"))[0] == 200
        assert not idle[-1].at_eof()


@pytest.mark.usefixtures("few")
async def test_when_all_are_busy_the_last_places_are_for_probes_operators_and_workers(app: Edge, world: World) -> None:
    async with crowded(app, world) as crowd:
        for number in range(MAX - RESERVE):  # streams of events, each of a party of its own
            viewer = await crowd.caller("viewer", "acme", f"127.0.2.{number + 1}")
            stream = await viewer.begin("GET", "/v1/events")
            assert (await stream.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        status, problem = await (await crowd.caller("viewer", "acme", THERE)).ask("GET", "/v1/jobs")
        assert (status, problem["type"]) == (503, "urn:hascheduler:problem:too-busy")
        assert (await (await crowd.caller("operator", "*", THERE)).ask("GET", "/v1/jobs"))[0] == 200
        worker = {"name": "far", "definitions": ["log"], "slots": 1}
        assert (await (await crowd.caller("worker", "*", THERE)).ask("POST", "/v1/work/processors", worker))[0] == 201
        assert (await answer_of(await crowd.stranger(THERE).begin("GET", "/livez")))[0] == 200


# The ports beside the API

GREETED = GREETING.format(id="replica-1").encode()


async def test_standbys_keep_and_get_connections_when_one_address_takes_the_rest() -> None:
    liveness = LivenessServer(HERE, 0, "replica-1")
    await liveness.bind()
    serving = asyncio.create_task(liveness.run())
    writers = []

    async def line(address: str) -> asyncio.StreamReader:
        reader, writer = await asyncio.open_connection(HERE, liveness.port, local_addr=(address, 0))
        writers.append(writer)
        async with asyncio.timeout(LIMIT_S):
            assert await reader.readline() == GREETED
        return reader

    standby = await line(THERE)
    greedy = [await line(HERE) for _ in range(2 * liveness_module.CONNECTIONS_MAX)]
    await line("127.0.0.3")
    assert not standby.at_eof()
    async with asyncio.timeout(LIMIT_S):
        with suppress(ConnectionResetError):
            assert await greedy[0].read() == b"", "the oldest of those with the most has gone"
    for writer in writers:
        writer.transport.abort()
    serving.cancel()
    await asyncio.wait([serving])


async def test_a_probe_is_answered_when_one_address_takes_all_connections_of_the_health_port() -> None:
    class Well:
        def not_alive(self) -> str:
            return ""

        not_ready = not_leading = not_alive

    port = HealthPort(HERE, 0, Well(), new_registry(), leads=True)
    await port.open()
    assert port._server is not None
    number = port._server.port
    idle = [(await asyncio.open_connection(HERE, number)) for _ in range(3 * health_port._CONNECTIONS_MAX)]
    reader, writer = await asyncio.open_connection(HERE, port._server.port, local_addr=(THERE, 0))
    writer.write(b"GET /livez HTTP/1.1\r\nhost: a\r\n\r\n")
    assert (await answer_of(reader))[0] == 200
    assert (await answer_of(idle[-1][0]))[0] == 429
    for each in (*(held for _, held in idle), writer):
        each.transport.abort()
    await port.close()


async def test_a_body_that_drips_is_cut_when_its_time_is_over(
    app: Edge, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(route_rules, "_BODY_PATIENCE_S", 0.1)
    async with crowded(app, world) as crowd:
        slow = await crowd.caller("submitter")
        reader, writer = await slow.connect()
        head = f"POST /v1/jobs HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {slow.token}\r\n"
        writer.write(f"{head}content-type: application/json\r\ncontent-length: 400000\r\n\r\n".encode())

        async def drip() -> None:
            while True:
                writer.write(b" ")
                await asyncio.sleep(0.02)

        dripping = asyncio.create_task(drip())
        status, problem = await answer_of(reader)
        dripping.cancel()
        assert status == 408
        assert b"slow-request" in problem


async def test_a_head_that_drips_is_cut_when_its_time_is_over(
    app: Edge, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "HEAD_PATIENCE_S", 0.1)
    monkeypatch.setattr(server, "_CHECK_EVERY_S", 0.05)
    async with crowded(app, world) as crowd:
        reader, writer = await crowd.stranger().connect()
        ended = asyncio.create_task(reader.read())
        async with asyncio.timeout(LIMIT_S):
            writer.write(b"GET /livez HTTP/1.1\r\nx: ")
            while not ended.done():  # it goes on for as long as it is let
                writer.write(b"a")
                await asyncio.sleep(0.02)
        assert ended.exception() is not None or ended.result() == b""


async def test_a_client_that_never_reads_its_answer_is_cut_off(
    app: Edge, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "READ_PATIENCE_S", 0.1)
    monkeypatch.setattr(server, "_CHECK_EVERY_S", 0.05)
    async with crowded(app, world) as crowd:
        deaf = await crowd.caller("viewer")
        _, writer = await deaf.connect()
        writer.transport.pause_reading()  # type: ignore[attr-defined]  # it is one that can
        request = f"GET /openapi.json HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {deaf.token}\r\n\r\n".encode()
        writer.write(request * 8)  # as many as may wait for each other; nobody reads their answers, of 0.7 MB each
        cut = "hascheduler_connections_closed_total"
        await until(lambda: scrape(world.metrics.registry).of(cut, reason="slow_reader") == 1)
        # Its places are free again, and others are served.
        await until(lambda: world.limits["in_flight"].in_use == 0)
        await crowd.others_get_in()
        writer.transport.abort()
