"""The short path of the routes that carry the load: what FastAPI would do with a request, without its machinery.

::

    request ─► is it plain? ─► body ─► strict JSON ─► dependencies ─► model ─► the route's function ─► answer
                  │ no                    │ refused                     │ refused
                  └───────────────────────┴─────────────────────────────┴──────────────► FastAPI, from the beginning

A plain request has a known path, no query, a small JSON body whose length is declared (or none, where the route takes
none), and a caller with the power. Everything else, and every body that would be refused, goes on to FastAPI, which
reads it from its first byte: so what is refused before the route's function is refused in one place, in one way. What
the function itself raises is answered by `hascheduler.api.routing.error_handlers`, as on the other path.

The routes stay registered in FastAPI, and a `ShortRoute` is made of what FastAPI has found out about one: its
dependencies, models and status codes. So the OpenAPI document describes both paths. What must hold: a caller can't tell
the paths apart, and nothing but the CPU of an answer depends on which one it took.
"""

from collections.abc import Mapping, Sequence
from inspect import iscoroutinefunction
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hascheduler.api.http.problems import ProblemError
from hascheduler.api.http.strict_json import MalformedJson, Oversized, UnstorableJson, read_json
from hascheduler.api.middleware.audit import PATTERN
from hascheduler.api.routing.body import JsonRoute, LargeJsonRoute, receive_bounded, required_powers
from hascheduler.api.routing.error_handlers import answer_to
from hascheduler.api.routing.undeclared import IDEMPOTENCY_KEY, OnlyDeclared, honours_key
from hascheduler.schema.noun import parse_request

BODY_BYTES_MAX = 8 * 1024
"""As much as the JSON scanner takes in one go, in a fraction of a millisecond."""
_LENGTH_DIGITS_MAX = 4
_JSON = b"application/json"
_KEY = IDEMPOTENCY_KEY.lower().encode()
_PLAIN_HEADERS = frozenset({b"content-encoding", b"transfer-encoding"})
"""Which a plain request has not."""


class ShortPath:
    """Tries each request on the short path first; ``app`` answers what that leaves."""

    def __init__(self, app: ASGIApp, routes: "Sequence[ShortRoute]") -> None:
        self._app = app
        self._exact = {(route.method, route.path): route for route in routes if route.parameter is None}
        self._with_parameter = [route for route in routes if route.parameter is not None]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        route = self._route_of(scope)
        if route is None or not route.takes(scope):
            await self._app(scope, receive, send)
            return
        given = _Given(receive)
        answer = await route.answer(scope, given)
        if answer is None:
            await self._app(scope, given.again, send)
            return
        await answer(scope, receive, send)

    def _route_of(self, scope: Scope) -> "ShortRoute | None":
        if scope["type"] != "http" or scope["query_string"] or scope.get("root_path"):
            return None
        method, path = scope["method"], scope["path"]
        found = self._exact.get((method, path))
        if found is not None:
            return found
        return next(
            (one for one in self._with_parameter if one.method == method and one.parameter_in(path) is not None), None
        )


class _Given:
    """The body of a request, which may be received twice."""

    __slots__ = ("_receive", "body")

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self.body: bytes | None = None

    async def read(self, bytes_max: int) -> bytes:
        self.body = await receive_bounded(self._receive, bytes_max)
        return self.body

    async def again(self) -> Message:
        body, self.body = self.body, None
        if body is None:
            return await self._receive()
        return {"type": "http.request", "body": body, "more_body": False}


