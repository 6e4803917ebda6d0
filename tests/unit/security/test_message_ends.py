"""Where a request ends: raw bytes, cut at every position, over plain TCP and TLS.

A server that sees another end than the client, or than a proxy before it, takes a part of a body for a request (RFC
9112, 6 and 11.2). Judged by what the application was given and by which answers came back, over sockets alone.
"""

import asyncio
import re
import ssl
from collections.abc import Sequence
from itertools import zip_longest
from typing import cast

import pytest
from starlette.types import Receive, Scope, Send

from hascheduler.tls import PemFile, client_context
from tests.tiers import in_tier
from tests.unit.api.test_server import serving
from tests.unit.tls.certificates import Authority
from tests.unit.tls.conftest import authority
from tests.unit.tls.test_https import of_server

__all__ = ["authority"]

HIDDEN = b"DELETE /hidden HTTP/1.1\r\nhost: a\r\n\r\n"
"""A body that is a request for who loses count."""
LENGTH = b"Content-Length: %d\r\n" % len(HIDDEN)
CHUNKED = b"Transfer-Encoding: chunked\r\n"
CHUNKS = b"%x\r\n%b\r\n" % (len(HIDDEN), HIDDEN)
NEXT = b"GET /next HTTP/1.1\r\nhost: a\r\n\r\n"
LAST = b"GET /last HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"
_LIMIT_S = 10
_TOGETHER = 100


def ask(fields: bytes, body: bytes = b"", line: bytes = b"POST /first HTTP/1.1") -> bytes:
    return line + b"\r\nHost: a\r\n" + fields + b"\r\n" + body


H2C = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n"
WEBSOCKET = b"connection: keep-alive\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n"
POST = ("POST", "/first", HIDDEN)
Seen = tuple[str, str, bytes]

TAKEN: dict[str, tuple[bytes, list[Seen]]] = {
    "a length": (ask(LENGTH, HIDDEN), [POST]),
    "no body": (ask(b""), [("POST", "/first", b"")]),
    "a GET with a body": (ask(LENGTH, HIDDEN, b"GET /first HTTP/1.1"), [("GET", "/first", HIDDEN)]),
    "a HEAD with a body": (ask(LENGTH, HIDDEN, b"HEAD /first HTTP/1.1"), [("HEAD", "/first", HIDDEN)]),
    "pipelined": (ask(LENGTH, HIDDEN) + NEXT, [POST, ("GET", "/next", b"")]),
    "pipelined after empty lines": (ask(LENGTH, HIDDEN) + b"\r\n\r\n" + NEXT, [POST, ("GET", "/next", b"")]),
    "an offer of h2c": (ask(H2C + LENGTH, HIDDEN), [POST]),
    "an offer of h2c with chunks": (ask(H2C + CHUNKED, CHUNKS + b"0\r\n\r\n"), [POST]),
    "an offer of h2c that expects 100": (ask(H2C + LENGTH + b"Expect: 100-continue\r\n", HIDDEN), [POST]),
    "an offer of h2c without a body": (ask(H2C, line=b"GET /first HTTP/1.1") + NEXT,
                                       [("GET", "/first", b""), ("GET", "/next", b"")]),
    "an offer of a websocket": (ask(WEBSOCKET + LENGTH, HIDDEN, b"PUT /first HTTP/1.1"), [("PUT", "/first", HIDDEN)]),
    "an offer to what is deleted": (ask(LENGTH + b"UPGRADE: a/1, b\r\nCONNECTION: x ,\tUPGRADE\r\n", HIDDEN,
                                        b"DELETE /first HTTP/1.1"), [("DELETE", "/first", HIDDEN)]),
    "one offer after the other": (ask(H2C + LENGTH, HIDDEN) * 3, [POST] * 3),
    "an offer that the connection does not name": (ask(b"upgrade: h2c\r\n" + LENGTH, HIDDEN), [POST]),
    "expects 100": (ask(LENGTH + b"Expect: 100-continue\r\n", HIDDEN) + NEXT, [POST, ("GET", "/next", b"")]),
    "expects something else": (ask(LENGTH + b"Expect: 200-ok\r\n", HIDDEN), [POST]),
    "chunks": (ask(CHUNKED, b"1\r\nD\r\n%x\r\n%b\r\n000\r\n\r\n" % (len(HIDDEN) - 1, HIDDEN[1:])), [POST]),
    "chunks with extensions": (ask(CHUNKED.upper(), b'1;a="b;c";d\r\nD\r\n%X;e=f\r\n%b\r\n0;g\r\n\r\n'
                                   % (len(HIDDEN) - 1, HIDDEN[1:])), [POST]),
    "trailers": (ask(CHUNKED, CHUNKS + b"0\r\nx: y\r\nhost: b\r\n\r\n") + NEXT, [POST, ("GET", "/next", b"")]),
    "trailers that offer another protocol": (
        ask(CHUNKED, CHUNKS + b"0\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n") + NEXT,
        [POST, ("GET", "/next", b"")],
    ),
}  # fmt: skip
"""What is sent before `LAST`, and what the application is given before it."""

