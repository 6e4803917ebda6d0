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
_BODY_PATIENCE_S = 10
# The rest of a refused body may never come; without this the connection would wait for it.
_CLOSE = {"Connection": "close"}


class JsonRoute(APIRoute):
    """A route whose body is strict JSON, or refused with 400, 408, 413, 415 or 422."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_strictly(request: Request) -> Response:
            return await handle(_JsonRequest(request.scope, request.receive))

        return handle_strictly


class _JsonRequest(Request):
    async def body(self) -> bytes:
        if not hasattr(self, "_read"):
            _demand_json(self)
            self._read = await _bounded(self)
        return self._read

    async def json(self) -> Any:
        try:
            return read_json(await self.body())
        except MalformedJson as error:
            raise Refusal(HTTPStatus.BAD_REQUEST, "malformed-json", f"the body is not JSON: {error}") from None
        except UnstorableJson as error:
            raise Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-request", str(error), errors=error.errors) from None


def _demand_json(request: Request) -> None:
    header = Message()
    header["content-type"] = request.headers.get("content-type", "")
    charset = header.get_content_charset("utf-8")
    if header.get_content_type() != "application/json" or charset not in ("utf-8", "us-ascii"):
        raise Refusal(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            "unsupported-media-type",
            f"the body's type is {request.headers.get('content-type', 'not given')!r}; expected application/json",
            headers={"Accept": "application/json"},
        )
    if request.headers.get("content-encoding", "identity") != "identity":
        raise Refusal(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            "unsupported-media-type",
            "the body is encoded; expected it as it is, without Content-Encoding",
            headers={"Accept-Encoding": "identity"},
        )


async def _bounded(request: Request) -> bytes:
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:20]) > BODY_BYTES_MAX:
        raise _too_large()
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(_BODY_PATIENCE_S):
            async for chunk in request.stream():
                size += len(chunk)
                if size > BODY_BYTES_MAX:
                    raise _too_large()
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


def _too_large() -> Refusal:
    return Refusal(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        "body-too-large",
        f"the body is larger than {BODY_BYTES_MAX} bytes",
        headers=_CLOSE,
    )
