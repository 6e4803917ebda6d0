"""The edge, which every request passes, in one frame: a frame for each step would cost more than the steps.

::

    metrics ─► time limit ─► audit ─► cross_site ─► auth ─► limits ─► hot routes or FastAPI, or a gateway to several

The order matters: every refusal is counted and audited, a forged browser request is refused before it learns anything
about tokens, and a request is charged to its caller as soon as `hascheduler.api.middleware.auth` has identified the
caller. Each step is a function of its own module, which documents its rules. The edge decides by its own services, and
puts them into the request for the routes. A gateway may put others into its copy.

What must hold: no exception leaves the application. If no response has begun, one is sent: 503 after the time limit,
500 for an unexpected error. Half a response can't be withdrawn, so its connection is cut.
"""

import asyncio
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from time import perf_counter

import structlog
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hascheduler.api.http.connection import connection_of
from hascheduler.api.http.limits import HOLDING, Holding, NoRoom
from hascheduler.api.http.problems import ProblemError, problem
from hascheduler.api.http.server import BATCH_ID, passed_on_by_peer
from hascheduler.api.middleware.audit import (
    CUT_OFF,
    begin_notes,
    is_recorded,
    note_of,
    pattern_of,
    record,
    request_id_of,
)
from hascheduler.api.middleware.auth import EDGE, charged, identified, is_page_path, shows_session
from hascheduler.api.middleware.cross_site import refusal_of
from hascheduler.api.middleware.overload import TurnedAway, outcome_unknown, overload_of, time_limit_s
from hascheduler.api.services import ApiServices

log = structlog.get_logger(__name__)

UNCOUNTED = frozenset({"/livez", "/readyz", "/leaderz", "/metrics"})
"""Paths outside the limits: a busy replica must not seem dead, and must be able to show how busy it is."""
_OF_ANSWERS = (b"x-content-type-options", b"x-request-id")


class _Answer:
    """The response to one request: sends it and keeps what is known of it so far."""

    __slots__ = ("_send", "location", "request_id", "status")

    def __init__(self, send: Send, request_id: str) -> None:
        self._send = send
        self.request_id = request_id
        self.status: int | None = None
        self.location: str | None = None

    async def send(self, message: Message) -> None:
        """Add the request's id to every response, and the header that keeps browsers from guessing its type."""
        if message["type"] == "http.response.start":
            self.status = int(message["status"])
            headers: list[tuple[bytes, bytes]] = []
            for each in message["headers"]:
                if each[0] == b"location" and self.location is None:
                    self.location = each[1].decode("latin-1")
                if each[0] not in _OF_ANSWERS:
                    headers.append(each)
            headers.append((b"x-content-type-options", b"nosniff"))
            headers.append((b"x-request-id", self.request_id.encode()))
            message["headers"] = headers
        await self._send(message)


