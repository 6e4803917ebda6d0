"""The routes that are called for each job, as plain Starlette routes: FastAPI's work around a function costs more.

They answer requests without a query, without a body that the route does not take and without a key that it does not
honour. All other requests go to the FastAPI routes of the same paths, which call the same functions and are in the
OpenAPI document. What must hold: a caller can't tell the two apart, and only the CPU time of a response depends on
which one answered.
"""

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, HTTPException, Request, Response
from pydantic import BaseModel
from starlette.requests import ClientDisconnect
from starlette.routing import Match, Route
from starlette.types import Scope

from hascheduler.api.http.strict_json import VALUES_MAX
from hascheduler.api.jobs.idempotency import key_of
from hascheduler.api.jobs.read import get_job
from hascheduler.api.jobs.submit import WaitQuery, submit_job
from hascheduler.api.jobs.waiting import WaitForJobQuery
from hascheduler.api.middleware.audit import note_of
from hascheduler.api.middleware.auth import Caller, RequiredPower
from hascheduler.api.routing.route_rules import BODY_BYTES_MAX, json_value, read_body, receive_bounded, require_head
from hascheduler.api.services import ApiServices
from hascheduler.api.work.routes import beat, finish_attempt, start_attempt
from hascheduler.api.work.schemas import WORK_VALUES_MAX, FinishBody, HeartbeatBody, StartBody
from hascheduler.model.token import Power
from hascheduler.schema.job import SubmitJobBody

_READ, _SUBMIT = RequiredPower(Power.READ), RequiredPower(Power.SUBMIT)
_WORK = RequiredPower(Power.WORK, of_all=True)
_BODY, _KEY = frozenset({b"content-length", b"transfer-encoding"}), frozenset({b"idempotency-key"})


class HotRoute(Route):
    """A route that leaves requests with a query, or with one of the headers ``left``, to the routes after it."""

    def __init__(
        self, method: str, path: str, endpoint: Callable[[Request], Awaitable[Response]], left: frozenset[bytes]
    ) -> None:
        super().__init__(path, endpoint, methods=[method])
        self._method = method
        self._left = left

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] == "http" and scope["method"] == self._method and not scope["query_string"]:
            found, child = super().matches(scope)
            if found is Match.FULL and self._left.isdisjoint(name for name, _ in scope["headers"]):
                return found, {**child, "route": self}
        return Match.NONE, {}


def install(app: FastAPI) -> None:
    """Put the routes before all others."""
    app.router.routes[:0] = [
        HotRoute("POST", "/v1/jobs", _submit, frozenset()),
        HotRoute("GET", "/v1/jobs/{id}", _get, _BODY),
        HotRoute("POST", "/v1/work/start", _work_route(StartBody, start_attempt), _KEY),
        HotRoute("POST", "/v1/work/heartbeat", _work_route(HeartbeatBody, beat), _KEY),
        HotRoute("POST", "/v1/work/finish", _work_route(FinishBody, finish_attempt), _KEY),
    ]


async def _submit(request: Request) -> Response:
    caller, services = _asked(request, _SUBMIT)
    value = await _value(request)
    key = await key_of(request)
    body = read_body(SubmitJobBody, value)
    response = Response(status_code=HTTPStatus.CREATED)
    response.raw_headers.clear()  # the function adds its own headers, and may set another status
    note = note_of(request.scope)
    shown = await submit_job(
        body, services, caller, request, response=response, waiting=WaitQuery(), key=key, note=note
    )
    answer = _answer(shown, response.status_code)
    answer.raw_headers.extend(response.raw_headers)
    return answer


async def _get(request: Request) -> Response:
    caller, services = _asked(request, _READ)
    return _answer(
        await get_job(request.path_params["id"], services, caller, request=request, waiting=WaitForJobQuery())
    )


def _work_route(model: type[BaseModel], function: Callable[..., Awaitable[BaseModel]]) -> Callable[..., Any]:
    async def answer(request: Request) -> Response:
        caller, services = _asked(request, _WORK)
        value = await _value(request, WORK_VALUES_MAX)
        return _answer(await function(read_body(model, value), services, caller))

    return answer


def _asked(request: Request, power: RequiredPower) -> tuple[Caller, ApiServices]:
    caller: Caller = request.state.caller
    power.check(caller)
    return caller, request.state.services


async def _value(request: Request, values_max: int = VALUES_MAX) -> Any:
    require_head(request, BODY_BYTES_MAX)
    try:
        body = await receive_bounded(request.receive, BODY_BYTES_MAX)
    except ClientDisconnect:
        raise HTTPException(400, "There was an error parsing the body") from None  # in FastAPI's words
    return json_value(body, values_max)


def _answer(shown: BaseModel, status: int = HTTPStatus.OK) -> Response:
    return Response(shown.model_dump_json(by_alias=True), status, media_type="application/json")
