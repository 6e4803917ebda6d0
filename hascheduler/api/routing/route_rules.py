"""The rules of every route: strict JSON bodies within bounds, nothing undeclared, a problem for every error.

A body costs nothing until its sender is known to have the power to send it::

    caller ────► power ─────► type, declared size ─► bytes ────────────► values ────► fields
    identified   RequiredPower                       receive_bounded     json_value   the models

The status of a problem follows from whose fault it is. The caller's errors are 4xx and name what is expected. Failures
of the database or the broker are 503 and carry Retry-After. Unexpected errors are 500, without details, and logged.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from email.message import Message
from functools import cache
from http import HTTPStatus
from inspect import isfunction
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import structlog
from fastapi import FastAPI, HTTPException, Request, Response, params
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.routing import Match
from starlette.types import Receive

from hascheduler.api.http.limits import holding_of
from hascheduler.api.http.problems import ERRORS_SHOWN_MAX, ProblemError, error_text, invalid_fields, problem
from hascheduler.api.http.strict_json import VALUES_MAX, MalformedJson, Oversized, UnstorableJson, read_json
from hascheduler.api.middleware.auth import RequiredPower
from hascheduler.api.middleware.cross_site import READING
from hascheduler.api.middleware.overload import outcome_unknown
from hascheduler.errors import CallerError, InvalidInput, NotFound, Overloaded, RevisionMismatch, TooMany, WorldError
from hascheduler.model.values.error_texts import expected_name, quoted
from hascheduler.schema.noun import parse_request
from hascheduler.schema.refusals import refusal_of

log = structlog.get_logger(__name__)
Model = TypeVar("Model", bound=BaseModel)

BODY_BYTES_MAX = 512 * 1024
LARGE_BODY_BYTES_MAX = 2 * 1024 * 1024
LARGE_VALUES_MAX = 100_000
IDEMPOTENCY_KEY = "Idempotency-Key"
JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
_LARGE_CHARGED_MIN = 256 * 1024
_BODY_PATIENCE_S = 10
_LENGTH_DIGITS_MAX = 20
_UNDECLARED_SHOWN_MAX = 10
_NOTHING = b"{}"
_RETRY_AFTER = {"Retry-After": "2"}
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
# The rest of a refused body may never arrive; without this the connection would wait for it.
_CLOSE = {"Connection": "close"}


# Bodies


class JsonRoute(APIRoute):
    """A route whose body is strict JSON; anything else is refused with 400, 408, 413, 415 or 422.

    If the body is optional, a request without one needs no content type either.
    """

    bytes_max = BODY_BYTES_MAX
    values_max = VALUES_MAX

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        if self.body_field is None:
            return handle

        async def handle_strictly(request: Request) -> Response:
            self._check_head(request)
            with self._charged(request):
                return await handle(_JsonRequest(request, self))

        return handle_strictly

    def may_be_empty(self, request: Request) -> bool:
        return self.body_field is not None and not self.body_field.field_info.is_required() and not _has_body(request)

    def _check_head(self, request: Request) -> None:
        """Refuse a request whose head alone is wrong, before the body is read."""
        for power in _required_powers(self.endpoint):
            power.check(request.state.caller)
        if not self.may_be_empty(request):
            require_head(request, self.bytes_max)

    def _charged(self, request: Request) -> AbstractContextManager[object]:
        return nullcontext()


class LargeJsonRoute(JsonRoute):
    """A route whose body may be larger.

    Its declared size is charged to a pool before a byte of it is read: 429 or 503 if there is no room, so a flood of
    large bodies has a bound. A body without a declared size counts as the largest.
    """

    bytes_max = LARGE_BODY_BYTES_MAX
    values_max = LARGE_VALUES_MAX

    def _charged(self, request: Request) -> AbstractContextManager[object]:
        units = max(_declared_length(request, self.bytes_max), _LARGE_CHARGED_MIN)
        return holding_of(request.scope).take("large_bodies", units)


class _JsonRequest(Request):
    def __init__(self, request: Request, route: JsonRoute) -> None:
        super().__init__(request.scope, request.receive)
        self._route = route

    async def body(self) -> bytes:
        if not hasattr(self, "_read"):
            is_absent = self._route.may_be_empty(self)
            self._read = b"" if is_absent else await receive_bounded(self.receive, self._route.bytes_max)
        return self._read

    async def json(self) -> Any:
        return json_value(await self.body(), self._route.values_max)


def json_value(body: bytes, values_max: int = VALUES_MAX) -> Any:
    """Return the value of ``body``; raise `ProblemError` if it is not strict JSON."""
    try:
        return read_json(body, values_max)
    except Oversized as error:
        detail = f"the body has {error}; send less at once"
        raise ProblemError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "body-too-large", detail) from None
    except MalformedJson as error:
        raise ProblemError(HTTPStatus.BAD_REQUEST, "malformed-json", f"the body is not JSON: {error}") from None
    except UnstorableJson as error:
        raise invalid_fields(error.errors) from None


async def receive_bounded(receive: Receive, bytes_max: int) -> bytes:
    """Return the body of a request, or raise `ProblemError` (too large, too slow, empty) or `ClientDisconnect`."""
    body = bytearray()
    try:
        async with asyncio.timeout(_BODY_PATIENCE_S):
            async for piece in Request({"type": "http"}, receive).stream():
                body += piece
                if len(body) > bytes_max:
                    raise _too_large(bytes_max)
    except TimeoutError:
        detail = f"the body arrived too slowly; expected all of it within {_BODY_PATIENCE_S} s"
        raise ProblemError(HTTPStatus.REQUEST_TIMEOUT, "slow-request", detail, headers=_CLOSE) from None
    if not body:
        raise ProblemError(HTTPStatus.BAD_REQUEST, "malformed-json", "the body is empty; expected a JSON object")
    return bytes(body)


def _too_large(bytes_max: int) -> ProblemError:
    detail = f"the body is too large; expected at most {bytes_max} bytes"
    return ProblemError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "body-too-large", detail, headers=_CLOSE)


def _has_body(request: Request) -> bool:
    return "transfer-encoding" in request.headers or request.headers.get("content-length", "0").strip() != "0"


def _declared_length(request: Request, otherwise: int) -> int:
    """Return the declared size of the body, or ``otherwise`` if none is declared."""
    declared = request.headers.get("content-length", "")
    return int(declared[:_LENGTH_DIGITS_MAX]) if declared.isdecimal() else otherwise


def require_head(request: Request, bytes_max: int) -> None:
    """Raise `ProblemError` if the head declares a body of another type, encoded (415) or too large (413)."""
    _require_json(request)
    if _declared_length(request, 0) > bytes_max:
        raise _too_large(bytes_max)


def _require_json(request: Request) -> None:
    given = request.headers.get("content-type", "missing")
    if given == JSON and "content-encoding" not in request.headers:  # the common case
        return
    header = Message()
    header["content-type"] = request.headers.get("content-type", "")
    expected = (JSON, MERGE_PATCH) if request.method == "PATCH" else (JSON,)
    if header.get_content_type() not in expected or header.get_content_charset("utf-8") not in ("utf-8", "us-ascii"):
        detail = f"the body's Content-Type is {given!r}; expected {' or '.join(expected)}"
        headers = {"Accept": ", ".join(expected)}
    elif request.headers.get("content-encoding", "identity") != "identity":
        detail = "the body is encoded; expected no Content-Encoding"
        headers = {"Accept-Encoding": "identity"}
    else:
        return
    raise ProblemError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "unsupported-media-type", detail, headers=headers)


# The declarations of a route


def _annotated(call: Callable[..., Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yield the name, the type and the mark of each parameter of ``call``, and of its dependencies."""
    hints = get_type_hints(call if isfunction(call) else type(call).__call__, include_extras=True)
    for name, hint in hints.items():
        for mark in getattr(hint, "__metadata__", ()):
            yield name, get_args(hint)[0], mark
            if isinstance(mark, params.Depends) and mark.dependency is not None:
                yield from _annotated(mark.dependency)


