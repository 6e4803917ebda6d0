"""One HTTP connection: uvicorn's, with the limits that it lacks, and problem+json for malformed requests.

::

    no room, or the address has its share ─► 429 or 503, unread; over TLS it is cut
    only the reserve has room ─────────────► the connection that has been idle for longest is closed
    slow handshake, slow head, idle ───────► closed
    client does not read ──────────────────► aborted: the unsent bytes must decrease
    two meanings ──────────────────────────► 400 and closed: another parser may see two requests in it (smuggling)
    large head, or many requests at once ──► 400 and closed: the parser, llhttp in C, does not limit what it keeps
    offers another protocol ───────────────► read as if it had made no offer

The server calls `BoundedConnection.check` of each once a second.
"""

import asyncio
import ssl
import sys
from asyncio.sslproto import SSLProtocol
from http import HTTPStatus
from typing import Any, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from starlette.types import Message, Scope
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.utils import get_remote_addr

from hascheduler.api.http.limits import Limit, NoRoom, Slot, address_party
from hascheduler.api.http.problems import ProblemError
from hascheduler.telemetry.metrics_http import HttpMetrics

HEAD_BYTES_MAX = 16 * 1024
HANDSHAKE_PATIENCE_S = 5.0
HEAD_PATIENCE_S = 10
KEEP_ALIVE_S = 15
READ_PATIENCE_S = 10.0
READ_BYTES_MIN = 32 * 1024
"""The minimum that a client must read within the patience while more is unsent than the send buffer should hold."""
_PIPELINED_MAX = 8
_LINGER_S = 1
_LINGERING_MAX = 100
_STATE = "connection"
_MALFORMED = ProblemError(HTTPStatus.BAD_REQUEST, "malformed-http", "not an HTTP request, or its head is too large")


def connection_of(scope: Scope) -> "BoundedConnection | None":
    """Return the connection of a request; None if this server does not hold it, as in tests."""
    connection = scope.get("state", {}).get(_STATE)
    return connection if isinstance(connection, BoundedConnection) else None