ENDED: dict[str, tuple[bytes, list[Seen]]] = {
    "a request after the last": (ask(LENGTH + b"connection: close\r\n", HIDDEN) + NEXT, [POST]),
    "a request after the last of several": (NEXT + ask(LENGTH + b"Connection: x, Close\r\n", HIDDEN) + NEXT,
                                            [("GET", "/next", b""), POST]),
    "an offer with the last": (ask(b"Connection: close, Upgrade\r\nUpgrade: h2c\r\n" + LENGTH, HIDDEN) + NEXT, [POST]),
    "HTTP/1.0": (ask(LENGTH, HIDDEN, b"POST /first HTTP/1.0") + NEXT, [POST]),
    "HTTP/1.0 that is kept alive": (ask(LENGTH + b"connection: keep-alive\r\n", HIDDEN, b"POST /first HTTP/1.0") + NEXT,
                                    [POST]),
    "HTTP/1.0 without a length": (ask(b"", HIDDEN, b"POST /first HTTP/1.0"), [("POST", "/first", b"")]),
}  # fmt: skip
"""What ends the connection without a word on what follows."""

_BOTH = LENGTH + CHUNKED
REFUSED: dict[str, tuple[bytes, list[Seen]]] = {
    "a length and chunks": (ask(_BOTH, b"0\r\n\r\n" + HIDDEN), []),
    "an offer with a length and chunks": (ask(H2C + _BOTH, b"0\r\n\r\n" + HIDDEN), []),
    "two lengths": (ask(b"content-length: 0\r\n" + LENGTH, HIDDEN), []),
    "the same length twice": (ask(LENGTH * 2, HIDDEN), []),
    "two lengths in one": (ask(LENGTH.replace(b"\r", b", %d\r" % len(HIDDEN)), HIDDEN), []),
    "an empty length": (ask(b"content-length:\r\n", HIDDEN), []),
    "a length with a sign": (ask(LENGTH.replace(b": ", b": +"), HIDDEN), []),
    "a length with a blank in it": (ask(b"content-length: 3 7\r\n", HIDDEN), []),
    "a length that overflows": (ask(b"content-length: %d\r\n" % (2**64 + len(HIDDEN)), HIDDEN), []),
    "a length on the next line": (ask(b"content-length:\r\n 37\r\n", HIDDEN), []),
    "a length before any name": (b"POST /first HTTP/1.1\r\n content-length: 5\r\nhost: a\r\n\r\n" + HIDDEN, []),
    "a length with a blank before the colon": (ask(LENGTH.replace(b":", b" :"), HIDDEN), []),
    "a header that goes on": (ask(b"x: y\r\n content-length: 5\r\n" + LENGTH, HIDDEN), []),
    "chunks on the next line": (ask(b"transfer-encoding:\r\n chunked\r\n", CHUNKS + b"0\r\n\r\n"), []),
    "chunks twice": (ask(CHUNKED * 2, CHUNKS + b"0\r\n\r\n"), []),
    "an encoding that is not the last": (ask(CHUNKED.replace(b"\r", b", gzip\r"), CHUNKS + b"0\r\n\r\n"), []),
    "an unknown encoding": (ask(b"transfer-encoding: xchunked\r\n", CHUNKS + b"0\r\n\r\n"), []),
    "an empty encoding": (ask(b"transfer-encoding:\r\n" + LENGTH, HIDDEN), []),
    "chunks of HTTP/1.0": (ask(CHUNKED, CHUNKS + b"0\r\n\r\n", b"POST /first HTTP/1.0"), []),
    "lines that end with LF": (ask(LENGTH, HIDDEN).replace(b"\r\n", b"\n"), []),
    "a head that ends with LF": (ask(b"x: y\r\n\n" + LENGTH, HIDDEN), []),
    "CONNECT": (ask(LENGTH, HIDDEN, b"CONNECT a:443 HTTP/1.1"), []),
    "another version": (ask(LENGTH, HIDDEN, b"POST /first HTTP/2.0"), []),
    "the preface of HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + HIDDEN, []),
    "a second request that is none": (ask(LENGTH, HIDDEN) + b"G{T / HTTP/1.1\r\n\r\n", [POST]),
    "a length that is too short": (ask(b"content-length: 2\r\n", b"{}}") + HIDDEN, [("POST", "/first", b"{}")]),
    "a third request with a length and chunks": (
        NEXT + ask(LENGTH, HIDDEN) + ask(_BOTH, b"0\r\n\r\n" + HIDDEN), [("GET", "/next", b""), POST]
    ),
    "CONNECT after a request": (NEXT + ask(b"", HIDDEN, b"CONNECT a:443 HTTP/1.1"), [("GET", "/next", b"")]),
    "a chunk that is shorter": (ask(CHUNKED, b"%x\r\n%b\r\n0\r\n\r\n" % (len(HIDDEN) + 1, HIDDEN)), []),
    "a chunk that is longer": (ask(CHUNKED, b"%x\r\n%b\r\n0\r\n\r\n" % (len(HIDDEN) - 1, HIDDEN)), []),
    "a chunk without a length": (ask(CHUNKED, b"\r\n" + HIDDEN + b"\r\n0\r\n\r\n"), []),
    "a chunk of 0x": (ask(CHUNKED, b"0x5\r\nabcde\r\n0\r\n\r\n" + HIDDEN), []),
    "a chunk with a blank": (ask(CHUNKED, b"5 \r\nabcde\r\n0\r\n\r\n" + HIDDEN), []),
    "a chunk that overflows": (ask(CHUNKED, b"10000000000000005\r\nabcde\r\n0\r\n\r\n" + HIDDEN), []),
    "a chunk that ends with LF": (ask(CHUNKED, b"5\r\nabcde\n0\r\n\r\n" + HIDDEN), []),
    "a chunk's length that ends with LF": (ask(CHUNKED, b"5\nabcde\r\n0\r\n\r\n" + HIDDEN), []),
    "an extension that ends with LF": (ask(CHUNKED, b"5;a\nabcde\r\n0\r\n\r\n" + HIDDEN), []),
    "trailers that end the connection": (ask(CHUNKED, CHUNKS + b"0\r\nconnection: close\r\n\r\n") + NEXT, [POST]),
    "trailers with a length": (ask(CHUNKED, b"0\r\ncontent-length: 5\r\n\r\n" + HIDDEN), []),
}  # fmt: skip
"""What is answered with 400, after the answers to what came before it."""


