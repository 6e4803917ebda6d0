"""The layer around all others: how long each request may take, and nothing unexpected gets out.

How many there may be at once is the business of `hascheduler.api.turnstile`, behind the door, where it is known who
asks. What is held open (`hascheduler.api.long_requests`) may take longer.
"""

import asyncio
from http import HTTPStatus

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hascheduler.api import long_requests
from hascheduler.api.connection import connection_of
from hascheduler.api.pools import UNCOUNTED
from hascheduler.api.problems import problem

log = structlog.get_logger(__name__)

_PATIENCE_S = 30


class Guard:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in UNCOUNTED:
            await self._app(scope, receive, send)
            return
        patience_s = long_requests.patience_s(scope)
        await self._within_limits(scope, receive, send, _PATIENCE_S if patience_s is None else patience_s)

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
        if not started:
            await answer(scope, receive, send)
            return
        # Half an answer can't be taken back; the connection ends, so that it is not taken for a whole one.
        connection = connection_of(scope)
        if connection is None:
            raise ConnectionAbortedError("the response had begun")
        connection.cut()
        while (await receive())["type"] != "http.disconnect":  # it is told in a moment
            pass
