"""Every refusal as RFC 9457 problem+json: the model, the exception, the one builder, and the responses in OpenAPI.

``type`` is a URN that programs may compare, ``detail`` is for people, ``errors`` names each field that is wrong.
"""

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response

from hascheduler.errors import InvalidInput
from hascheduler.model.values.redaction import redacted_beginning

MEDIA_TYPE = "application/problem+json"
ERRORS_SHOWN_MAX = 50
ERRORS_LENGTH_MAX = 16_000
"""The most characters of all errors of one response together. Further errors are left out."""
_PATH_PART_SHOWN_MAX = 128
_TEXT_SHOWN_MAX = 1_000

Path = tuple[str | int, ...]


class FieldErrorDetails(BaseModel):
    """A wrong field."""

    path: str = Field(description="The path of the field, from the top of the body", examples=["trigger.every"])
    problem: str = Field(description="The problem", examples=["'0s' is too short"])
    expected: str = Field(description="What is expected", examples=["at least 100ms"])


class ProblemDetails(BaseModel):
    """RFC 9457 problem details."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:hascheduler:problem:invalid-request",
                    "title": "Unprocessable Entity",
                    "status": 422,
                    "detail": "trigger.every: '0s' is too short; expected at least 100ms",
                    "errors": [{"path": "trigger.every", "problem": "'0s' is too short", "expected": "at least 100ms"}],
                }
            ]
        }
    )

    type: str = Field(description="The type, urn:hascheduler:problem:…, for programs")
    title: str = Field(description="The name of the status code")
    status: int = Field(description="The status code of the response")
    detail: str = Field(description="The error in a sentence, for people")
    errors: list[FieldErrorDetails] = Field(default=[], description="The wrong fields, if any")
    id: str | None = Field(
        default=None, description="For `outcome-unknown`: the id to look up to find out if the request was carried out"
    )


class ProblemError(HTTPException):
    """The refusal of a request where no response can be returned, such as while its body is read."""

    def __init__(
        self,
        status: HTTPStatus,
        kind: str,
        detail: str,
        *,
        errors: Sequence[InvalidInput] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(status, detail, dict(headers) if headers else None)
        self.kind = kind
        self.errors = tuple(errors)

    def response(self, **headers: str) -> Response:
        """Return the response, with these headers besides its own."""
        all_headers = {**(self.headers or {}), **headers}
        return problem(self.status_code, self.kind, self.detail, errors=self.errors, headers=all_headers)


def problem(
    status: int,
    kind: str,
    detail: str,
    *,
    errors: Sequence[InvalidInput] = (),
    headers: Mapping[str, str] | None = None,
    id: str | None = None,
) -> Response:
    body = problem_body(status, kind, detail, errors) | ({} if id is None else {"id": id})
    return Response(json.dumps(body), status, dict(headers) if headers else None, MEDIA_TYPE)


def problem_body(
    status: int,
    kind: str,
    detail: str,
    errors: Sequence[InvalidInput] = (),
    *,
    errors_length_max: int = ERRORS_LENGTH_MAX,
) -> dict[str, Any]:
    """Return the body of a `problem`. It holds at least the first error."""
    body: dict[str, Any] = {
        "type": f"urn:hascheduler:problem:{kind}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": _sendable(detail),
    }
    shown: list[dict[str, str]] = []
    length = 0
    for error in errors[:ERRORS_SHOWN_MAX]:
        one = {
            "path": _sendable(path_text(error.path)),
            "problem": _sendable(error.problem),
            "expected": _sendable(error.expected),
        }
        length += sum(map(len, one.values()))
        if shown and length > errors_length_max:
            break
        shown.append(one)
    if shown:
        body["errors"] = shown
    return body


def invalid_fields(errors: Sequence[InvalidInput], count: int = 1) -> ProblemError:
    """Return the 422 for fields that are wrong. ``count`` is their number if ``errors`` has only some."""
    more = f" (and {count - 1} more)" if count > 1 else ""
    detail = f"{error_text(errors[0])}{more}"
    return ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-request", detail, errors=errors)


def error_text(error: InvalidInput) -> str:
    """Return the error in a sentence, in which no part of the path is long or secret."""
    where = f"{path_text(error.path)}: " if error.path else ""
    return f"{where}{error.problem}" + (f"; expected {error.expected}" if error.expected else "")


def path_text(path: Path) -> str:
    return ".".join(redacted_beginning(str(part), _PATH_PART_SHOWN_MAX).removesuffix("…") for part in path)


def _sendable(text: str) -> str:
    """Return ``text`` shortened, without secrets, and without lone surrogates.

    UTF-8 can't encode those, and the text may quote a request that was refused for them.
    """
    shown = redacted_beginning(text, _TEXT_SHOWN_MAX)
    return shown if shown.isascii() else shown.encode("utf-8", "backslashreplace").decode()


Responses = dict[int | str, dict[str, Any]]

_DESCRIPTIONS = {
    HTTPStatus.FORBIDDEN: "The token's role or tenant does not allow it",
    HTTPStatus.NOT_FOUND: "Nothing has that name or id",
    HTTPStatus.CONFLICT: "The name is taken, the state does not allow it, or other requests are changing it",
    HTTPStatus.PRECONDITION_FAILED: "The stored revision is not the one in If-Match",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "The body is too large",
    HTTPStatus.UNPROCESSABLE_ENTITY: "Some fields are wrong",
    HTTPStatus.TOO_MANY_REQUESTS: "A limit of the tenant is reached; retry after `Retry-After`",
}

ANY_PROBLEM: Responses = {
    "4XX": {"model": ProblemDetails, "description": "Refused; nothing was written"},
    "5XX": {"model": ProblemDetails, "description": "Failed; with Retry-After if a retry may succeed"},
}
NOT_MODIFIED: Responses = {304: {"description": "The stored revision is the one in If-None-Match"}}


def problem_responses(*statuses: int) -> Responses:
    return {status: {"model": ProblemDetails, "description": _DESCRIPTIONS[HTTPStatus(status)]} for status in statuses}
