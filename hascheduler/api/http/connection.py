"""One HTTP connection, with the limits that uvicorn lacks, and problem+json for malformed requests.

A TLS connection begins in `hascheduler.api.http.tls_connection`.

::

    too many connections ──► an idle one is evicted (`connection_table`), or this one gets 429 or 503, unread
    slow request head ─────► closed: a head has a time limit, and a minimum rate once it has begun
    client does not read ──► aborted: the unsent bytes must shrink at a minimum rate
    two meanings ──────────► 400 and closed: another parser may see two requests in it (request smuggling)
    offers a protocol ─────► passed over: the request is read as if it had made no offer
    many requests at once ─► 400 and closed: each that waits for the answers before its own takes memory

The parser is llhttp, in C. It has no limits on what it keeps: the bytes of a head, of trailers and between chunks are
counted here.

Owner of the connection's timers. One runs whenever no request is in progress, so a client that never sends, sends its
head slowly or goes on sending a refused body can't hold a connection for long; the other runs while more bytes wait to
be sent than the buffer should hold, or while the connection is to close but still has bytes to send.
"""

import asyncio
import ssl
from http import HTTPStatus
from typing import Any, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from starlette.responses import Response
from starlette.types import Message, Scope
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.utils import get_remote_addr
from uvicorn.server import ServerState

from hascheduler.api.http.connection_table import Admitted, ConnectionTable
from hascheduler.api.http.problems import problem
from hascheduler.api.http.receive_rate import ReceiveDeadline
from hascheduler.api.http.shares import RefusalReason, address_party
from hascheduler.telemetry.metrics_http import Cut, HttpMetrics

HEAD_BYTES_MAX = 16 * 1024
HEAD_PATIENCE_S = 10
KEEP_ALIVE_S = 15
DRAIN_CHECK_EVERY_S = 10.0
DRAIN_BYTES_MIN = 32 * 1024
"""The minimum that a client must read between two checks while the send buffer is too full."""
_PIPELINED_MAX = 8
_LINGER_S = 1
_LINGERING_MAX = 100
_STATE = "connection"
_RETRY_AFTER = {"Retry-After": "1"}


class ServerConnections(ConnectionTable["BoundedConnection"]):
    """The connections of one server. Owner of the number of refused connections that may still read the reason."""

    def __init__(self, total: int, reserve: int, metrics: HttpMetrics) -> None:
        super().__init__(total, reserve)
        self.metrics = metrics
        self.lingering = 0


class BoundedConfig(Config):
    """uvicorn's configuration, with the server's connections and a ready TLS context: mistakes in its files have been
    reported earlier."""

    def __init__(self, app: Any, connections: ServerConnections, tls: ssl.SSLContext | None, **options: Any) -> None:
        super().__init__(app, **options)
        self.connections = connections
        self.tls = tls


def connection_of(scope: Scope) -> "BoundedConnection | None":
    """The connection of a request; None where this server does not hold it, as in tests."""
    connection = scope.get("state", {}).get(_STATE)
    return connection if isinstance(connection, BoundedConnection) else None