class BoundedConnection(HttpToolsProtocol):
    """A connection, owner of its slot among the connections of the server."""

    is_reserved = False
    """True if only the reserve had room. That is for privileged requests, and the caller is not known yet."""

    def __init__(self, limit: Limit, metrics: HttpMetrics, **of_uvicorn: Any) -> None:
        super().__init__(**of_uvicorn)
        self.app_state = {**self.app_state, _STATE: self}
        self.parser = HttpRequestParser(self)  # uvicorn's parser is lenient
        self._limit = limit
        self._metrics = metrics
        self._slot: Slot | None = None
        self._in_head = False
        self._unparsed_bytes = 0
        """Bytes since the parser last handed on a whole head or a part of a body."""
        self._is_over = False
        """True if whatever arrives from now on is ignored."""
        self._running: RequestResponseCycle | None = None
        self._head_due_s = 0.0
        self._idle_since_s = 0.0
        self._unsent, self._read_s = 0, 0.0

    def cut(self) -> None:
        """Abort the connection, whatever is in progress."""
        self.transport.abort()

    def check(self, now_s: float) -> None:
        """Close or cut the connection of a client that is too slow to send a head or to read its response."""
        if not self._in_progress() and now_s >= self._head_due_s:
            self._end()
        try:
            unsent = self.transport.get_write_buffer_size()
        except AttributeError:  # asyncio's TLS transport forgets its protocol if closed twice
            return
        waits = self.flow.write_paused or self.transport.is_closing()
        if not waits or unsent <= self._unsent - READ_BYTES_MIN:
            self._unsent, self._read_s = unsent, now_s
        elif now_s - self._read_s >= READ_PATIENCE_S:
            self._metrics.cut("slow_reader")
            self.cut()

    # Callbacks of uvicorn and its loop

    def enter(self, transport: asyncio.Transport) -> None:
        """Take a slot, or raise `NoRoom` if there is none."""
        client = get_remote_addr(transport)
        if not self._limit.free():
            self._make_room()
        self.is_reserved = not self._limit.free()
        party = address_party(client[0] if client else "")
        try:
            self._slot = self._limit.take((party,), privileged=self.is_reserved)
        except NoRoom as refused:
            self._metrics.crowded_out("connections", refused.reason)
            raise

    def _make_room(self) -> None:
        """Cut the connection that has been idle for longest: otherwise many addresses together could hold them all."""
        others = [one for one in self.connections if isinstance(one, BoundedConnection) and one._slot is not None]
        idle = [one for one in others if not one._in_progress()]
        if idle:
            oldest = min(idle, key=lambda one: one._idle_since_s)
            oldest.leave()
            oldest.cut()
            self._metrics.cut("idle")

    def leave(self) -> None:
        slot, self._slot = self._slot, None
        if slot is not None:
            slot.release()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._idle_since_s = self.loop.time()
        self._head_due_s = self._idle_since_s + HEAD_PATIENCE_S
        if self._slot is None:
            try:
                self.enter(transport)
            except NoRoom as refused:
                self._refuse(refused)

    def connection_lost(self, exc: Exception | None) -> None:
        self.leave()
        # uvicorn notifies only the last of several requests, and those that wait will not begin.
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True
            self._running.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        # Nothing is read after the last response (RFC 9112, 9.6), nor after malformed bytes.
        if self._is_over or self.transport.is_closing():
            return
        self._unset_keepalive_if_required()
        self._unparsed_bytes += len(data)
        try:
            self._parse(data)
            is_malformed = self._unparsed_bytes > HEAD_BYTES_MAX  # of a head, of trailers, or between chunks
        except HttpParserError:
            is_malformed = True
        if is_malformed:
            self.send_400_response("")

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._idle_since_s = self.loop.time()
        self._head_due_s = self._idle_since_s + KEEP_ALIVE_S + HEAD_PATIENCE_S
        if self._is_over and not self._in_progress():
            self.send_400_response("")

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unsent = sys.maxsize  # the client's time to read begins with the next check

    def send_400_response(self, msg: str) -> None:
        """Answer 400 after the complete requests before it, but do not wait for too many of those."""
        self._is_over = True
        if self._in_progress() and not self.cycle.more_body and len(self.pipeline) < _PIPELINED_MAX:
            return
        if self._in_progress() and self.cycle is self._running and not self.cycle.response_started:
            # The rest of its body is malformed: tell the application that it will not come.
            self.cycle.disconnected = self.cycle.response_complete = True
            self.cycle.message_event.set()
        if not self._in_progress() and not self.transport.is_closing():
            self._answer(_MALFORMED)
        self._end()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    # Callbacks of the parser; what they raise is answered with 400

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= _PIPELINED_MAX:
            raise ValueError("too many pipelined requests wait for earlier responses")
        self._in_head = True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # a trailer taken for a header is one that no proxy has seen
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head, self._unparsed_bytes = False, 0
        if len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers) > HEAD_BYTES_MAX:
            raise ValueError("the head is too large")
        if self.parser.get_method() == b"CONNECT":
            raise ValueError("upgrades to other protocols are not supported")
        if self.parser.should_upgrade():
            return  # `_parse` feeds it to the parser again
        version = self.parser.get_http_version()
        _require_one_meaning(version, self.headers)
        is_old = version == "1.0"
        if is_old:
            self.expect_100_continue = False  # HTTP/1.0 has no such response (RFC 9110, 10.1.1)
        super().on_headers_complete()
        if is_old or self.expect_100_continue:
            _end_with_answer(self.cycle, is_old=is_old)

    def on_body(self, body: bytes) -> None:
        self._unparsed_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unparsed_bytes = 0
        if not self.parser.should_upgrade():
            super().on_message_complete()

    # Reactions

    def _parse(self, data: bytes) -> None:
        """Ignore each offer of another protocol, as a server may (RFC 9110, 7.8).

        The parser takes an offer for the end of the request, whatever its length, so a new parser is fed the head
        without the offer, and then the body.
        """
        while True:
            try:
                self.parser.feed_data(data)
                return
            except HttpParserUpgrade as offer:
                fields = b"".join(b"%b: %b\r\n" % field for field in self.headers if field[0] != b"upgrade")
                version = self.parser.get_http_version().encode()
                line = b"%b %b HTTP/%b\r\n" % (self.parser.get_method(), self.url, version)
                self.parser = HttpRequestParser(self)
                data = line + fields + b"\r\n" + data[offer.args[0] :]

    def _refuse(self, refused: NoRoom) -> None:
        self._is_over = True
        self._answer(refused)
        if self.transport.can_write_eof() and len(self.connections) <= self._limit.total + _LINGERING_MAX:
            # Closing with unread bytes would reset the connection, and the client might lose the response.
            self.transport.pause_reading()
            self.transport.write_eof()
            self._head_due_s = self.loop.time() + _LINGER_S
        else:
            self._end()

    def _answer(self, error: ProblemError) -> None:
        """Send a response outside of any request."""
        answer = error.response(Connection="close")
        head = b"".join(b"%b: %b\r\n" % header for header in answer.raw_headers)
        self.transport.write(STATUS_LINE[answer.status_code] + head + b"\r\n" + bytes(answer.body))

    def _in_progress(self) -> bool:
        cycle = cast("RequestResponseCycle | None", self.cycle)  # None before the first request, whatever its type says
        return cycle is not None and not cycle.response_complete

    def _end(self) -> None:
        """Close once everything is sent."""
        if not self.transport.is_closing():
            self.transport.close()


