"""Clients that connect to an HTTPS port and never shake hands count like others, and have little time."""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import httpx2
import pytest
import uvloop

from hascheduler.api.edge import Edge
from hascheduler.api.http import connection
from hascheduler.api.http import server as server_module
from hascheduler.tls import PemFile, client_context
from tests.unit.api.doubles import World, app_of
from tests.unit.security.crowding import HERE, LIMIT_S, THERE
from tests.unit.tls.certificates import Authority
from tests.unit.tls.conftest import authority
from tests.unit.tls.test_https import of_server, served

__all__ = ["authority"]
MAX = 8


@pytest.fixture
async def url(app: Edge, world: World, authority: Authority, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    monkeypatch.setattr(server_module, "CONNECTIONS_MAX", MAX)
    monkeypatch.setattr(server_module, "CONNECTIONS_RESERVE", 0)
    async with served(app, of_server(authority)) as url:
        yield url


def trusting(authority: Authority) -> ssl.SSLContext:
    return client_context(PemFile("CA", authority.cert), PemFile("CERT", ""), PemFile("KEY", ""))


async def alive(url: str, authority: Authority) -> bool:
    async with httpx2.AsyncClient(base_url=url, verify=trusting(authority), timeout=LIMIT_S) as client:
        return (await client.get("/livez")).status_code == 200


async def connected(url: str, address: str = HERE) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection(HERE, int(url.rpartition(":")[2]), local_addr=(address, 0))


async def ended(reader: asyncio.StreamReader) -> bool:
    async with asyncio.timeout(LIMIT_S):
        with suppress(ConnectionError):
            assert await reader.read() == b""
    return True


async def test_connections_that_never_shake_hands_take_a_share_of_their_own(
    url: str, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "HANDSHAKE_PATIENCE_S", 10 * LIMIT_S)
    silent = [await connected(url, THERE) for _ in range(2 * MAX)]
    assert await alive(url, authority)
    # Those that are beyond its share have gone.
    for reader, _ in silent[MAX:]:
        assert await ended(reader)
    for _, writer in silent:
        writer.transport.abort()


async def test_a_handshake_has_little_time(url: str, authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HANDSHAKE_PATIENCE_S", 0.05)
    reader, writer = await connected(url)
    writer.write(b"\x16\x03\x01")
    assert await ended(reader)
    writer.transport.abort()


def test_simultaneous_clients_are_all_answered_on_uvloop(authority: Authority) -> None:
    """It reads at once; tests run on another, which first finishes what it is told."""

    async def alive_at_once() -> list[bool]:
        async with served(app_of(World()), of_server(authority)) as url:
            return await asyncio.gather(*(alive(url, authority) for _ in range(40)))

    with ThreadPoolExecutor(1) as thread:
        assert all(thread.submit(uvloop.run, alive_at_once()).result(2 * LIMIT_S))


async def test_what_comes_with_the_last_of_the_handshake_is_not_lost(url: str, authority: Authority) -> None:
    reader, writer = await connected(url)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = trusting(authority).wrap_bio(incoming, outgoing, server_hostname=HERE)
    answer = b""
    async with asyncio.timeout(LIMIT_S):
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                writer.write(outgoing.read())
                incoming.write(await reader.read(65_536))
        tls.write(b"GET /livez HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")
        writer.write(outgoing.read())  # the end of the handshake and the request, in one piece
        while b'"alive":true' not in answer:
            incoming.write(await reader.read(65_536))
            with suppress(ssl.SSLWantReadError):
                while piece := tls.read(65_536):
                    answer += piece
    writer.transport.abort()
    assert answer.startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("sent", [b"", b"\x16", b"\x16\x03\x01\x00\x05nonsense", b"GET / HTTP/1.1\r\n\r\n"])
async def test_an_aborted_handshake_leaves_no_traceback(
    url: str, authority: Authority, caplog: pytest.LogCaptureFixture, sent: bytes
) -> None:
    unhandled: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unhandled.append(context))
    for turns in (0, 1, 2, 3, 5, 8, 20):
        _, writer = await connected(url)
        writer.write(sent)
        for _ in range(turns):
            await asyncio.sleep(0)
        writer.transport.abort()
    assert await alive(url, authority)
    assert unhandled == []
    assert [record for record in caplog.records if record.exc_info or record.levelno >= logging.ERROR] == []
