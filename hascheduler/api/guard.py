"""The outermost layer: how many requests at once, how long each may take, and nothing unexpected gets out.

Owns the number of requests in flight. Health checks are not counted, so that a busy replica does not look dead.
"""

import asyncio
from http import HTTPStatus

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hascheduler.api.problems import problem
from hascheduler.api.recording import PATH as RECORDING_PATH
from hascheduler.api.recording import S_MAX as RECORDING_S_MAX

log = structlog.get_logger(__name__)

IN_FLIGHT_MAX = 256
_PATIENCE_S = 30
_OWN_LIMITS = {RECORDING_PATH: RECORDING_S_MAX + _PATIENCE_S}
"""Answers that go on for as long as they were asked to."""
_UNCOUNTED = frozenset({"/livez", "/readyz"})


class Guard:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._in_flight = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in _UNCOUNTED:
            await self._app(scope, receive, send)
            return
        if self._in_flight >= IN_FLIGHT_MAX:
            busy = problem(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "too-busy",
                f"{IN_FLIGHT_MAX} requests are in flight already",
                headers={"Retry-After": "1"},
            )
            await busy(scope, receive, send)
            return
        self._in_flight += 1
        try:
            await self._within_limits(scope, receive, send)
        finally:
            self._in_flight -= 1

    async def _within_limits(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False
        patience_s = _OWN_LIMITS.get(scope["path"], _PATIENCE_S)

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
