"""The server on a real port: what the network can do to it, and how it ends."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import httpx
import pytest

from hascheduler.api.edge import Edge
from hascheduler.api.http import connection
from hascheduler.api.http import server as server_module
from hascheduler.api.http.server import ApiServer
from hascheduler.errors import InvalidInput
from tests.unit.api.doubles import World, app_of


@contextlib.asynccontextmanager
async def serving(world: World, app: Edge | None = None) -> AsyncIterator[ApiServer]:
    """On a port of its own, the application of ``world``, or that ``app`` of it."""
    server = ApiServer(app or app_of(world), "127.0.0.1", 0)
    await server.bind()
    task = asyncio.create_task(server.run())
    await asyncio.sleep(0)  # it has begun, so that it ends by closing its port
    try:
        yield server
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def plain_client(port: int) -> httpx.AsyncClient:
    """For HTTP alone: it does not read the authorities that this machine trusts, which takes 20 ms."""
    return httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", verify=False)


async def exchange(server: ApiServer, request: bytes) -> bytes:
    """Everything that comes back until the server closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    try:
        writer.write(request)
        async with asyncio.timeout(10):
            return await reader.read()
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def test_the_port_is_known_before_serving_and_requests_are_answered(world: World) -> None:
    async with serving(world) as server, plain_client(server.port) as client:
        assert server.port > 0
        answer = await client.post("/v1/jobs", json={"definition": "log"})
        assert answer.status_code == 201
        assert "server" not in answer.headers


async def test_no_answer_waits_for_the_acknowledgement_of_its_head(world: World) -> None:
    """Head and body are two writes: without TCP_NODELAY the second waits, for 40 ms, on a connection in use."""
    async with serving(world) as server, plain_client(server.port) as client:
        await client.get("/livez")
        [connection] = server._server.server_state.connections
        transport = getattr(connection, "transport")  # noqa: B009  # each of uvicorn's protocols has its own type
        assert transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


async def test_a_port_in_use_is_one_readable_line(world: World) -> None:
    async with serving(world) as server:
        second = ApiServer(app_of(world), "127.0.0.1", server.port)
        with pytest.raises(InvalidInput, match=rf"127\.0\.0\.1:{server.port} is in use; expected a free port"):
            await second.bind()


@pytest.mark.parametrize("host", ["no.such.host.invalid", "192.0.2.1"])
async def test_a_host_that_is_not_here_is_one_readable_line(world: World, host: str) -> None:
    with pytest.raises(InvalidInput, match="HASCHEDULER_HTTP_HOST"):
        await ApiServer(app_of(world), host, 0).bind()


@pytest.mark.parametrize("sent", [b"", b"GET /livez HTTP/1.1\r\nhost: a\r\n"])
async def test_a_head_that_never_ends_is_given_up(world: World, monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    monkeypatch.setattr(connection, "HEAD_PATIENCE_S", 0.1)
    monkeypatch.setattr(server_module, "_LOOK_EVERY_S", 0.05)
    async with serving(world) as server:
        assert await exchange(server, sent) == b""


async def test_the_rest_of_a_refused_body_is_not_waited_for(world: World) -> None:
    head = b"POST /v1/jobs HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 999999999\r\n\r\n{"
    async with serving(world) as server:
        answer = await exchange(server, head)
    assert answer.startswith(b"HTTP/1.1 413")


async def test_the_end_waits_for_what_is_in_flight_and_for_no_idle_connection(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered, leave = held_look_up(world, monkeypatch)
    server = ApiServer(app_of(world), "127.0.0.1", 0)
    await server.bind()
    task = asyncio.create_task(server.run())
    async with asyncio.timeout(10):
        _, idle = await asyncio.open_connection("127.0.0.1", server.port)
        request = asyncio.create_task(exchange(server, b"GET /v1/jobs/job:1 HTTP/1.1\r\nhost: a\r\n\r\n"))
        await entered.wait()
        task.cancel()
        await turns_of_the_loop()
        assert not task.done()
        leave.set()
        await asyncio.wait([task])
        assert (await request).startswith(b"HTTP/1.1 404")
        idle.close()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", server.port)


def held_look_up(world: World, monkeypatch: pytest.MonkeyPatch) -> tuple[asyncio.Event, asyncio.Event]:
    """Each request for a job sets the first event, and is answered, with a 404, once the second is set."""
    entered, leave = asyncio.Event(), asyncio.Event()

    async def slow(job_id: str) -> None:
        entered.set()
        await leave.wait()

    monkeypatch.setattr(world.jobs, "get", slow)
    return entered, leave


async def turns_of_the_loop() -> None:
    """Enough for all that waits for no time."""
    for _ in range(100):
        await asyncio.sleep(0)


async def test_a_request_that_never_ends_does_not_hold_up_the_end(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered = asyncio.Event()

    async def stuck(job_id: str) -> None:
        entered.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(world.jobs, "get", stuck)
    monkeypatch.setattr(server_module, "_DRAIN_S", 0.1)
    async with asyncio.timeout(10):
        async with serving(world) as server:
            request = asyncio.create_task(exchange(server, b"GET /v1/jobs/job:1 HTTP/1.1\r\nhost: a\r\n\r\n"))
            await entered.wait()
        request.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await request
