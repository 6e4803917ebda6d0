"""Reads a request's body within its limits: size, time, type, strict JSON, number of values.

`JsonRoute` is the route class of every route with a body; FastAPI goes on with the value, so that models and the
OpenAPI document work as usual. A body costs nothing until its sender is known to have the power to send it::

    caller ────► power ─────► type, declared size ─► bytes ──────────► values ────► fields
    identified   RequiredPower                       receive_bounded   in slices    the models

Small bodies of the routes that carry the load go `hascheduler.api.routing.short_path`, with the same limits.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from email.message import Message
from functools import cached_property
from http import HTTPStatus
from typing import Any

from fastapi import Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.types import Receive, Scope, Send

from hascheduler.api.http.limits import holding_of
from hascheduler.api.http.problems import ProblemError
from hascheduler.api.http.strict_json import VALUES_MAX, JsonReader, MalformedJson, Oversized, UnstorableJson
from hascheduler.api.middleware.auth import RequiredPower
from hascheduler.api.routing.time_slicing import run_in_slices

BODY_BYTES_MAX = 512 * 1024
LARGE_BODY_BYTES_MAX = 8 * 1024 * 1024
LARGE_VALUES_MAX = 100_000
_LARGE_CHARGED_MIN = 256 * 1024
MERGE_PATCH = "application/merge-patch+json"
_JSON = "application/json"
_BODY_PATIENCE_S = 10
_LENGTH_DIGITS_MAX = 20
# The rest of a refused body may never arrive; without this the connection would wait for it.
_CLOSE = {"Connection": "close"}


class JsonRoute(APIRoute):
    """A route whose body is strict JSON; anything else is refused with 400, 408, 413, 415 or 422.

    Where the body is optional, a request without one needs no content type either.
    """

    bytes_max = BODY_BYTES_MAX
    values_max = VALUES_MAX

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] in (self.methods or ()):
            self._check_head(Request(scope))
        await super().handle(scope, receive, send)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        if self.body_field is None:
            return handle

        async def handle_strictly(request: Request) -> Response:
            return await handle(_JsonRequest(request, self._may_be_empty, self.bytes_max, self.values_max))

        return handle_strictly

    def _check_head(self, request: Request) -> None:
        """Refuse what the head alone shows to be wrong, before the body is read."""
        for required in self._required_powers:
            required.check(request.state.caller)
        if self.body_field is not None and not (self._may_be_empty and _declares_nothing(request)):
            _require_json(request)
            _require_small(request, self.bytes_max)

    @cached_property
    def _required_powers(self) -> tuple[RequiredPower, ...]:
        return tuple(required_powers(self.dependant))

    @property
    def _may_be_empty(self) -> bool:
        return self.body_field is not None and not self.body_field.field_info.is_required()


class LargeJsonRoute(JsonRoute):
    """A route whose body may be larger. Its declared size is charged to a pool before a byte of it is read: 429 or 503
    where there is no room, so a flood of large bodies has a bound. A body without a declared size counts as the
    largest.
    """

    bytes_max = LARGE_BODY_BYTES_MAX
    values_max = LARGE_VALUES_MAX

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_within_share(request: Request) -> Response:
            declared = request.headers.get("content-length", "")
            size = int(declared) if declared.isdecimal() and len(declared) < _LENGTH_DIGITS_MAX else self.bytes_max
            units = min(max(size, _LARGE_CHARGED_MIN), self.bytes_max)
            with holding_of(request.scope).take("large_bodies", units):
                return await handle(request)

        return handle_within_share


class _JsonRequest(Request):
    def __init__(self, request: Request, may_be_empty: bool, bytes_max: int, values_max: int) -> None:
        super().__init__(request.scope, request.receive)
        self._bytes_max = bytes_max
        self._values_max = values_max
        self._may_be_empty = may_be_empty

    async def body(self) -> bytes:
        """The first byte: FastAPI asks only whether there is a body, and would keep all of it until the answer."""
        if not hasattr(self, "_read"):
            is_absent = self._may_be_empty and _declares_nothing(self)
            self._read = b"" if is_absent else await receive_bounded(self.receive, self._bytes_max)
        return self._read[:1]

    async def json(self) -> Any:
        await self.body()
        reader = JsonReader(self._read, self._values_max, 2 * self._bytes_max)
        self._read = self._read[:1]
        try:
            await run_in_slices(reader.steps())
        except Oversized as error:
            raise ProblemError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "body-too-large", f"the body holds {error}; send less at once"
            ) from None
        except MalformedJson as error:
            raise ProblemError(HTTPStatus.BAD_REQUEST, "malformed-json", f"the body is not JSON: {error}") from None
        except UnstorableJson as error:
            raise ProblemError(
                HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-request", str(error), errors=error.errors
            ) from None
        return reader.value


def required_powers(dependant: Dependant) -> Iterator[RequiredPower]:
    """The powers that a route with these dependencies demands of its caller."""
    if isinstance(dependant.call, RequiredPower):
        yield dependant.call
    for each in dependant.dependencies:
        yield from required_powers(each)


def _declares_nothing(request: Request) -> bool:
    return "transfer-encoding" not in request.headers and request.headers.get("content-length", "0") == "0"


def _require_json(request: Request) -> None:
    given = request.headers.get("content-type", "")
    if given == _JSON and "content-encoding" not in request.headers:  # the common case
        return
    header = Message()
    header["content-type"] = given
    charset = header.get_content_charset("utf-8")
    expected = (_JSON, MERGE_PATCH) if request.method == "PATCH" else (_JSON,)
    if header.get_content_type() not in expected or charset not in ("utf-8", "us-ascii"):
        given = request.headers.get("content-type", "not given")
        raise ProblemError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            "unsupported-media-type",
            f"the body's type is {given!r}; expected {' or '.join(expected)}",
            headers={"Accept": ", ".join(expected)},
        )
    if request.headers.get("content-encoding", "identity") != "identity":
        raise ProblemError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            "unsupported-media-type",
            "the body is encoded; expected it as it is, without Content-Encoding",
            headers={"Accept-Encoding": "identity"},
        )


def _require_small(request: Request, bytes_max: int) -> None:
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:20]) > bytes_max:
        raise _too_large(bytes_max)


async def receive_bounded(receive: Receive, bytes_max: int) -> bytes:
    """The body of a request; `ProblemError` where it is too large, too slow or empty, and `ClientDisconnect`."""
    body = bytearray()
    try:
        async with asyncio.timeout(_BODY_PATIENCE_S):
            async for piece in Request({"type": "http"}, receive).stream():
                body += piece
                if len(body) > bytes_max:
                    raise _too_large(bytes_max)
    except TimeoutError:
        raise ProblemError(
            HTTPStatus.REQUEST_TIMEOUT,
            "slow-request",
            f"the body came too slowly: it may take {_BODY_PATIENCE_S} s in all",
            headers=_CLOSE,
        ) from None
    if not body:
        raise ProblemError(HTTPStatus.BAD_REQUEST, "malformed-json", "the body is empty; expected a JSON object")
    return bytes(body)


def _too_large(bytes_max: int) -> ProblemError:
    return ProblemError(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        "body-too-large",
        f"the body is larger than {bytes_max} bytes",
        headers=_CLOSE,
    )
