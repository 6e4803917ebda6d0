"""Clients that send or read next to nothing are cut by rate, long before their time limit."""

import asyncio

import pytest
from starlette.requests import ClientDisconnect

from hascheduler.api.edge import Edge
from hascheduler.api.http import connection, receive_rate
from hascheduler.api.http.receive_rate import (
    BYTES_PER_S_MIN,
    GRACE_S,
    BodyTooLarge,
    ReceiveDeadline,
    receive_body,
)
from tests.unit.api.doubles import World
from tests.unit.security.crowding import LIMIT_S, Caller, answer_of, crowded, until
from tests.unit.telemetry.scraping import scrape


@pytest.mark.parametrize(
    ("received", "due_s"),
    [(0, 100 + GRACE_S), (BYTES_PER_S_MIN, 101 + GRACE_S), (5 * BYTES_PER_S_MIN, 105 + GRACE_S), (1 << 30, 110)],
)
def test_what_has_to_be_there_grows_with_time(received: int, due_s: float) -> None:
    assert ReceiveDeadline(100, 110).due_s(received) == due_s


async def test_a_body_that_drips_is_cut_long_before_its_time_is_over(
    app: Edge, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receive_rate, "GRACE_S", 0.05)
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
        # Uncut, it would be answered after the ten seconds that a body may take.
        async with asyncio.timeout(8):
            status, problem = await answer_of(reader)
        dripping.cancel()
        assert status == 408
        assert b"slow-request" in problem


async def test_a_body_that_comes_while_the_loop_stood_still_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receive_rate, "GRACE_S", 0.0)
    loop = asyncio.get_running_loop()
    news: asyncio.Future[None] = loop.create_future()

    async def receive() -> dict[str, object]:
        await news
        return {"type": "http.request", "body": b"{}", "more_body": False}

    reading = asyncio.create_task(receive_body(receive, 10, 10))
    await asyncio.sleep(0)
    # Its time is over by the first look, and the bytes are told one turn later.
    loop.call_later(0.001, news.set_result, None)
    assert await reading == b"{}"


@pytest.mark.parametrize(
    ("message", "raised"),
    [
        ({"type": "http.disconnect"}, ClientDisconnect),
        ({"type": "http.request", "body": b"12345678901", "more_body": True}, BodyTooLarge),
    ],
)
async def test_how_a_body_ends_that_is_none(message: dict[str, object], raised: type[Exception]) -> None:
    async def receive() -> dict[str, object]:
        return message

    with pytest.raises(raised):
        await receive_body(receive, 10, 10)


async def test_a_head_that_drips_is_cut_long_before_its_time_is_over(
    app: Edge, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receive_rate, "GRACE_S", 0.05)
    monkeypatch.setattr(connection, "HEAD_PATIENCE_S", 10 * LIMIT_S)
    async with crowded(app, world) as crowd:
        reader, writer = await crowd.stranger().connect()
        writer.write(b"GET /livez HTTP/1.1\r\nx: ")
        async with asyncio.timeout(LIMIT_S):
            assert await reader.read() == b""


async def test_a_client_that_never_reads_its_answer_is_cut_off(
    app: Edge, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "DRAIN_CHECK_EVERY_S", 0.1)
    async with crowded(app, world) as crowd:
        deaf = await crowd.caller("viewer")
        writer = await _full(deaf)
        await until(lambda: scrape_cuts(world) == 1)
        # Its places are free again, and others are served.
        await until(lambda: world.pools.in_flight.in_use == 0)
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
    monkeypatch.setattr(connection, "DRAIN_CHECK_EVERY_S", 0.1)
    monkeypatch.setattr(connection, "KEEP_ALIVE_S", 0.05)
    async with crowded(app, world) as crowd:
        await _full(await crowd.caller("viewer"))
        await until(lambda: scrape_cuts(world) == 1)
