"""HTTP for the load of the benchmarks, so that of the machine's CPU as much as can be is left to what is measured.

A request is sent as its bytes stand, on one of a few connections that are kept, and its answer is parsed in C. A client
for any purpose takes a quarter of a millisecond for one, half of what a replica needs to refuse it; three times what a
system can do, from the same two cores, would measure the client.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from types import TracebackType
from typing import Self, cast
from urllib.parse import urlsplit

import httptools

from hascheduler.errors import WorldError

Address = tuple[str, int]

_AT_ONCE = 64
_PATIENCE_S = 300
IDLE_MAX_S = 5.0
"""A connection that was not used for longer is not used again: a server ends idle ones, and what is sent in that moment
is lost."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: dict[bytes, bytes]
    body: bytes

    @property
    def retry_after_s(self) -> int | None:
        after_s = self.headers.get(b"retry-after", b"")
        return int(after_s) if after_s.isdigit() else None


def request(url: str, body: bytes, headers: tuple[tuple[str, str], ...] = ()) -> tuple[Address, bytes]:
    """A POST of JSON, and where it goes."""
    to, head = _head(url)
    named = "".join(f"{name}: {value}\r\n" for name, value in headers)
    typed = "content-type: application/json\r\n"
    return to, f"{head}{typed}{named}content-length: {len(body)}\r\n\r\n".encode() + body


@lru_cache
def _head(url: str) -> tuple[Address, str]:
    to = urlsplit(url)
    assert to.hostname is not None
    assert to.port is not None
    return (to.hostname, to.port), f"POST {to.path} HTTP/1.1\r\nhost: {to.netloc}\r\n"


class HttpClient:
    """At most ``connections`` exchange at a time. Raises `OSError` where a server can't be reached or ends the
    connection, `TimeoutError` after ``timeout_s``, in which the wait for a connection is included."""

    def __init__(self, connections: int, timeout_s: float) -> None:
        self._room = asyncio.Semaphore(connections)
        self._timeout_s = timeout_s
        self._idle: dict[Address, list[_Connection]] = defaultdict(list)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for idle in self._idle.values():
            for connection in idle:
                connection.close()

    async def send(self, to: Address, request: bytes) -> Answer:
        async with asyncio.timeout(self._timeout_s), self._room, self._connected(to) as connection:
            return await connection.exchange(request)

    @asynccontextmanager
    async def _connected(self, to: Address) -> AsyncIterator["_Connection"]:
        loop, idle = asyncio.get_running_loop(), self._idle[to]
        # The last one was used last.
        connection = idle.pop() if idle else None
        if connection is not None and loop.time() - connection.idle_since_s > IDLE_MAX_S:
            for each in (connection, *idle):
                each.close()
            idle.clear()
        if connection is None or not connection.is_open:
            _, connection = await loop.create_connection(_Connection, *to)
        try:
            yield connection
        except BaseException:
            connection.close()  # the answer may still come
            raise
        connection.idle_since_s = loop.time()
        idle.append(connection)


async def post_all(posts: Iterable[tuple[str, bytes]]) -> None:
    """Send each body to its URL, as fast as they are taken: one that is refused is repeated after its Retry-After.

    Raises `WorldError` for any other answer that is no success, `OSError` where a server can't be reached.
    """
    waiting = iter(posts)

    async def send_some(http: HttpClient) -> None:
        for url, body in waiting:
            await _until_accepted(http, url, body)

    async with HttpClient(_AT_ONCE, _PATIENCE_S) as http:
        try:
            async with asyncio.TaskGroup() as sending:
                for _ in range(_AT_ONCE):
                    sending.create_task(send_some(http))
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from failed


async def _until_accepted(http: HttpClient, url: str, body: bytes) -> None:
    to, posted = request(url, body)
    while True:
        answer = await http.send(to, posted)
        if answer.status < HTTPStatus.BAD_REQUEST:
            return
        if answer.retry_after_s is None:
            raise WorldError(f"{url} answered {answer.status}: {answer.body.decode(errors='replace')}")
        await asyncio.sleep(answer.retry_after_s)


class _Connection(asyncio.Protocol):
    """One exchange at a time."""

    def __init__(self) -> None:
        self.is_open = False
        self.idle_since_s = 0.0
        self._transport: asyncio.Transport
        self._parser = httptools.HttpResponseParser(self)
        self._headers: dict[bytes, bytes] = {}
        self._body = b""
        self._answer: asyncio.Future[Answer] | None = None

    async def exchange(self, request: bytes) -> Answer:
        self._headers, self._body = {}, b""
        self._answer = asyncio.get_running_loop().create_future()
        if not self.is_open:
            raise ConnectionResetError("the server has ended the connection")
        self._transport.write(request)
        return await self._answer

    def close(self) -> None:
        self.is_open = False
        self._transport.abort()

    # Callbacks of the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport, self.is_open = cast("asyncio.Transport", transport), True

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(exc or ConnectionResetError("the server has ended the connection"))

    # Callbacks of the parser

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.lower()] = value

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        if not self._parser.should_keep_alive():
            self.close()
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(Answer(self._parser.get_status_code(), self._headers, self._body))