@cache
def _required_powers(endpoint: Callable[..., Any]) -> Sequence[RequiredPower]:
    asked = [mark.dependency for _, _, mark in _annotated(endpoint) if isinstance(mark, params.Depends)]
    return [each for each in asked if isinstance(each, RequiredPower)]


@cache
def _declared_queries(endpoint: Callable[..., Any]) -> Mapping[str, bool]:
    """Return the query parameters, each with True if it may be repeated."""
    found: dict[str, bool] = {}
    for name, kind, mark in _annotated(endpoint):
        if isinstance(mark, params.Query) and isinstance(kind, type) and issubclass(kind, BaseModel):
            fields = kind.model_fields.items()
            found |= {field.alias or each: get_origin(field.annotation) is list for each, field in fields}
        elif isinstance(mark, params.Query):
            found[mark.alias or name] = get_origin(kind) is list
    return found


def honours_key(route: APIRoute) -> bool:
    """Return True if the route declares the header ``Idempotency-Key``."""
    return any(one["name"] == IDEMPOTENCY_KEY for one in (route.openapi_extra or {}).get("parameters", ()))


def only_declared(honouring: Sequence[str] = ()) -> Callable[[Request], Awaitable[None]]:
    """Return the dependency that refuses parameters that a route does not declare.

    ``honouring`` names the routes that take an ``Idempotency-Key``, for the refusal of a key elsewhere.

    Otherwise ``DELETE …?dry_run=true`` would delete, a misspelt filter would find everything, and a request that was
    sent again under its key would be carried out twice. The models refuse unknown fields of bodies.
    """

    async def check(request: Request) -> None:
        route, asked = request.scope["route"], f"{request.method} {request.scope['path']}"
        if route.body_field is None and _has_body(request) and not await _says_nothing(request):
            detail = f"{asked} takes no body; expected none"
            raise ProblemError(HTTPStatus.BAD_REQUEST, "unexpected-body", detail, headers=_CLOSE)
        if IDEMPOTENCY_KEY in request.headers and request.method not in READING and not honours_key(route):
            expected = f"no such header; only {', '.join(honouring)} support it"
            error = InvalidInput((IDEMPOTENCY_KEY,), f"{asked} does not support it", expected)
            raise ProblemError(HTTPStatus.BAD_REQUEST, "unexpected-header", error_text(error), errors=[error])
        if request.scope["query_string"]:
            counts = Counter(name for name, _ in request.query_params.multi_items())
            errors = list(_undeclared(counts, _declared_queries(route.endpoint)))
            if errors:
                raise invalid_fields(errors)

    return check