class TlsConnection(SSLProtocol):
    """The TLS of a `BoundedConnection`, which counts from its first moment and has little time for the handshake.

    A server with a TLS context reports a connection only after its handshake, for which it waits up to a minute; and
    with `loop.start_tls` uvloop would lose the first bytes. So the loop is given the standard library's own protocol.
    """

    def __init__(self, tls: ssl.SSLContext, limit: Limit, metrics: HttpMetrics, **of_uvicorn: Any) -> None:
        self._connection = BoundedConnection(limit, metrics, **of_uvicorn)
        super().__init__(
            asyncio.get_running_loop(),
            self._connection,
            tls,
            None,  # type: ignore[arg-type]  # nothing waits for the end of the handshake
            server_side=True,
            ssl_handshake_timeout=HANDSHAKE_PATIENCE_S,  # type: ignore[arg-type]  # accepts fractions of a second too
        )

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Abort the connection if it is refused: the client could not read an unencrypted reason."""
        try:
            self._connection.enter(transport)
        except NoRoom:
            transport.abort()
        else:
            super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._connection.leave()  # it is not notified of a failed handshake
        super().connection_lost(exc)


def _require_one_meaning(version: str, headers: list[tuple[bytes, bytes]]) -> None:
    """Raise `ValueError` if another parser may see another host in the head, or another end of the request.

    RFC 9112 requires one Host (3.2), and no length together with chunks, nor chunks before HTTP/1.1 (6.1).
    """
    names = [name for name, _ in headers]
    if version not in {"1.0", "1.1"}:
        raise ValueError("unsupported HTTP version")
    hosts = names.count(b"host")
    if hosts > 1 or (not hosts and version == "1.1"):
        raise ValueError("not exactly one Host header")
    if b"transfer-encoding" in names:
        encodings = [value.lower() for name, value in headers if name == b"transfer-encoding"]
        if encodings != [b"chunked"] or b"content-length" in names or version == "1.0":
            raise ValueError("the end of the request is ambiguous")


def _end_with_answer(cycle: RequestResponseCycle, *, is_old: bool) -> None:
    """Close the connection after the response, if the client's next bytes could be misread.

    HTTP/1.0 has no chunks, which uvicorn would send. And if a client is answered before it was asked for its body,
    whatever follows would be read as that body.
    """
    send = cycle.send
    if is_old:
        cycle.chunked_encoding = False

    async def ending(message: Message) -> None:
        if cycle.waiting_for_100_continue:
            cycle.keep_alive = False
        if is_old and message["type"] == "http.response.body":
            cycle.expected_content_length = len(message.get("body", b""))
        await send(message)  # type: ignore[arg-type]  # uvicorn's own types of the same messages

    cycle.send = ending  # type: ignore[method-assign, assignment]
