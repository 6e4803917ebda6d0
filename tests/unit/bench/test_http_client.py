"""The client of the benchmarks: it keeps connections, and tells what became of each request."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from hascheduler.errors import WorldError
from tests.bench.http_client import HttpClient, post_all, request

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class Server:
    """Answers each request with the next of its ``answers``; without one it says nothing."""

    def __init__(self, *answers: bytes) -> None:
        self.answers = list(answers)
        self.writers: list[asyncio.StreamWriter] = []
        self.asked: list[bytes] = []
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                self.asked.append(head + await reader.readexactly(int(head.rpartition(b": ")[2])))
                if not self.answers:
                    continue
                answer = self.answers.pop(0)
                writer.write(answer)
                if b"close" in answer or not answer:
                    break
        writer.close()


@contextlib.asynccontextmanager
async def serving(*answers: bytes) -> AsyncIterator[Server]:
    server = Server(*answers)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1/jobs"
    try:
        yield server
    finally:
        listening.close()
        for writer in server.writers:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


async def test_requests_in_turn_share_a_connection() -> None:
    async with serving(OK, OK) as server, HttpClient(4, 10) as http:
        for _ in range(2):
            answer = await http.send(*request(server.url, b"{}", (("idempotency-key", "a"),)))
            assert (answer.status, answer.body) == (200, b"ok")
    assert len(server.writers) == 1
    assert server.asked[0].startswith(b"POST /v1/jobs HTTP/1.1\r\nhost: 127.0.0.1:")
    assert b"\r\nidempotency-key: a\r\n" in server.asked[0]
    assert server.asked[0].endswith(b"\r\n\r\n{}")


async def test_a_request_without_an_answer_fails_and_the_next_is_sent() -> None:
    async with serving(b"", OK) as server, HttpClient(1, 10) as http:
        with pytest.raises(OSError, match="ended"):
            await http.send(*request(server.url, b"{}"))
        assert (await http.send(*request(server.url, b"{}"))).status == 200


async def test_all_are_posted_and_what_is_refused_again_after_its_time() -> None:
    refusal = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 0\r\ncontent-length: 0\r\n\r\n"
    async with serving(OK, refusal, OK, OK) as server:
        await post_all([(server.url, body) for body in (b"1", b"2", b"3")])
    bodies = [asked[-1:] for asked in server.asked]
    assert len(bodies) == 4
    assert set(bodies) == {b"1", b"2", b"3"}


async def test_another_answer_ends_the_posts_with_what_was_said() -> None:
    invalid = b"HTTP/1.1 422 Unprocessable Content\r\ncontent-length: 5\r\n\r\nwrong"
    async with serving(invalid, *[OK] * 8) as server:
        with pytest.raises(WorldError, match="422: wrong"):
            await post_all([(server.url, b"{}")] * 4)
