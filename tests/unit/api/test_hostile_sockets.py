"""What no HTTP client would send: bytes on a real socket, to a real server. Refused, and nothing is written."""

import asyncio
import json

import pytest

from tests.unit.api.doubles import World
from tests.unit.api.test_server import exchange, serving

EMPTY = World().everything()
BODY = b'{"definition": "log"}'
POST = b"POST /v1/jobs HTTP/1.1\r\nhost: a\r\nconnection: close\r\n"
JSON = b"content-type: application/json\r\n"
LENGTH = b"content-length: 21\r\n"

HEADS = [
    ("a bare CR in a header", POST + JSON + LENGTH + b"x: a\rb\r\n\r\n" + BODY, 400),
    ("a bare LF in a header's name", POST + JSON + LENGTH + b"x\ny: a\r\n\r\n" + BODY, 400),
    ("NUL in a header", POST + JSON + LENGTH + b"x: a\0b\r\n\r\n" + BODY, 400),
    ("a blank before the colon", POST + JSON + LENGTH + b"x : a\r\n\r\n" + BODY, 400),
    ("two hosts", POST + JSON + LENGTH + b"host: b\r\n\r\n" + BODY, 400),
    ("no host", b"POST /v1/jobs HTTP/1.1\r\n" + JSON + LENGTH + b"\r\n" + BODY, 400),
    ("two lengths", POST + JSON + LENGTH + b"content-length: 5\r\n\r\n" + BODY, 400),
    ("a negative length", POST + JSON + b"content-length: -1\r\n\r\n" + BODY, 400),
    ("a length that is no number", POST + JSON + b"content-length: 0x15\r\n\r\n" + BODY, 400),
    ("an unknown transfer encoding", POST + JSON + b"transfer-encoding: gzip, chunked\r\n\r\n", 400),
    ("a path with a blank", b"GET /v1/jobs /x HTTP/1.1\r\nhost: a\r\n\r\n", 400),
    ("a TLS handshake", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 64 + b"\r\n\r\n", 400),
    ("a method nobody knows", b"BREW /v1/jobs HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n", 400),
    ("TRACE", b"TRACE /v1/jobs HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n", 405),
    ("a key with a control character", POST + JSON + LENGTH + b"idempotency-key: a\x07b\r\n\r\n" + BODY, 400),
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


async def test_a_line_break_in_a_value_never_becomes_a_header_of_the_answer(world: World) -> None:
    async with serving(world) as server:
        answer = await exchange(
            server, b"GET /v1/jobs/a%0d%0ax-injected:%20yes HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"
        )
    head, _, _ = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 404")
    assert b"x-injected" not in head


async def test_a_length_and_chunks_do_not_smuggle_a_request(world: World) -> None:
    """A server that goes by the length takes the rest for a second request; one that goes by the chunks does not."""
    hidden = b"0\r\n\r\nDELETE /v1/schedules/tick HTTP/1.1\r\nhost: a\r\n\r\n"
    head = b"POST /v1/jobs HTTP/1.1\r\nhost: a\r\n" + JSON + b"content-length: %d\r\ntransfer-encoding: chunked\r\n\r\n"
    async with serving(world) as server:
        # To the end of the connection, which no client has asked for.
        answer = await exchange(server, head % len(hidden) + hidden + b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400")
    assert answer.count(b"HTTP/1.1 ") == 1
    assert world.everything() == EMPTY


async def test_chunks_where_the_version_of_http_has_none_end_the_connection(world: World) -> None:
    head = (
        b"POST /v1/jobs HTTP/1.0\r\nhost: a\r\nconnection: keep-alive\r\n"
        + JSON
        + b"transfer-encoding: chunked\r\n\r\n"
    )
    async with serving(world) as server:
        answer = await exchange(server, head + b"15\r\n" + BODY + b"\r\n0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400")
    assert world.everything() == EMPTY


async def test_a_body_that_is_cut_off_writes_nothing(world: World) -> None:
    async with serving(world) as server:
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(POST + JSON + LENGTH + b"\r\n" + BODY[:-1])
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        # Another request on another connection: by its answer the first is over.
        await exchange(server, b"GET /livez HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
    assert world.everything() == EMPTY
