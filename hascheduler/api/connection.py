"""One HTTP connection with a time limit on every head, which uvicorn leaves open, and problem+json for broken ones.

One more than there may be is told so and closed before it is read: a flood of connections fills no buffers.

Owns the timer of its connection: it runs whenever no request is in progress, so neither a client that never speaks,
nor one that drips a head, nor one that goes on sending a refused body can hold a connection for long.
"""

import asyncio
from http import HTTPStatus
from typing import cast

import h11
from fastapi import Response
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from hascheduler.api.problems import problem

HEAD_PATIENCE_S = 10
KEEP_ALIVE_S = 15
_LINGER_S = 1


class BoundedConnection(H11Protocol):
    _idle_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        if self.limit_concurrency is not None and len(self.connections) > self.limit_concurrency:
            self._turn_away(transport)
        else:
            self._expect_head_within(HEAD_PATIENCE_S)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._in_progress():
            self._stop_timer()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self._in_progress():  # the next request may have been in the buffer
            self._expect_head_within(KEEP_ALIVE_S + HEAD_PATIENCE_S)

    def send_400_response(self, msg: str) -> None:
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE) and not self._in_progress():
            self._answer(
                problem(HTTPStatus.BAD_REQUEST, "malformed-http", "not an HTTP request, or its head is too large")
            )
        self.transport.close()

    def _turn_away(self, transport: asyncio.Transport) -> None:
        detail = f"{self.limit_concurrency} connections are open already"
        headers = {"Retry-After": "1"}
        self._answer(problem(HTTPStatus.SERVICE_UNAVAILABLE, "too-busy", detail, headers=headers))
        if not transport.can_write_eof():
            transport.close()
            return
        # To close what has not been read would reset the connection, and the answer might get lost.
        transport.pause_reading()
        transport.write_eof()
        self._idle_timer = self.loop.call_later(_LINGER_S, transport.close)

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

    def _expect_head_within(self, patience_s: float) -> None:
        self._stop_timer()
        self._idle_timer = self.loop.call_later(patience_s, self.transport.close)

    def _stop_timer(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
