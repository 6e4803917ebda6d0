"""Turns every exception of a request into a problem; the status follows from whose fault it is.

The caller's errors are 4xx and say what would be right. Failures of the database or the broker are 503 and carry
Retry-After. Defects are 500, without details, and logged.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.routing import Match

from hascheduler.api.http.problems import ERRORS_SHOWN_MAX, FieldError, ProblemError, invalid, problem
from hascheduler.api.middleware.outcomes import outcome_unknown
from hascheduler.errors import (
    CallerError,
    InvalidInput,
    NotFound,
    Overloaded,
    RevisionMismatch,
    TooMany,
    WorldError,
)
from hascheduler.wire.validation import refused, with_known_names

log = structlog.get_logger(__name__)

_RETRY_AFTER_S = "2"
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


_NEVER_REPLACED = ("job",)


class UnreadableDocument(Exception):
    """A stored document that can't be decoded: not one that a replica has written as it is."""

    def __init__(self, kind: str, id: str, reason: InvalidInput) -> None:
        self.can_be_replaced = kind not in _NEVER_REPLACED
        remedy = ""
        if reason.path == ("rev",):
            remedy = "; delete it and create it again"  # without it, concurrent changes can't be detected
        elif self.can_be_replaced:
            remedy = "; replace it (PUT, or hascheduler apply) or delete it"
        super().__init__(f"the stored {kind} {id!r} can't be read: {reason}{remedy}")


class InvalidBody(RequestValidationError):
    """A body that is wrong for ``model``, which is not the one that its route declares."""

    def __init__(self, errors: Sequence[Any], body: Any, model: type[BaseModel]) -> None:
        super().__init__(errors, body=body)
        self.model = model


def install(app: FastAPI) -> None:
    for kind, handler in _HANDLERS.items():
        app.add_exception_handler(kind, handler)


async def answer_to(request: Request, error: Exception) -> Response | None:
    """As FastAPI answers what `install` has given it; None for a defect."""
    for kind in type(error).__mro__:
        if kind in _HANDLERS:
            return await _HANDLERS[kind](request, error)
    return None


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, StarletteHTTPException)
    path = request.scope["path"]
    match error:
        case ProblemError():
            status, kind, detail, errors = error.status_code, error.kind, error.detail, error.errors
            return problem(status, kind, detail, errors=errors, headers=error.headers)
        case StarletteHTTPException(status_code=HTTPStatus.NOT_FOUND):
            return problem(error.status_code, "no-such-route", f"nothing is at {path}; see /docs")
        case StarletteHTTPException(status_code=HTTPStatus.METHOD_NOT_ALLOWED):
            allowed = ", ".join(_allowed_methods(request))
            detail = f"{request.method} is not for {path}; expected {allowed}"
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
    model = error.model if isinstance(error, InvalidBody) else _declared_body(request)
    return invalid([field_error(one, error.body, model) for one in found[:ERRORS_SHOWN_MAX]], len(found))


def _declared_body(request: Request) -> Any:
    field = request.scope["route"].body_field
    return None if field is None else field.field_info.annotation


def field_error(error: Mapping[str, Any], body: Any, model: Any) -> FieldError:
    """An error that pydantic found in ``body``, which should be a ``model``, in the words of this API."""
    where, *rest = error["loc"]
    if where != "body":
        body = None
    found = refused({**error, "loc": tuple(rest)}, body)
    if error["type"] == "extra_forbidden" and isinstance(model, type) and issubclass(model, BaseModel):
        found = with_known_names(found, model, body)
    return FieldError(found.path, found.problem, found.expected)


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
    log.warning("request_unanswered", method=request.method, path=request.scope["path"], reason=str(error))
    detail = "the database did not answer in time"
    headers = {"Retry-After": _RETRY_AFTER_S}
    away = problem(HTTPStatus.SERVICE_UNAVAILABLE, "unavailable", detail, headers=headers)
    return outcome_unknown(request.scope, detail) or away


async def _unreadable(request: Request, error: Exception) -> Response:
    assert isinstance(error, UnreadableDocument)
    if error.can_be_replaced:
        return problem(HTTPStatus.CONFLICT, "unreadable-document", str(error))
    return problem(HTTPStatus.INTERNAL_SERVER_ERROR, "unreadable-document", str(error))


_HANDLERS: Mapping[type, Callable[[Request, Exception], Awaitable[Response]]] = {
    StarletteHTTPException: _http,
    RequestValidationError: _validation,
    CallerError: _caller,
    WorldError: _world,
    UnreadableDocument: _unreadable,
}