@dataclass(eq=False)
class Edge:
    """The outermost layer of the application.

    Requests to ``open_paths`` need no caller, nor does ``login`` (a method and a path); ``public_pages`` may be
    requested from pages of other sites too. ``turned_away`` decides which submits are refused unread; by default the
    admission of ``services`` does.
    """

    app: ASGIApp
    services: ApiServices
    open_paths: Collection[str]
    public_pages: Collection[str]
    login: tuple[str, str]
    turned_away: TurnedAway | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if scope["method"] == "HEAD":
            await _answer_head(self, scope, receive, send)
            return
        began_s = perf_counter()
        answer = _Answer(send, request_id_of(scope))
        services = self.services
        state = scope.setdefault("state", {})
        state["services"] = state[EDGE] = services
        begin_notes(scope, answer.request_id)
        if services.peer_key and (passed_on := passed_on_by_peer(scope, services.peer_key)):
            scope["client"] = passed_on.client, 0
            state[BATCH_ID] = passed_on.batch_id
        status: int | None = None
        try:
            if scope["path"] in UNCOUNTED:
                await self._recorded(scope, receive, answer)
            else:
                status = await self._within_time(scope, receive, send, answer)
        finally:
            status = answer.status if status is None else status
            services.metrics.answered(scope["method"], pattern_of(scope), status, perf_counter() - began_s)

    async def _within_time(self, scope: Scope, receive: Receive, send: Send, answer: _Answer) -> int | None:
        """Return the status of the response sent in place of the application's; None if its own was sent."""
        limit_s = time_limit_s(scope)
        try:
            async with asyncio.timeout(limit_s):
                await self._recorded(scope, receive, answer)
        except TimeoutError:
            log.warning("request_timed_out", method=scope["method"], path=scope["path"])
            detail = f"no response within {limit_s} s"
            late = problem(HTTPStatus.SERVICE_UNAVAILABLE, "timed-out", detail)
            instead = outcome_unknown(scope, detail) or late
        except Exception:  # the last resort: an unexpected error is logged here and must not reach the caller
            log.exception("request_failed", method=scope["method"], path=scope["path"])
            instead = problem(
                HTTPStatus.INTERNAL_SERVER_ERROR, "internal-error", "internal error; the server's log has the details"
            )
        else:
            return None
        if answer.status is None:
            await instead(scope, receive, send)
            return instead.status_code
        # Cut the connection, so that the client does not mistake half a response for a whole one.
        connection = connection_of(scope)
        if connection is None:
            raise ConnectionAbortedError("the response had begun")
        connection.cut()
        while (await receive())["type"] != "http.disconnect":  # arrives as soon as the connection is cut
            pass
        return None

    async def _recorded(self, scope: Scope, receive: Receive, answer: _Answer) -> None:
        status: int | None = None
        try:
            await self._judged(scope, receive, answer)
        except asyncio.CancelledError:
            status = CUT_OFF
            raise
        finally:
            if is_recorded(scope):
                record(scope, status if answer.status is None else answer.status, answer.location, answer.request_id)

    async def _judged(self, scope: Scope, receive: Receive, answer: _Answer) -> None:
        services: ApiServices = scope["state"][EDGE]
        refused = self._refusal(scope, services)
        if refused is not None or scope["path"] in UNCOUNTED:
            await (refused or self.app)(scope, receive, answer.send)
            return
        try:
            holding = scope["state"][HOLDING] = _place_in_flight(scope, services)
        except NoRoom as full:
            full_up = full.response(Connection="close")  # the rest of the body will not be read
            await _unaudited(full_up, scope)(scope, receive, answer.send)
            return
        try:
            overloaded = overload_of(scope, self.turned_away or services.admission.turned_away)
            await (_unaudited(overloaded, scope) if overloaded else self.app)(scope, receive, answer.send)
        finally:
            holding.release()

    def _refusal(self, scope: Scope, services: ApiServices) -> Response | None:
        """Return the refusal of a request; None if it may go on, with its caller in the scope if it needs one."""
        auth, path = services.auth, scope["path"]
        is_open = path in self.open_paths or (scope["method"], path) == self.login
        by_session = not is_open and shows_session(scope, auth)
        refused = refusal_of(scope, auth, self.public_pages, by_session=by_session)
        if refused is None and not auth.pages.enabled and is_page_path(path):
            detail = "the dashboard is disabled at this replica (the setting UI)"
            refused = problem(HTTPStatus.NOT_FOUND, "no-such-route", detail)
        if refused is None and not is_open:
            try:
                scope["state"]["caller"] = identified(scope, auth, services.view, services.clock)
            except ProblemError as error:
                refused = error.response()
        return refused


def _place_in_flight(scope: Scope, services: ApiServices) -> Holding:
    parties, privileged = charged(scope)
    connection = connection_of(scope)
    if connection is not None and connection.is_reserved and not privileged:
        services.metrics.crowded_out("connections", "full")
        raise NoRoom("full", "connections", 1)
    return Holding(services.limits, parties, services.metrics, privileged=privileged)


async def _answer_head(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer as ``app`` answers GET, without the body. Cancel ``app`` after the head, as a stream would go on."""
    loop = asyncio.get_running_loop()

    async def send_head(message: Message) -> None:
        if message["type"] == "http.response.start":
            await send(message)
            await send({"type": "http.response.body", "body": b""})
            over.reschedule(loop.time())

    with suppress(TimeoutError):
        async with asyncio.timeout(None) as over:
            await app({**scope, "method": "GET"}, receive, send_head)


def _unaudited(refused: Response, scope: Scope) -> Response:
    """Count ``refused`` without an audit record: it changes nothing, and a flood of refusals must write nothing."""
    note_of(scope).unaudited = True
    return refused