def _undeclared(counts: Mapping[str, int], declared: Mapping[str, bool]) -> Iterator[InvalidInput]:
    for name, count in list(counts.items())[:_UNDECLARED_SHOWN_MAX]:
        if name not in declared:
            yield InvalidInput((name,), "no such parameter", expected_name(name, declared))
        elif count > 1 and not declared[name]:
            yield InvalidInput((name,), f"{quoted(name)} is given {count} times", "each parameter once")


async def _says_nothing(request: Request) -> bool:
    """Return True if the body is an empty object, which some clients always send."""
    return request.headers.get("content-length") == str(len(_NOTHING)) and await request.body() == _NOTHING


# Problems


class UnreadableDocument(Exception):
    """A stored document that can't be decoded: no replica has written it like that."""

    def __init__(self, kind: str, id: str, reason: InvalidInput) -> None:
        self.can_be_replaced = kind != "job"
        remedy = ""
        if reason.path == ("rev",):
            remedy = "; delete it and create it again"  # without it, concurrent changes can't be detected
        elif self.can_be_replaced:
            remedy = "; replace it (PUT, or hascheduler apply) or delete it"
        super().__init__(f"the stored {kind} {id!r} can't be read: {reason}{remedy}")


@contextmanager
def readable(kind: str, id: object) -> Iterator[None]:
    """Raise `UnreadableDocument` if the block finds that the stored document can't be read."""
    try:
        yield
    except InvalidInput as error:
        raise UnreadableDocument(kind, str(id), error) from error