ROWS: dict[str, tuple[bytes, list[Seen], list[int]]] = {
    **{name: (sent, [*seen, ("GET", "/last", b"")], [200] * (len(seen) + 1)) for name, (sent, seen) in TAKEN.items()},
    **{f"the end: {name}": (sent, seen, [200] * len(seen)) for name, (sent, seen) in ENDED.items()},
    **{f"refused: {name}": (sent, seen, [*[200] * len(seen), 400]) for name, (sent, seen) in REFUSED.items()},
}
Contexts = tuple[ssl.SSLContext | None, ssl.SSLContext | None]


class Application:
    """Keeps what it is given, by the port of the client. ``reads``: before it answers."""

    def __init__(self, *, reads: bool = True) -> None:
        self._reads = reads
        self.seen: dict[int, list[Seen]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body, more = b"", self._reads
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body, more = body + message["body"], message["more_body"]
        self.seen.setdefault(scope["client"][1], []).append((scope["method"], scope["path"], body))
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})


class Client(asyncio.Protocol):
    """Keeps what comes, to the end of the connection."""

    def __init__(self) -> None:
        self.received = b""
        self.came, self.ended = asyncio.Event(), asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's own has another base
        self.port: int = transport.get_extra_info("sockname")[1]

    def data_received(self, data: bytes) -> None:
        self.received += data
        self.came.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.set()

    def answers(self) -> list[int]:
        return [int(status) for status in re.findall(rb"HTTP/1\.1 (?!100)(\d+)", self.received)]


