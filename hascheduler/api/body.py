"""Reads a request's body within its limits: size, time, type and strict JSON.

`JsonRoute` is the route class of everything that takes a body; FastAPI goes on with the value, so that the models
and the OpenAPI document stay its business.
"""

import asyncio
from collections.abc import Callable, Coroutine
from email.message import Message
from http import HTTPStatus
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from hascheduler.api.json_text import MalformedJson, UnstorableJson, read_json
from hascheduler.api.problems import Refusal

BODY_BYTES_MAX = 512 * 1024
LARGE_BODY_BYTES_MAX = 8 * 1024 * 1024
LARGE_AT_ONCE_MAX = 4
MERGE_PATCH = "application/merge-patch+json"
_JSON = "application/json"
_BODY_PATIENCE_S = 10
# The rest of a refused body may never come; without this the connection would wait for it.
_CLOSE = {"Connection": "close"}


class JsonRoute(APIRoute):
    """A route whose body is strict JSON, or refused with 400, 408, 413, 415 or 422.

    Where the body may be left out, a request without one needs no content type either.
    """

    bytes_max = BODY_BYTES_MAX

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        may_be_empty = self.body_field is not None and not self.body_field.field_info.is_required()

        async def handle_strictly(request: Request) -> Response:
            return await handle(_JsonRequest(request, may_be_empty, self.bytes_max))

        return handle_strictly


class LargeJsonRoute(JsonRoute):
    """One whose body may be larger; a few of those at once, so that a flood of them stays small enough."""

    bytes_max = LARGE_BODY_BYTES_MAX

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        room = asyncio.Semaphore(LARGE_AT_ONCE_MAX)

        async def handle_in_turn(request: Request) -> Response:
            async with room:
                return await handle(request)

        return handle_in_turn


class _JsonRequest(Request):
    def __init__(self, request: Request, may_be_empty: bool, bytes_max: int) -> None:
        super().__init__(request.scope, request.receive)
        self._bytes_max = bytes_max
        self._may_be_empty = may_be_empty

    async def body(self) -> bytes:
        if not hasattr(self, "_read"):
            self._read = b"" if self._may_be_empty and _declares_nothing(self) else await self._demanded()
        return self._read

    async def _demanded(self) -> bytes:
        _demand_json(self)
        return await _bounded(self, self._bytes_max)

    async def json(self) -> Any:
        try:
            return read_json(await self.body())
        except MalformedJson as error:
            raise Refusal(HTTPStatus.BAD_REQUEST, "malformed-json", f"the body is not JSON: {error}") from None
        except UnstorableJson as error:
            raise Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-request", str(error), errors=error.errors) from None


def _declares_nothing(request: Request) -> bool:
    return "transfer-encoding" not in request.headers and request.headers.get("content-length", "0") == "0"


def _demand_json(request: Request) -> None:
    given = request.headers.get("content-type", "")
    if given == _JSON and "content-encoding" not in request.headers:  # nearly always
        return
    header = Message()
    header["content-type"] = given
    charset = header.get_content_charset("utf-8")
    expected = (_JSON, MERGE_PATCH) if request.method == "PATCH" else (_JSON,)
    if header.get_content_type() not in expected or charset not in ("utf-8", "us-ascii"):
        given = request.headers.get("content-type", "not given")
        raise Refusal(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            "unsupported-media-type",
            f"the body's type is {given!r}; expected {' or '.join(expected)}",
            headers={"Accept": ", ".join(expected)},
        )
    if request.headers.get("content-encoding", "identity") != "identity":
        raise Refusal(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            "unsupported-media-type",
            "the body is encoded; expected it as it is, without Content-Encoding",
            headers={"Accept-Encoding": "identity"},
        )


async def _bounded(request: Request, bytes_max: int) -> bytes:
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:20]) > bytes_max:
        raise _too_large(bytes_max)
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(_BODY_PATIENCE_S):
            async for chunk in request.stream():
                size += len(chunk)
                if size > bytes_max:
                    raise _too_large(bytes_max)
                chunks.append(chunk)
    except TimeoutError:
        raise Refusal(
            HTTPStatus.REQUEST_TIMEOUT,
            "slow-request",
            f"the body took longer than {_BODY_PATIENCE_S} s",
            headers=_CLOSE,
        ) from None
    if size == 0:
        raise Refusal(HTTPStatus.BAD_REQUEST, "malformed-json", "the body is empty; expected a JSON object")
    return b"".join(chunks)


def _too_large(bytes_max: int) -> Refusal:
    return Refusal(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        "body-too-large",
        f"the body is larger than {bytes_max} bytes",
        headers=_CLOSE,
    )
