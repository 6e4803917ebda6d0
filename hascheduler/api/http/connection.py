"""One HTTP connection, with the limits that uvicorn lacks, and problem+json for malformed requests.

A TLS connection begins in `hascheduler.api.http.tls_connection`.

::

    too many connections ──► an idle one is evicted (`connection_table`), or this one gets 429 or 503, unread
    slow request head ─────► closed: a head has a time limit, and a minimum rate once it has begun
    client does not read ──► aborted: the unsent bytes must shrink at a minimum rate
    length and chunks ─────► 400 and closed: another parser may see two requests in it (request smuggling)

Owner of the connection's timers. One runs whenever no request is in progress, so a client that never sends, sends its
head slowly or goes on sending a refused body can't hold a connection for long; the other runs while more bytes wait to
be sent than the buffer should hold, or while the connection is to close but still has bytes to send.
"""

import asyncio
import ssl
from http import HTTPStatus
from typing import Any, cast

import h11
from starlette.responses import Response
from starlette.types import Scope
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.protocols.utils import get_remote_addr
from uvicorn.server import ServerState

from hascheduler.api.http.connection_table import Admitted, ConnectionTable
from hascheduler.api.http.problems import problem
from hascheduler.api.http.receive_rate import ReceiveDeadline
from hascheduler.api.http.shares import RefusalReason, address_party
from hascheduler.telemetry.metrics_http import Cut, HttpMetrics

HEAD_PATIENCE_S = 10
KEEP_ALIVE_S = 15
DRAIN_CHECK_EVERY_S = 10.0
DRAIN_BYTES_MIN = 32 * 1024
"""The minimum that a client must read between two checks while the send buffer is too full."""
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


class BoundedConnection(H11Protocol):
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
        self.conn = _Unambiguous(h11.SERVER, config.h11_max_incomplete_event_size or 0)
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
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
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
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE) and not self._in_progress():
            self._answer(
                problem(HTTPStatus.BAD_REQUEST, "malformed-http", "not an HTTP request, or its head is too large")
            )
        self._end()

    # Reactions

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
        for event in (
            h11.Response(status_code=answer.status_code, headers=headers),
            h11.Data(data=bytes(answer.body)),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")

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
        part = len(self.conn.trailing_data[0]) if self.conn.their_state is h11.IDLE else 0
        if not part:
            return
        if self._head is None:
            self._head = ReceiveDeadline(self.loop.time(), self._idle_until_s)
        self._end_at(self._head.due_s(part))

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


class _Unambiguous(h11.Connection):
    """Refuses a request whose end is ambiguous: one with both a length and chunks, or with chunks in a version of HTTP
    that has none."""

    _is_ambiguous = False

    def next_event(self) -> Any:
        event = None if self._is_ambiguous else super().next_event()
        if isinstance(event, h11.Request):
            names = {name for name, _ in event.headers}
            chunked = b"transfer-encoding" in names
            self._is_ambiguous = chunked and (b"content-length" in names or event.http_version < b"1.1")
        if self._is_ambiguous:
            raise h11.RemoteProtocolError("where the request ends is ambiguous")
        return event