def read_body(model: type[Model], given: Any) -> Model:
    """Return the part that ``given`` holds; raise a `ProblemError` with all its errors, as for a body of the route."""
    try:
        return parse_request(model, given)
    except ValidationError as error:
        raise _invalid_fields([{**one, "loc": ("body", *one["loc"])} for one in error.errors()], given, model) from None


def _invalid_fields(found: Sequence[Any], body: Any, model: Any) -> ProblemError:
    errors = [
        refusal_of({**one, "loc": one["loc"][1:]}, body if one["loc"][0] == "body" else None, model)
        for one in found[:ERRORS_SHOWN_MAX]
    ]
    return invalid_fields(errors, len(found))


ANSWERED = (StarletteHTTPException, RequestValidationError, CallerError, WorldError, UnreadableDocument)
"""The errors that are answered with their own problem; all others are unexpected."""


def install(app: FastAPI) -> None:
    for kind in ANSWERED:
        app.add_exception_handler(kind, answer_to)


async def answer_to(request: Request, error: Exception) -> Response:
    """Return the problem for one of the `ANSWERED`."""
    match error:
        case ProblemError():
            return error.response()
        case StarletteHTTPException(status_code=HTTPStatus.NOT_FOUND):
            return problem(404, "no-such-route", f"no route {request.scope['path']}; see /docs")
        case StarletteHTTPException(status_code=HTTPStatus.METHOD_NOT_ALLOWED):
            allowed = ", ".join(_allowed_methods(request))
            detail = f"{request.scope['path']} does not support {request.method}; expected {allowed}"
            return problem(405, "method-not-allowed", detail, headers={"Allow": allowed})
        case HTTPException() | StarletteHTTPException():
            return problem(error.status_code, "refused", str(error.detail), headers=error.headers)
        case RequestValidationError():
            field = request.scope["route"].body_field
            model = None if field is None else field.field_info.annotation
            return await answer_to(request, _invalid_fields(error.errors(), error.body, model))
        case InvalidInput():
            return await answer_to(request, invalid_fields([error]))
        case NotFound():
            return problem(404, "not-found", str(error))
        case RevisionMismatch():
            return problem(412, "revision-mismatch", str(error))
        case TooMany():
            return problem(429, "too-many-requests", str(error), headers={"Retry-After": str(error.retry_after_s)})
        case CallerError():
            return problem(409, "conflict", str(error))
        case Overloaded():
            return problem(503, "overloaded", str(error), headers={"Retry-After": str(error.retry_after_s)})
        case UnreadableDocument(can_be_replaced=True):
            return problem(409, "unreadable-document", str(error))
        case UnreadableDocument():
            return problem(500, "unreadable-document", str(error))
        case WorldError():
            log.warning("request_unavailable", method=request.method, path=request.scope["path"], reason=str(error))
            detail = "the database did not answer in time"
            away = problem(503, "unavailable", detail, headers=_RETRY_AFTER)
            return outcome_unknown(request.scope, detail) or away
        case _:
            raise error


def _allowed_methods(request: Request) -> list[str]:
    """Return all methods of the path; the framework names only those of the first matching route."""
    routes = request.app.router.routes
    scopes = {method: {**request.scope, "method": method} for method in _METHODS}
    return [method for method in _METHODS if any(one.matches(scopes[method])[0] is Match.FULL for one in routes)]
