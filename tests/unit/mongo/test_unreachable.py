"""Addresses are asked what they are while the database is used; hosts without one are reported at once."""

import asyncio
import socket
import struct
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import bson
import pytest

from hascheduler.errors import StoreUnavailable, Unreachable
from hascheduler.mongo import unreachable
from hascheduler.mongo.unreachable import explained
from tests.unit.tls.certificates import Authority, no_sockets_left_over
from tests.unit.tls.conftest import authority, stranger
from tests.unit.tls.test_https import of_server

__all__ = ["authority", "no_sockets_left_over", "stranger"]
Meet = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class _SlowToClose:
    """Stands for the driver's client: a member that answers at once, and a close that takes a turn of its own."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.closing = asyncio.Event()
        self.may_close = asyncio.Event()
        self.is_closed = False
        self.admin = self

    async def command(self, _: str) -> dict[str, Any]:
        return {"setName": "rs0", "isWritablePrimary": True}

    async def close(self) -> None:
        self.closing.set()
        await self.may_close.wait()
        self.is_closed = True


async def test_a_client_is_closed_whole_when_the_use_that_it_accompanied_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    client = _SlowToClose()
    monkeypatch.setattr(unreachable, "AsyncMongoClient", lambda *_, **__: client)
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]

    async def use() -> None:
        await client.closing.wait()
        asyncio.get_running_loop().call_later(0.01, client.may_close.set)

    async with server, asyncio.timeout(10):
        await unreachable.explained(use, f"mongodb://127.0.0.1:{port}/?replicaSet=rs0", {})
    assert client.is_closed


async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    await reader.read()


async def closing(_: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
    pass


async def closing_later(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    await reader.read(1)


async def web(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)
    writer.write(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n")


def answering(document: Mapping[str, Any]) -> Meet:
    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            length, number, _, _ = struct.unpack("<iiii", await reader.readexactly(16))
            await reader.readexactly(length - 16)
            answer = struct.pack("<ib", 0, 0) + bson.encode(document)
            writer.write(struct.pack("<iiii", 16 + len(answer), 1, number, 2013) + answer)

    return meet


REFUSAL = {"ok": 0.0, "errmsg": "not {} today", "code": 8000, "codeName": "AtlasError"}
OLD = {"ok": 1.0, "isWritablePrimary": True, "setName": "rs0", "minWireVersion": 0, "maxWireVersion": 2}
SPOKEN: dict[str, tuple[Meet, str, str, str]] = {
    "hangs": (silent, "", "", "accepts the connection, but does not answer; expected a mongod that responds"),
    "closes": (closing, "", "", "closes the connection: "),
    "closes when it is asked": (closing_later, "", "", "closes the connection: connection closed; expected a mongod"),
    "has TLS": (silent, "own", "", "closes the connection: connection closed; expected a mongod, and tls=true in"),
    "is no mongod": (web, "", "", "does not speak the MongoDB protocol: Message length ("),
    "answers with an error": (answering(REFUSAL), "", "", "answers with an error: AtlasError (8000): not {} today; "),
    "is old": (answering(OLD), "", "", "can't be used: Server at 127.0.0.1:"),
    "hangs in TLS": (silent, "", "own", "accepts the connection, but does not answer; "),
    "hangs after TLS": (silent, "own", "own", "accepts the connection, but does not answer; "),
    "closes in TLS": (closing_later, "", "own", "closes the connection during or after the TLS handshake; expected"),
    "closes after TLS": (
        closing_later,
        "own",
        "own",
        "closes the connection during or after the TLS handshake: conn",
    ),
    "has no TLS": (web, "", "own", "can't agree on TLS with this process: [SSL: "),
    "is of a stranger": (silent, "other", "own", "has a certificate that this process does not trust: [SSL: CERT"),
}
"""The server, its certificate, the authority that the client trusts, and the text."""


async def test_a_server_without_a_hello_is_described_by_what_it_did(authority: Authority, stranger: Authority) -> None:
    async def asked(meet: Meet, certificate: str, trusted: str) -> str:
        async def met(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(OSError, asyncio.IncompleteReadError):
                await meet(reader, writer)
            writer.close()

        issuer = {"own": authority, "other": stranger}.get(certificate)
        server = await asyncio.start_server(met, "127.0.0.1", 0, ssl=issuer and of_server(issuer))
        where = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        tls = {"tls": True, "tlsCAFile": authority.cert} if trusted else {}

        async def use() -> None:
            raise StoreUnavailable("begin")

        async with server:
            with pytest.raises(Unreachable) as refused:
                await unreachable.explained(use, f"mongodb://me:sEcret@{where}/", tls)
        assert not refused.value.stays
        return str(refused.value).removeprefix(f"HASCHEDULER_MONGODB_URI: {where} ")

    async with asyncio.timeout(30):
        texts = await asyncio.gather(*(asked(*row[:3]) for row in SPOKEN.values()))
    assert {name: text[: len(SPOKEN[name][3])] for name, text in zip(SPOKEN, texts, strict=True)} == {
        name: row[3] for name, row in SPOKEN.items()
    }
    assert "sEcret" not in str(texts)


_SILENT = "silent.invalid"


@pytest.fixture
def resolver(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Says nothing about one host until the test is over, knows `here`, and no other."""
    is_over = threading.Event()

    def getaddrinfo(host: str, port: Any, *_: Any, **__: Any) -> list[Any]:
        if host == _SILENT:
            is_over.wait()
        if host != "here":
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 1))]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    yield
    is_over.set()
    for thread in threading.enumerate():
        if thread.name.startswith("resolve "):
            thread.join()


@pytest.mark.parametrize(
    ("hosts", "texts"),
    [
        (_SILENT, "the host 'silent.invalid' can't be resolved: no answer; expected a resolver that answers"),
        ("a.invalid,b.invalid", "there is no address for the host 'a.invalid', 'b.invalid'; expected a host name"),
        (f"a.invalid,{_SILENT}", "for the host 'a.invalid'; the host 'silent.invalid' can't be resolved"),
    ],
)
async def test_without_an_address_the_database_is_not_tried(
    monkeypatch: pytest.MonkeyPatch, resolver: None, hosts: str, texts: str
) -> None:
    """The driver waits at its end for each name that it began to resolve, however long that takes."""
    if _SILENT in hosts:
        monkeypatch.setattr(unreachable, "_ANSWER_LIMIT_S", 0.05)
    tried = []

    async def doing() -> None:
        tried.append(1)

    with pytest.raises(Unreachable, match=texts):
        await explained(doing, f"mongodb://{hosts}/?replicaSet=rs0", {})
    assert tried == []