class ShortRoute:
    """The route ``name`` of ``router``, which the application includes under ``prefix``.

    It may take one parameter at the end of its path, as it is; one body, which it requires; queries that all have
    defaults; and dependencies that are coroutines. An `AssertionError` at start says which it is not.
    """

    def __init__(self, router: APIRouter, prefix: str, name: str) -> None:
        route = next(one for one in router.routes if isinstance(one, APIRoute) and one.name == name)
        assert route.response_model is not None
        assert route.response_field is not None
        self._field = route.response_field
        self._endpoint: Any = route.endpoint
        self._status = route.status_code
        self._honours_key = honours_key(route)
        assert route.methods is not None
        [self.method] = route.methods
        self.pattern = prefix + route.path_format
        self.path, self.parameter = self.pattern, None
        dependant = route.dependant
        if dependant.path_params:
            [parameter] = dependant.path_params
            assert parameter.field_info.annotation is str
            assert not parameter.field_info.metadata
            self.parameter = parameter.name
            self.path = self.pattern.removesuffix(f"{{{self.parameter}}}")
        self._body: tuple[str, type[BaseModel]] | None = None
        if route.body_field is not None:
            assert isinstance(route, JsonRoute)
            assert not isinstance(route, LargeJsonRoute), "its body is charged to a pool"
            [body] = dependant.body_params
            assert body.field_info.is_required()
            model = body.field_info.annotation
            assert isinstance(model, type)
            assert issubclass(model, BaseModel)
            self._body = body.name, model
        self._powers = tuple(required_powers(dependant))
        self._dependencies = _Dependencies(dependant)

    def parameter_in(self, path: str) -> str | None:
        found = path.removeprefix(self.path)
        return (
            found if found and found != path and found.isascii() and found.isprintable() and "/" not in found else None
        )

    def takes(self, scope: Scope) -> bool:
        """Whether the head is plain, and its caller has the power."""
        length = kind = None
        for name, value in scope["headers"]:
            if name == b"content-length":
                if length is not None:
                    return False
                length = value
            elif name == b"content-type":
                if kind is not None:
                    return False
                kind = value
            elif name in _PLAIN_HEADERS or (name == _KEY and not self._honours_key):
                return False
        if self._body is None:
            if length is not None:
                return False
        elif (
            kind != _JSON
            or length is None
            or not (len(length) <= _LENGTH_DIGITS_MAX and length.isdigit())
            or not 0 < int(length) <= BODY_BYTES_MAX
        ):
            return False
        caller = scope["state"]["caller"]
        try:
            for power in self._powers:
                power.check(caller)
        except ProblemError:
            return False
        return True

    async def answer(self, scope: Scope, given: _Given) -> Response | None:
        """None where FastAPI is to answer: nothing was done, and ``given`` may be received again."""
        request = Request(scope, given.again)
        try:
            value = None if self._body is None else read_json(await given.read(BODY_BYTES_MAX))
            named = await self._dependencies.solved(request)
            if self._body is not None:
                name, model = self._body
                named[name] = parse_request(model, value)
        except (ClientDisconnect, MalformedJson, Oversized, UnstorableJson, ValidationError):
            return None
        except ProblemError as error:
            scope[PATTERN] = self.pattern
            return await answer_to(request, error)
        scope[PATTERN] = self.pattern
        if self.parameter is not None:
            named[self.parameter] = self.parameter_in(scope["path"])
            scope["path_params"] = {self.parameter: named[self.parameter]}
        try:
            return self._rendered(await self._endpoint(**named), self._dependencies.response_in(named))
        except Exception as error:
            answer = await answer_to(request, error)
            if answer is None:
                raise
            return answer

    def _rendered(self, found: Any, extra: Response | None) -> Response:
        value, errors = self._field.validate(found, {}, loc=("response",))
        assert not errors, errors
        content = self._field.serialize_json(value)
        status = self._status if extra is None or not extra.status_code else extra.status_code
        answer = Response(content, status or 200, media_type="application/json")
        if extra is not None:
            answer.raw_headers.extend(extra.raw_headers)
        return answer


class _Dependencies:
    """What a function of a route asks for besides its body and its parameter, as its `Dependant` says."""

    def __init__(self, dependant: Dependant) -> None:
        assert not dependant.header_params
        assert not dependant.cookie_params
        self._request = dependant.request_param_name
        self._response = dependant.response_param_name
        self._queries: Mapping[str, BaseModel] = {
            query.name: _defaults(query.field_info.annotation) for query in dependant.query_params
        }
        # They judge queries, bodies and keys that a route does not declare, and a plain request has none of them.
        asked = [each for each in dependant.dependencies if not isinstance(each.call, OnlyDeclared)]
        assert all(_is_coroutine(each.call) for each in asked)
        self._asked = [(each.name, each.call, _Dependencies(each)) for each in asked]

    async def solved(self, request: Request) -> dict[str, Any]:
        named: dict[str, Any] = dict(self._queries)
        for name, call, inner in self._asked:
            found = await call(**await inner.solved(request))  # type: ignore[misc]  # a coroutine: asserted above
            if name is not None:
                named[name] = found
        if self._request is not None:
            named[self._request] = request
        if self._response is not None:
            named[self._response] = _unanswered()
        return named

    def response_in(self, named: Mapping[str, Any]) -> Response | None:
        return None if self._response is None else named[self._response]


def _defaults(annotation: Any) -> BaseModel:
    """What a request without a query asks for; shared by all of them, so it has to be frozen."""
    assert issubclass(annotation, BaseModel)
    assert annotation.model_config.get("frozen")
    defaults: BaseModel = annotation.model_validate({})
    return defaults


def _is_coroutine(call: Any) -> bool:
    return iscoroutinefunction(call) or iscoroutinefunction(type(call).__call__)


def _unanswered() -> Response:
    """As FastAPI hands it to a route, which adds headers and may set a status."""
    response = Response()
    response.raw_headers.clear()
    response.status_code = None  # type: ignore[assignment]  # as FastAPI does
    return response
