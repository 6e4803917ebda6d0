"""How OpenAPI tells of refusals."""

from http import HTTPStatus
from typing import Any

from hascheduler.api.problems import Problem

Responses = dict[int | str, dict[str, Any]]

_WORDS = {
    HTTPStatus.FORBIDDEN: "The token may not do this",
    HTTPStatus.FORBIDDEN: "The token may not do this",
    HTTPStatus.NOT_FOUND: "There is none by that name",
    HTTPStatus.CONFLICT: "It is not in the state that this was meant for, or others are changing it",
    HTTPStatus.PRECONDITION_FAILED: "The stored revision is not the one that If-Match names",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "The body is too large",
    HTTPStatus.UNPROCESSABLE_ENTITY: "Understood, but some fields are wrong",
    HTTPStatus.TOO_MANY_REQUESTS: "The tenant has asked for too much; `Retry-After` says when it may again",
}

ANY_REFUSAL: Responses = {
    "4XX": {"model": Problem, "description": "Refused; nothing was written"},
    "5XX": {"model": Problem, "description": "Not answered; with Retry-After where another try may succeed"},
}
NOT_MODIFIED: Responses = {304: {"description": "The revision that If-None-Match names is the stored one"}}


def refused(*statuses: int) -> Responses:
    return {status: {"model": Problem, "description": _WORDS[HTTPStatus(status)]} for status in statuses}
