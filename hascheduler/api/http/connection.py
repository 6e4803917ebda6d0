"""One HTTP connection with limits on what uvicorn leaves open, and problem+json for broken requests.

Where TLS is spoken it begins at `hascheduler.api.http.tls_connection`.

::

    too many are open ─────► an idle one gives way (`connection_table`), or this one is told so, unread
    a head drips ──────────► closed: it has a time limit, and a least rate once it has begun
    the client won't read ─► cut off: what waits to be sent has to get less at a least rate
    length and chunks ─────► 400 and closed: another reader may see two requests in it

Owns the timers of its connection. One runs whenever no request is in progress, so neither a client that never speaks,
nor one that drips a head, nor one that goes on sending a refused body can hold a connection for long; another whenever
more waits to be sent than the buffer should hold, or the connection is to close and can't.
"""

import asyncio
import ssl
from http import HTTPStatus
from typing import Any, cast

import h11
from fastapi import Response
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
DRAIN_LOOK_EVERY_S = 10.0
DRAIN_BYTES_MIN = 32 * 1024
"""What a client has to take between two looks, where it reads too slowly for the buffer."""
_LINGER_S = 1
_LINGERING_MAX = 100
_STATE = "connection"
_RETRY_AFTER = {"Retry-After": "1"}


class ServerConnections(ConnectionTable["BoundedConnection"]):
    """Those of one server. Owner of how many that were turned away are still to read why."""

    def __init__(self, total: int, reserve: int, metrics: HttpMetrics) -> None:
        super().__init__(total, reserve)
        self.metrics = metrics
        self.lingering = 0


class BoundedConfig(Config):
    """uvicorn's, with the connections that its protocols are among; ``tls`` is made already: what is wrong with the
    files was told before."""

    def __init__(self, app: Any, connections: ServerConnections, tls: ssl.SSLContext | None, **options: Any) -> None:
        super().__init__(app, **options)
        self.connections = connections
        self.tls = tls


def connection_of(scope: Scope) -> "BoundedConnection | None":
    """The connection that a request came by; None where it came by none of these."""
    connection = scope.get("state", {}).get(_STATE)
    return connection if isinstance(connection, BoundedConnection) else None


class BoundedConnection(H11Protocol):
    is_reserved = False
    """Whether it is for privileged requests alone."""

    def __init__(
        self,
        config: BoundedConfig,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, {**app_state, _STATE: self}, _loop)
        self.conn = _Unambiguous(h11.SERVER, config.h11_max_incomplete_event_size or 0)
        self._all = config.connections
        self._has_entered = False
        self._is_lingering = False
        self._idle_until_s = 0.0
        self._head: ReceiveDeadline | None = None
        self._idle_timer: asyncio.TimerHandle | None = None
        self._drain_timer: asyncio.TimerHandle | None = None
        self._unsent = 0

    def cut(self) -> None:
        """End it at once, whatever is under way."""
        self.transport.abort()

    # What uvicorn and its loop tell

    def enter(self, transport: asyncio.Transport) -> RefusalReason | None:
        """Take a place among the others; where there is none, why."""
        self.transport = transport
        client = get_remote_addr(transport)
        entered = self._all.enter(self, address_party(client[0] if client else ""))
        if not isinstance(entered, Admitted):
            self._all.metrics.crowded_out("connections", entered.value)
            return entered
        self._has_entered = True
        self.is_reserved = entered.reserved
        if entered.gives_way is not None:
            self._all.metrics.cut(Cut.GAVE_WAY)
            entered.gives_way.cut()
        return None

    def leave(self) -> None:
        self._all.leave(self)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        refused = None if self._has_entered else self.enter(transport)
        super().connection_made(transport)
        if refused is None:
            self._expect_head_within(HEAD_PATIENCE_S)
        else:
            self._turn_away(transport, refused)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        if self._drain_timer is not None:
            self._drain_timer.cancel()
        self.leave()
        if self._is_lingering:
            self._is_lingering = False
            self._all.lingering -= 1
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._in_progress():
            self._begin()
        else:
            self._look_at_head()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            self._watch_draining()
        if self._in_progress():  # the next request was in the buffer
            self._begin()
            return
        self._all.rests(self)
        self._head = None
        self._expect_head_within(KEEP_ALIVE_S + HEAD_PATIENCE_S)
        self._look_at_head()

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

    # What it does about it

    def _turn_away(self, transport: asyncio.Transport, reason: RefusalReason) -> None:
        if reason is RefusalReason.FULL:
            answer = problem(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "too-busy",
                f"{len(self._all)} connections are open",
                headers=_RETRY_AFTER,
            )
        else:
            detail = "this address holds its whole share of the connections; end some, or come again"
            answer = problem(HTTPStatus.TOO_MANY_REQUESTS, "share-used-up", detail, headers=_RETRY_AFTER)
        self._answer(answer)
        if not transport.can_write_eof() or self._all.lingering >= _LINGERING_MAX:
            self._end()
            return
        # To close what has not been read would reset the connection, and the answer might get lost.
        self._is_lingering = True
        self._all.lingering += 1
        transport.pause_reading()
        transport.write_eof()
        self._idle_timer = self.loop.call_later(_LINGER_S, self._end)

    def _answer(self, answer: Response) -> None:
        """Without a request."""
        headers = [*answer.raw_headers, (b"connection", b"close")]
        for event in (
            h11.Response(status_code=answer.status_code, headers=headers),
            h11.Data(data=bytes(answer.body)),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")

    def _in_progress(self) -> bool:
        cycle = cast("RequestResponseCycle | None", self.cycle)  # none before the first request, whatever its type says
        return cycle is not None and not cycle.response_complete

    def _begin(self) -> None:
        self._head = None
        self._stop_timer()
        self._all.works(self)

    def _expect_head_within(self, patience_s: float) -> None:
        self._idle_until_s = self.loop.time() + patience_s
        self._end_at(self._idle_until_s)

    def _look_at_head(self) -> None:
        """Part of a head, or nothing, has come; what comes of a refused body is no head."""
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
        """Close when all is sent; not for ever: a client that reads nothing would keep it open."""
        self.transport.close()
        self._watch_draining()

    def _watch_draining(self) -> None:
        if self._drain_timer is None and (self._unsent_now() or self.transport.is_closing()):
            self._unsent = self._unsent_now()
            self._drain_timer = self.loop.call_later(DRAIN_LOOK_EVERY_S, self._look_at_draining)

    def _look_at_draining(self) -> None:
        self._drain_timer = None
        if not (self.flow.write_paused or self.transport.is_closing()):
            return
        if self._unsent_now() > self._unsent - DRAIN_BYTES_MIN:
            self._all.metrics.cut(Cut.SLOW_READER)
            self.transport.abort()
        else:
            self._watch_draining()

    def _unsent_now(self) -> int:
        return self.transport.get_write_buffer_size()


class _Unambiguous(h11.Connection):
    """Refuses a request whose end could be taken to be elsewhere: one with a length and chunks, or with chunks in a
    version of HTTP that has none."""

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
