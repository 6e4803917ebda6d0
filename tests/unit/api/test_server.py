"""The server on a real port: what the network can do to it, what a connection makes of its bytes, and how it ends."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import httpx2
import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from hascheduler.api.http import server as server_module
from hascheduler.api.http.connection import HEAD_BYTES_MAX
from hascheduler.api.http.server import ApiServer
from hascheduler.errors import InvalidInput
from tests.unit.api.doubles import World, app_of
from tests.unit.api.requests import Client


@contextlib.asynccontextmanager
async def serving(
    world: World | None, app: ASGIApp | None = None, *more: Any, **options: Any
) -> AsyncIterator[ApiServer]:
    """On a port of its own, the application of ``world``, or that ``app`` of it."""
    if app is None:
        assert world is not None
        app = app_of(world)
    server = ApiServer(app, "127.0.0.1", 0, *more, **options)
    await server.bind()
    task = asyncio.create_task(server.run())
    await asyncio.sleep(0)  # it has begun, so that it ends by closing its port
    try:
        yield server
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def plain_client(port: int) -> Client:
    """For HTTP alone: it does not read the authorities that this machine trusts, which takes 20 ms."""
    return httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", verify=False)


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


async def test_a_port_in_use_is_one_readable_line(world: World) -> None:
    async with serving(world) as server:
        second = ApiServer(app_of(world), "127.0.0.1", server.port)
        with pytest.raises(InvalidInput, match=rf"127\.0\.0\.1:{server.port} is in use; expected a free port"):
            await second.bind()


@pytest.mark.parametrize("host", ["no.such.host.invalid", "192.0.2.1"])
async def test_a_host_that_is_not_here_is_one_readable_line(world: World, host: str) -> None:
    with pytest.raises(InvalidInput, match="HASCHEDULER_HTTP_HOST"):
        await ApiServer(app_of(world), host, 0).bind()


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
    entered, _ = held_look_up(world, monkeypatch)
    monkeypatch.setattr(server_module, "_DRAIN_S", 0.1)
    async with asyncio.timeout(10):
        async with serving(world) as server:
            request = asyncio.create_task(exchange(server, b"GET /v1/jobs/job:1 HTTP/1.1\r\nhost: a\r\n\r\n"))
            await entered.wait()
        request.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await request


GET = b"GET /%d HTTP/1.1\r\nhost: a\r\n\r\n"
CHUNKED = b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n"


class Application:
    """Reads each request and answers none."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.entered = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.asked.append(scope["path"])
        self.entered.set()
        while (await receive())["type"] != "http.disconnect":
            pass


async def until_cut(reader: asyncio.StreamReader) -> bytes:
    """What comes until the server closes the connection; with bytes that it has not read, it resets it."""
    async with asyncio.timeout(10):
        with suppress(ConnectionResetError):
            return await reader.read()
    return b""


async def test_more_requests_than_may_wait_for_others_end_the_connection() -> None:
    app = Application()
    async with serving(None, app) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"".join(GET % number for number in range(1_000)))
        assert await until_cut(reader) == b""
        writer.close()
    assert len(app.asked) <= 1


@pytest.mark.parametrize(
    "endless",
    [
        b"GET /" + b"a" * HEAD_BYTES_MAX,
        b"GET / HTTP/1.1\r\nhost: a\r\n" + b"x: y\r\n" * (HEAD_BYTES_MAX // 6) + b"\r\n",
        b"GET / HTTP/1.1\r\nhost: a\r\nx: " + b"y" * HEAD_BYTES_MAX + b"\r\n\r\n",
        b"\r\n" * (HEAD_BYTES_MAX // 2 + 1),
    ],
    ids=["a path", "many headers", "a large header", "empty lines"],
)
async def test_what_is_longer_than_a_head_is_not_kept(endless: bytes) -> None:
    async with serving(None, Application()) as server:
        assert (await exchange(server, endless)).startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize("endless", [b"0\r\nx: ", b"1;"], ids=["a trailer", "an extension of a chunk"])
async def test_what_surrounds_chunks_is_not_kept_either(endless: bytes) -> None:
    app = Application()
    async with serving(None, app) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(CHUNKED + endless)
        async with asyncio.timeout(10):
            await app.entered.wait()
            writer.write(b"a" * (2 * HEAD_BYTES_MAX))
            assert b"HTTP/1.1 400" in await until_cut(reader)
        writer.close()


EMPTY = World().everything()
BODY = b'{"definition": "log"}'
POST = b"POST /v1/jobs HTTP/1.1\r\nhost: a\r\nconnection: close\r\n"
JSON = b"content-type: application/json\r\n"
LENGTH = b"content-length: 21\r\n"

HEADS = [
    ("NUL in a header", POST + JSON + LENGTH + b"x: a\0b\r\n\r\n" + BODY, 400),
    ("two hosts", POST + JSON + LENGTH + b"host: b\r\n\r\n" + BODY, 400),
    ("no host", b"POST /v1/jobs HTTP/1.1\r\n" + JSON + LENGTH + b"\r\n" + BODY, 400),
    ("a TLS handshake", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 64 + b"\r\n\r\n", 400),
    ("TRACE", b"TRACE /v1/jobs HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n", 405),
    ("a token that breaks the line", POST + JSON + LENGTH + b"authorization: Bearer a\nx: y\r\n\r\n" + BODY, 400),
    ("no type", POST + LENGTH + b"\r\n" + BODY, 415),
    (
        "chunks that are too much",
        POST + JSON + b"transfer-encoding: chunked\r\n\r\n" + b"80001\r\n" + b" " * 524_289,
        413,
    ),
    ("a method by header", POST + JSON + b"content-length: 2\r\nx-http-method-override: DELETE\r\n\r\n{}", 422),
]


@pytest.mark.parametrize("case", HEADS, ids=[case[0] for case in HEADS])
async def test_what_is_not_a_proper_request_is_refused(world: World, case: tuple[str, bytes, int]) -> None:
    _, sent, status = case
    async with serving(world) as server:
        answer = await exchange(server, sent)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d" % status), head
    assert b"content-type: application/problem+json" in head.lower()
    assert json.loads(body)["type"].startswith("urn:hascheduler:problem:")
    assert b"Traceback" not in answer
    assert world.everything() == EMPTY
