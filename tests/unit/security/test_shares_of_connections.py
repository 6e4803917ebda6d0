"""One address has its share of the connections; when all others are taken, the last ones are a reserve."""

import pytest

from hascheduler.api.edge import Edge
from hascheduler.api.http import server as server_module
from tests.unit.api.doubles import World
from tests.unit.security.crowding import HERE, THERE, answer_of, crowded, until
from tests.unit.telemetry.scraping import scrape

MAX, RESERVE = 40, 8


def limit_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "CONNECTIONS_MAX", MAX)
    monkeypatch.setattr(server_module, "CONNECTIONS_RESERVE", RESERVE)


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    limit_connections(monkeypatch)


async def test_an_address_whose_connections_idle_keeps_no_other_out(app: Edge, world: World) -> None:
    async with crowded(app, world) as crowd:
        idle = crowd.stranger(HERE)
        readers = [(await idle.connect())[0] for _ in range(2 * MAX)]
        assert (await answer_of(readers[-1]))[0] == 429
        await crowd.others_get_in(THERE)


async def test_when_all_idle_the_oldest_gives_way_to_a_newcomer(app: Edge, world: World) -> None:
    async with crowded(app, world) as crowd:
        idle = [(await crowd.stranger(f"127.0.2.{number + 1}").connect())[0] for number in range(2 * MAX)]
        viewer = await crowd.caller("viewer", "acme", THERE)
        await until(lambda: sum(not reader.at_eof() for reader in idle) <= MAX)
        assert scrape(world.metrics.registry).of("hascheduler_connections_cut_total", reason="idle") >= MAX
        assert (await viewer.ask("GET", "/v1/jobs"))[0] == 200
        assert not idle[-1].at_eof()


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


async def test_a_busy_address_gets_429_for_its_share(app: Edge, world: World) -> None:
    async with crowded(app, world) as crowd:
        for _ in range((MAX - RESERVE) * 3 // 4):
            viewer = await crowd.caller("viewer", "acme", HERE)
            stream = await viewer.begin("GET", "/v1/events")
            assert (await stream.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        assert (await answer_of((await crowd.stranger(HERE).connect())[0]))[0] == 429
        await crowd.others_get_in(THERE)
