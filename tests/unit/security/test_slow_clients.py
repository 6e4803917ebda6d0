"""Clients that send or read next to nothing are cut when their time is over."""

import asyncio

import pytest

from hascheduler.api.edge import Edge
from hascheduler.api.http import connection, server
from hascheduler.api.routing import route_rules
from tests.unit.api.doubles import World
from tests.unit.security.crowding import LIMIT_S, Caller, answer_of, crowded, until
from tests.unit.telemetry.scraping import scrape


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
    monkeypatch.setattr(server, "_LOOK_EVERY_S", 0.05)
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
    monkeypatch.setattr(server, "_LOOK_EVERY_S", 0.05)
    async with crowded(app, world) as crowd:
        deaf = await crowd.caller("viewer")
        writer = await _full(deaf)
        await until(lambda: scrape_cuts(world) == 1)
        # Its places are free again, and others are served.
        await until(lambda: world.limits["in_flight"].in_use == 0)
        await crowd.others_get_in()
        writer.transport.abort()


def scrape_cuts(world: World) -> float:
    return scrape(world.metrics.registry).of("hascheduler_connections_cut_total", reason="slow_reader")


async def _full(caller: Caller) -> asyncio.StreamWriter:
    """As many requests on one connection as may wait for each other; nobody reads their answers, of 0.7 MB each."""
    _, writer = await caller.connect()
    writer.transport.pause_reading()  # type: ignore[attr-defined]  # it is one that can
    request = f"GET /openapi.json HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {caller.token}\r\n\r\n".encode()
    writer.write(request * 8)
    return writer


async def test_a_connection_that_is_to_close_does_not_wait_for_a_reader_for_ever(
    app: Edge, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "READ_PATIENCE_S", 0.1)
    monkeypatch.setattr(server, "_LOOK_EVERY_S", 0.05)
    monkeypatch.setattr(connection, "KEEP_ALIVE_S", 0.05)
    async with crowded(app, world) as crowd:
        await _full(await crowd.caller("viewer"))
        await until(lambda: scrape_cuts(world) == 1)
