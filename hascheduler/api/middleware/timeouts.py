"""How long a request may take, and that no exception leaves the application.

Most requests have 30 s; those that are held open until something happens have longer. How many may be in flight or
held open is up to `hascheduler.api.middleware.pools`, which knows the caller.
"""

import asyncio
from http import HTTPStatus

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hascheduler.api.http.connection import connection_of
from hascheduler.api.http.problems import problem
from hascheduler.api.middleware.pools import UNCOUNTED

WAIT_S_MAX = 300
"""The longest that one may wait for the end of a job, or a worker for work."""
RECORDING_S_MAX = 3_600
EVENTS_S_MAX = 3_600
_MARGIN_S = 30

_LONG_S_MAX = {
    ("GET", "/v1/cluster/recording"): RECORDING_S_MAX + _MARGIN_S,
    ("GET", "/v1/events"): EVENTS_S_MAX + _MARGIN_S,
    ("POST", "/v1/work/fetch"): WAIT_S_MAX + _MARGIN_S,
}


def long_request_s_max(scope: Scope) -> int | None:
    """The time limit of a request that may be held open; None for all others."""
    method, path = request = (scope["method"], scope["path"])
    waits_for_job = request == ("POST", "/v1/jobs") or (method == "GET" and path.startswith("/v1/jobs/"))
    if waits_for_job and b"wait=" in scope.get("query_string", b""):
        return WAIT_S_MAX + _MARGIN_S
    return _LONG_S_MAX.get(request)


log = structlog.get_logger(__name__)

_ANSWER_S_MAX = 30


class TimeoutMiddleware:
    """Answers 503 after the time limit and 500 for a defect, where no answer has begun; else it cuts the connection."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in UNCOUNTED:
            await self._app(scope, receive, send)
            return
        limit_s = long_request_s_max(scope)
        await self._within_limits(scope, receive, send, _ANSWER_S_MAX if limit_s is None else limit_s)

    async def _within_limits(self, scope: Scope, receive: Receive, send: Send, limit_s: int) -> None:
        started = False

        async def watched_send(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            async with asyncio.timeout(limit_s):
                await self._app(scope, receive, watched_send)
        except TimeoutError:
            log.warning("request_took_too_long", method=scope["method"], path=scope["path"])
            answer = problem(HTTPStatus.SERVICE_UNAVAILABLE, "timed-out", f"no answer within {limit_s} s")
        except Exception:  # the last resort: a defect is logged here and must not reach the caller
            log.exception("request_failed", method=scope["method"], path=scope["path"])
            answer = problem(HTTPStatus.INTERNAL_SERVER_ERROR, "internal-error", "a defect of the server; see its log")
        else:
            return
        if not started:
            await answer(scope, receive, send)
            return
        # Half an answer can't be withdrawn; the connection is cut, so that the client does not take it for a whole one.
        connection = connection_of(scope)
        if connection is None:
            raise ConnectionAbortedError("the response had begun")
        connection.cut()
        while (await receive())["type"] != "http.disconnect":  # arrives as soon as the connection is cut
            pass
