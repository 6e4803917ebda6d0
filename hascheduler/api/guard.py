"""The layer around all others: how many requests at once, how long each may take, and nothing unexpected gets out.

Owns the number of requests in flight. Health checks and scrapes are not counted, so that a busy replica does not look
dead, and can tell how busy it is; requests that are held open (`long_requests`) are counted apart.
"""

import asyncio
from http import HTTPStatus

import structlog
from fastapi import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hascheduler.api import long_requests
from hascheduler.api.problems import problem

log = structlog.get_logger(__name__)

IN_FLIGHT_MAX = 256
_PATIENCE_S = 30
_UNCOUNTED = frozenset({"/livez", "/readyz", "/leaderz", "/metrics"})


class Guard:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._in_flight = 0
        self._held = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in _UNCOUNTED:
            await self._app(scope, receive, send)
            return
        patience_s = long_requests.patience_s(scope)
        if patience_s is not None:
            if self._held >= long_requests.HELD_MAX:
                await _busy(f"{long_requests.HELD_MAX} requests are held open already")(scope, receive, send)
                return
            self._held += 1
            try:
                await self._within_limits(scope, receive, send, patience_s)
            finally:
                self._held -= 1
            return
        if self._in_flight >= IN_FLIGHT_MAX:
            await _busy(f"{IN_FLIGHT_MAX} requests are in flight already")(scope, receive, send)
            return
        self._in_flight += 1
        try:
            await self._within_limits(scope, receive, send, _PATIENCE_S)
        finally:
            self._in_flight -= 1

    async def _within_limits(self, scope: Scope, receive: Receive, send: Send, patience_s: int) -> None:
        started = False

        async def watched_send(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            async with asyncio.timeout(patience_s):
                await self._app(scope, receive, watched_send)
        except TimeoutError:
            log.warning("request_took_too_long", method=scope["method"], path=scope["path"])
            answer = problem(HTTPStatus.SERVICE_UNAVAILABLE, "timed-out", f"no answer within {patience_s} s")
        except Exception:  # the last line: a defect of ours is logged here and must not reach the caller
            log.exception("request_failed", method=scope["method"], path=scope["path"])
            answer = problem(HTTPStatus.INTERNAL_SERVER_ERROR, "internal-error", "a defect of the server; see its log")
        else:
            return
        if started:
            # Half an answer can't be taken back; an error ends the connection, so that it is not taken for a whole one.
            raise ConnectionAbortedError("the response had begun")
        await answer(scope, receive, send)


def _busy(detail: str) -> Response:
    return problem(HTTPStatus.SERVICE_UNAVAILABLE, "too-busy", detail, headers={"Retry-After": "1"})
