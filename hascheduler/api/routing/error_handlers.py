"""Turns every exception of a request into a problem; the status follows from whose fault it is.

The caller's errors are 4xx and say what would be right. Failures of the database or the broker are 503 and carry
Retry-After. Defects are 500, without details, and logged.
"""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.routing import Match

from hascheduler.api.http.problems import ERRORS_SHOWN_MAX, FieldError, Path, ProblemError, invalid, problem
from hascheduler.errors import CallerError, InvalidInput, NotFound, Overloaded, RevisionMismatch, TooMany, WorldError
from hascheduler.model.repr_limits import quoted

log = structlog.get_logger(__name__)

_RETRY_AFTER_S = "2"
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_EXPECTED_TYPES = {
    "int_type": "an integer",
    "int_from_float": "an integer",
    "int_parsing": "an integer",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "a text",
    "dict_type": "an object",
    "list_type": "a list",
    "model_type": "an object",
    "model_attributes_type": "an object",
}


class UnreadableDocument(Exception):
    """A stored document that can't be decoded: not one that a replica has written as it is."""

    def __init__(self, kind: str, id: str, reason: InvalidInput) -> None:
        super().__init__(f"the stored {kind} {id!r} can't be read: {reason}")


def install(app: FastAPI) -> None:
    app.add_exception_handler(StarletteHTTPException, _http)
    app.add_exception_handler(RequestValidationError, _validation)
    app.add_exception_handler(CallerError, _caller)
    app.add_exception_handler(WorldError, _world)
    app.add_exception_handler(UnreadableDocument, _unreadable)


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, StarletteHTTPException)
    match error:
        case ProblemError():
            status, kind, detail, errors = error.status_code, error.kind, error.detail, error.errors
            return problem(status, kind, detail, errors=errors, headers=error.headers)
        case StarletteHTTPException(status_code=HTTPStatus.NOT_FOUND):
            return problem(error.status_code, "no-such-route", f"nothing is at {request.url.path}; see /docs")
        case StarletteHTTPException(status_code=HTTPStatus.METHOD_NOT_ALLOWED):
            allowed = ", ".join(_allowed_methods(request))
            detail = f"{request.method} is not for {request.url.path}; expected {allowed}"
            return problem(error.status_code, "method-not-allowed", detail, headers={"Allow": allowed})
        case HTTPException() | StarletteHTTPException():
            return problem(error.status_code, "refused", str(error.detail), headers=error.headers)


def _allowed_methods(request: Request) -> list[str]:
    """All methods of the path; the framework names only those of the first matching route."""
    return [
        method
        for method in _METHODS
        if any(
            route.matches({**request.scope, "method": method})[0] is Match.FULL for route in request.app.router.routes
        )
    ]


async def _validation(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    found = error.errors()
    return invalid([field_error(one, error.body) for one in found[:ERRORS_SHOWN_MAX]], len(found))


def field_error(error: Mapping[str, Any], body: Any) -> FieldError:
    """An error that pydantic found in ``body``, in the words of this API."""
    where, *rest = error["loc"]
    path = _without_tags(rest, body) if where == "body" else tuple(rest)
    kind, context = error["type"], error.get("ctx", {})
    value: Any = error.get("input")
    match kind:
        case "wrong":
            return FieldError(path, context["problem"], context["expected"])
        case "missing":
            return FieldError(path, "missing", "this field, which has no default" if path else "a JSON object")
        case "extra_forbidden":
            return FieldError(path, "no such field", "only the fields that /docs lists")
        case "union_tag_not_found":
            return FieldError((*path, "type"), "missing", "cron, interval, times or once")
        case "union_tag_invalid":
            return FieldError((*path, "type"), f"{quoted(context['tag'])} is unknown", context["expected_tags"])
        case "literal_error" | "enum":
            return FieldError(path, f"{quoted(value)} is unknown", context["expected"])
        case "greater_than_equal":
            return FieldError(path, f"{quoted(value)} is too small", f"at least {context['ge']}")
        case "less_than_equal":
            return FieldError(path, f"{quoted(value)} is too large", f"at most {context['le']}")
        case "string_too_long":
            return FieldError(path, f"{len(value)} characters", f"at most {context['max_length']}")
        case "too_short":
            return FieldError(path, f"{context['actual_length']} in it", f"at least {context['min_length']}")
        case "too_long":
            return FieldError(path, f"{len(value)} in it", f"at most {context['max_length']}")
        case _ if kind in _EXPECTED_TYPES:
            return FieldError(path, f"{quoted(value)} is not {_EXPECTED_TYPES[kind]}", _EXPECTED_TYPES[kind])
        case _:
            return FieldError(path, str(error["msg"]))


def _without_tags(loc: Sequence[str | int], body: Any) -> Path:
    """The path as the body has it: pydantic's also holds the tag of the union member that it tried."""
    path: list[str | int] = []
    value, tag_passed = body, False
    for part in loc:
        if isinstance(value, dict) and value.get("type") == part and not tag_passed:
            tag_passed = True
            continue
        path.append(part)
        tag_passed = False
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
        else:
            value = None
    return tuple(part for part in path if part != "[key]")


async def _caller(request: Request, error: Exception) -> Response:
    match error:
        case InvalidInput():
            return invalid([FieldError(error.path, error.problem, error.expected)])
        case NotFound():
            return problem(HTTPStatus.NOT_FOUND, "not-found", str(error))
        case RevisionMismatch():
            return problem(HTTPStatus.PRECONDITION_FAILED, "revision-mismatch", str(error))
        case TooMany():
            headers = {"Retry-After": str(error.retry_after_s)}
            return problem(HTTPStatus.TOO_MANY_REQUESTS, "too-many-requests", str(error), headers=headers)
        case _:
            return problem(HTTPStatus.CONFLICT, "conflict", str(error))


async def _world(request: Request, error: Exception) -> Response:
    if isinstance(error, Overloaded):
        return problem(
            HTTPStatus.SERVICE_UNAVAILABLE, "overloaded", str(error), headers={"Retry-After": str(error.retry_after_s)}
        )
    log.warning("request_unanswered", method=request.method, path=request.url.path, reason=str(error))
    detail = "the database did not answer in time"
    if request.method != "GET":
        detail += "; whether the change was made is unknown, so look before you repeat it"
    return problem(HTTPStatus.SERVICE_UNAVAILABLE, "unavailable", detail, headers={"Retry-After": _RETRY_AFTER_S})


async def _unreadable(request: Request, error: Exception) -> Response:
    return problem(HTTPStatus.INTERNAL_SERVER_ERROR, "unreadable-document", str(error))