class BoundedConnection(HttpToolsProtocol):
    is_reserved = False
    """Whether it is in the reserve, which is for privileged requests alone."""

    def __init__(
        self,
        config: BoundedConfig,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, {**app_state, _STATE: self}, _loop)
        self.parser = HttpRequestParser(self)  # uvicorn's has leniencies
        self._in_head = False
        self._head_bytes = 0
        self._unparsed_bytes = 0
        """Since the parser last handed on a whole head or a part of a body."""
        self._is_malformed = False
        """Whether the parser has given up: nothing that comes is read any more."""
        self._running: RequestResponseCycle | None = None
        self._table = config.connections
        self._has_entered = False
        self._is_lingering = False
        self._idle_until_s = 0.0
        self._head: ReceiveDeadline | None = None
        self._idle_timer: asyncio.TimerHandle | None = None
        self._drain_timer: asyncio.TimerHandle | None = None
        self._unsent = 0

    def cut(self) -> None:
        """Abort the connection, whatever is in progress."""
        self.transport.abort()

    # Callbacks of uvicorn and its loop

    def enter(self, transport: asyncio.Transport) -> RefusalReason | None:
        """Enter the table of connections; where there is no room, the reason."""
        self.transport = transport
        client = get_remote_addr(transport)
        outcome = self._table.enter(self, address_party(client[0] if client else ""))
        if not isinstance(outcome, Admitted):
            self._table.metrics.crowded_out("connections", outcome.value)
            return outcome
        self._has_entered = True
        self.is_reserved = outcome.reserved
        if outcome.evicts is not None:
            self._table.metrics.cut(Cut.GAVE_WAY)
            outcome.evicts.cut()
        return None

    def leave(self) -> None:
        self._table.leave(self)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        refused = None if self._has_entered else self.enter(transport)
        super().connection_made(transport)
        if refused is None:
            self._expect_head_within(HEAD_PATIENCE_S)
        else:
            self._refuse(transport, refused)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        if self._drain_timer is not None:
            self._drain_timer.cancel()
        self.leave()
        if self._is_lingering:
            self._is_lingering = False
            self._table.lingering -= 1
        # uvicorn tells only the last of several requests, and those that wait will not begin.
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True
            self._running.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        # Nothing is read after the last answer (RFC 9112, 9.6), nor after what was not understood.
        if self._is_malformed or self.transport.is_closing():
            return
        self._unset_keepalive_if_required()
        self._unparsed_bytes += len(data)
        try:
            self._parse(data)
        except HttpParserError:
            self.send_400_response("")
        else:
            if self._unparsed_bytes > HEAD_BYTES_MAX and self._in_progress() and self.cycle.more_body:
                self._end()  # endless bytes between chunks
            elif self._unparsed_bytes > HEAD_BYTES_MAX:
                self.send_400_response("")
        if self._in_progress():
            self._begin()
        else:
            self._check_head()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            self._watch_draining()
        if self._in_progress():  # the next request was in the buffer
            self._begin()
            return
        if self._is_malformed:
            self.send_400_response("")
            return
        self._table.set_idle(self)
        self._head = None
        self._expect_head_within(KEEP_ALIVE_S + HEAD_PATIENCE_S)
        self._check_head()

    def timeout_keep_alive_handler(self) -> None:
        self._end()

    def shutdown(self) -> None:
        if self._in_progress():
            self.cycle.keep_alive = False
        else:
            self._end()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_draining()

    def send_400_response(self, msg: str) -> None:
        """Answer the requests before it first, which are whole; too many of them are not waited for."""
        self._is_malformed = True
        if self._in_progress() and not self.cycle.more_body and len(self.pipeline) < _PIPELINED_MAX:
            return
        if self._in_progress() and self.cycle is self._running and not self.cycle.response_started:
            # Its own body: the application learns that it will not come.
            self.cycle.disconnected = self.cycle.response_complete = True
            self.cycle.message_event.set()
        if not self._in_progress() and not self.transport.is_closing():
            self._answer(
                problem(HTTPStatus.BAD_REQUEST, "malformed-http", "not an HTTP request, or its head is too large")
            )
        self._end()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    # Callbacks of the parser; what they raise is answered with 400

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= _PIPELINED_MAX:
            raise ValueError("too many requests wait for the answers before theirs")
        self._in_head, self._head_bytes = True, 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_head:
            return  # a trailer: taken for a header, it would be one that nothing before this server has seen
        self._count(len(name) + len(value) + len(b": \r\n"))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head, self._unparsed_bytes = False, 0
        version = self.parser.get_http_version()
        if self.parser.get_method() == b"CONNECT":
            raise ValueError("what follows would be no HTTP")
        if self.parser.should_upgrade():
            return  # `_parse` gives it to the parser again
        _require_one_meaning(version, self.headers)
        if version == "1.0":
            self.expect_100_continue = False  # it knows no such answer (RFC 9110, 10.1.1)
        super().on_headers_complete()
        if version == "1.0":
            _send_until_closed(self.cycle)
        if self.expect_100_continue:
            _close_unless_continued(self.cycle)

    def on_body(self, body: bytes) -> None:
        self._unparsed_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unparsed_bytes = 0
        if not self.parser.should_upgrade():
            super().on_message_complete()

    def _count(self, head_bytes: int) -> None:
        self._head_bytes += head_bytes
        if self._head_bytes > HEAD_BYTES_MAX:
            raise ValueError("the head is too large")

    # Reactions

    def _parse(self, data: bytes) -> None:
        """Pass over each offer of another protocol, as a server may (RFC 9110, 7.8).

        The parser takes an offer for the end of the request, whatever its length: another one is given the head without
        the offer, and then the body.
        """
        while True:
            try:
                self.parser.feed_data(data)
                return
            except HttpParserUpgrade as offer:
                fields = [b"%b: %b\r\n" % field for field in self.headers if field[0] != b"upgrade"]
                line = b"%b %b HTTP/%b\r\n" % (
                    self.parser.get_method(),
                    self.url,
                    self.parser.get_http_version().encode(),
                )
                self.parser = HttpRequestParser(self)
                data = line + b"".join(fields) + b"\r\n" + data[offer.args[0] :]

    def _refuse(self, transport: asyncio.Transport, reason: RefusalReason) -> None:
        if reason is RefusalReason.FULL:
            answer = problem(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "too-busy",
                f"{len(self._table)} connections are open",
                headers=_RETRY_AFTER,
            )
        else:
            detail = "this address holds its whole share of the connections; end some, or come again"
            answer = problem(HTTPStatus.TOO_MANY_REQUESTS, "share-used-up", detail, headers=_RETRY_AFTER)
        self._answer(answer)
        if not transport.can_write_eof() or self._table.lingering >= _LINGERING_MAX:
            self._end()
            return
        # Closing with unread bytes would reset the connection, and the client might lose the answer.
        self._is_lingering = True
        self._table.lingering += 1
        transport.pause_reading()
        transport.write_eof()
        self._idle_timer = self.loop.call_later(_LINGER_S, self._end)

    def _answer(self, answer: Response) -> None:
        """Send ``answer`` without a request."""
        headers = [*answer.raw_headers, (b"connection", b"close")]
        head = b"".join(b"%b: %b\r\n" % header for header in headers)
        self.transport.write(STATUS_LINE[answer.status_code] + head + b"\r\n" + bytes(answer.body))

    def _in_progress(self) -> bool:
        cycle = cast("RequestResponseCycle | None", self.cycle)  # None before the first request, whatever its type says
        return cycle is not None and not cycle.response_complete

    def _begin(self) -> None:
        self._head = None
        self._stop_timer()
        self._table.set_busy(self)

    def _expect_head_within(self, patience_s: float) -> None:
        self._idle_until_s = self.loop.time() + patience_s
        self._end_at(self._idle_until_s)

    def _check_head(self) -> None:
        """Part of a head has arrived, or nothing; bytes of a refused body are no head."""
        if not self._in_head:
            return
        if self._head is None:
            self._head = ReceiveDeadline(self.loop.time(), self._idle_until_s)
        self._end_at(self._head.due_s(self._unparsed_bytes))

    def _end_at(self, at_s: float) -> None:
        self._stop_timer()
        if not self.transport.is_closing():
            self._idle_timer = self.loop.call_at(at_s, self._end)

    def _stop_timer(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None

    def _end(self) -> None:
        """Close once everything is sent, but abort a client that reads nothing: it would keep the connection open."""
        self.transport.close()
        self._watch_draining()

    def _watch_draining(self) -> None:
        if self._drain_timer is None and (self._unsent_now() or self.transport.is_closing()):
            self._unsent = self._unsent_now()
            self._drain_timer = self.loop.call_later(DRAIN_CHECK_EVERY_S, self._check_draining)

    def _check_draining(self) -> None:
        self._drain_timer = None
        if not (self.flow.write_paused or self.transport.is_closing()):
            return
        if self._unsent_now() > self._unsent - DRAIN_BYTES_MIN:
            self._table.metrics.cut(Cut.SLOW_READER)
            self.transport.abort()
        else:
            self._watch_draining()

    def _unsent_now(self) -> int:
        try:
            return self.transport.get_write_buffer_size()
        except AttributeError:  # asyncio's TLS transport that is closed a second time knows its protocol no more
            return 0


def _require_one_meaning(version: str, headers: list[tuple[bytes, bytes]]) -> None:
    """`ValueError` for a head in which another parser may see another host, or another end of the request.

    As RFC 9112 has it: one Host (3.2), and no length beside chunks, nor chunks before HTTP/1.1 (6.1).
    """
    names = [name for name, _ in headers]
    if version not in {"1.0", "1.1"}:
        raise ValueError("another version of HTTP")
    hosts = names.count(b"host")
    if hosts > 1 or (not hosts and version == "1.1"):
        raise ValueError("not one Host")
    if b"transfer-encoding" in names:
        encodings = [value.lower() for name, value in headers if name == b"transfer-encoding"]
        if encodings != [b"chunked"] or b"content-length" in names or version == "1.0":
            raise ValueError("where the request ends is ambiguous")


def _send_until_closed(cycle: RequestResponseCycle) -> None:
    """An answer of unknown length ends with its connection: HTTP/1.0 has no chunks, and uvicorn would send some."""
    send = cycle.send
    cycle.chunked_encoding = False

    async def without_chunks(message: Message) -> None:
        if message["type"] == "http.response.body":
            cycle.expected_content_length = len(message.get("body", b""))
        await send(message)  # type: ignore[arg-type]  # uvicorn's own types of the same messages

    cycle.send = without_chunks  # type: ignore[method-assign, assignment]


def _close_unless_continued(cycle: RequestResponseCycle) -> None:
    """A client that is answered before it was asked to go on may never send its body, and what it sends next would be
    read as that (RFC 9110, 10.1.1)."""
    send = cycle.send

    async def closing(message: Message) -> None:
        if cycle.waiting_for_100_continue:
            cycle.keep_alive = False
        await send(message)  # type: ignore[arg-type]  # uvicorn's own types of the same messages

    cycle.send = closing  # type: ignore[method-assign, assignment]