async def played(port: int, tls: ssl.SSLContext | None, scripts: Sequence[Sequence[bytes]]) -> list[Client]:
    """One connection a script, each piece of which the server has read before the next one is sent."""

    async def connected() -> Client:
        name = None if tls is None else "127.0.0.1"
        loop = asyncio.get_running_loop()
        return (await loop.create_connection(Client, "127.0.0.1", port, ssl=tls, server_hostname=name))[1]

    async with asyncio.timeout(_LIMIT_S):
        other = await connected()
        clients = await asyncio.gather(*(connected() for _ in scripts))
        for pieces in zip_longest(*scripts):
            for client, piece in zip(clients, pieces, strict=True):
                if piece is not None and not client.ended.is_set():
                    client.transport.write(piece)
            # The server has read all of it once it has answered another connection, which asks later.
            other.came.clear()
            other.transport.write(NEXT)
            await other.came.wait()
        other.transport.abort()
        await asyncio.gather(*(client.ended.wait() for client in clients))
    return clients


@pytest.fixture(scope="module", params=["plain", "TLS"])
def contexts(request: pytest.FixtureRequest, authority: Authority) -> Contexts:
    if request.param == "plain":
        return None, None
    return of_server(authority), client_context(PemFile("CA", authority.cert), PemFile("", ""), PemFile("", ""))


def wrong(app: Application, client: Client, row: str) -> str | None:
    _, seen, answers = ROWS[row]
    got = app.seen.get(client.port, []), client.answers()
    return None if got == (seen, answers) else f"{row}: {got}, not {(seen, answers)}"


@pytest.mark.parametrize("row", ROWS)
async def test_a_request_ends_where_its_length_says_wherever_it_is_cut(contexts: Contexts, row: str) -> None:
    app, sent = Application(), ROWS[row][0]
    count = in_tier(check=3, test=6, long=len(sent))
    positions = sorted({n * len(sent) // count for n in range(count)})  # 0: uncut
    async with serving(None, app, contexts[0]) as server:
        for begin in range(0, len(positions), _TOGETHER):
            some = positions[begin : begin + _TOGETHER]
            clients = await played(server.port, contexts[1], [(sent[:at], sent[at:] + LAST) for at in some])
            told = [
                f"at {at}, {said}"
                for at, client in zip(some, clients, strict=True)
                if (said := wrong(app, client, row))
            ]
            assert not told, "\n".join(told)


async def test_a_request_that_comes_byte_by_byte_ends_where_its_length_says(contexts: Contexts) -> None:
    app = Application()
    scripts = [[bytes([byte]) for byte in sent + LAST] for sent, _, _ in ROWS.values()]
    async with serving(None, app, contexts[0]) as server:
        clients = await played(server.port, contexts[1], scripts)
    told = [said for row, client in zip(ROWS, clients, strict=True) if (said := wrong(app, client, row))]
    assert not told, "\n".join(told)


async def test_no_part_of_a_body_that_nobody_reads_is_a_request(contexts: Contexts) -> None:
    app = Application(reads=False)
    rows = [(row, sent[:at], sent[at:] + LAST) for row, (sent, _, _) in ROWS.items() for at in (0, sent.find(HIDDEN))]
    async with serving(None, app, contexts[0]) as server:
        clients = await played(server.port, contexts[1], [pieces for _, *pieces in rows])
    for (row, *_), client in zip(rows, clients, strict=True):
        assert "/hidden" not in [path for _, path, _ in app.seen.get(client.port, [])], row
