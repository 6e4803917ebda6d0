"""Requests that the ring makes itself, or has read before it passes them on."""

import asyncio
from http import HTTPStatus
from urllib.parse import quote

from starlette.types import Message, Receive, Scope

from hascheduler.api.http.problems import ProblemError, problem
from hascheduler.api.middleware.auth import Caller
from hascheduler.shards.place import Place, WholeAnswer, answer_of

_TENANT_LENGTH_MAX = 256
NOT_OF_PARTS = frozenset({b"content-length", b"transfer-encoding", b"accept-encoding"})
"""Headers that are not those of a part of a request: its body is another, and its answer is read here."""
_NOT_OF_OWN = NOT_OF_PARTS | {b"content-type", b"content-encoding", b"if-match", b"if-none-match", b"idempotency-key"}


def own_request(scope: Scope, method: str, path: str, query: str = "", *, caller: Caller | None = None) -> Scope:
    """Return a request without a body that the caller of ``scope`` makes, or in shards that are hosted here another."""
    headers = [each for each in scope["headers"] if each[0] not in _NOT_OF_OWN]
    state = scope["state"] if caller is None else {**scope["state"], "caller": caller}
    asked = {"method": method, "path": path, "raw_path": quote(path, safe="/:~@").encode()}
    return {**scope, **asked, "query_string": query.encode(), "headers": headers, "state": state}


async def kept_answer(place: Place, scope: Scope, receive: Receive) -> WholeAnswer:
    """Return that shard's answer, whole; if it breaks off, or no room is left on the way there, a refusal."""
    answer = WholeAnswer()
    try:
        answer = await answer_of(place, scope, receive)
        if answer.status:
            return answer
        raise ConnectionAbortedError
    except ProblemError as error:
        refusal = problem(error.status_code, error.kind, error.detail, headers=error.headers)
    except ConnectionAbortedError:
        detail = f"shard {place.name} broke off its answer; whether it was carried out is unknown"
        refusal = problem(HTTPStatus.SERVICE_UNAVAILABLE, "shard-unanswered", detail, headers={"Retry-After": "2"})
    await refusal(scope, receive, answer.take)
    return answer


def replayed(body: bytes, receive: Receive) -> Receive:
    """Return a `Receive` that gives ``body``, which has been read, and then what follows it."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return left.pop() if left else await receive()

    return again


def no_body() -> Receive:
    """Return the `Receive` of an own request, whose client does not leave."""

    async def nothing_more() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    return replayed(b"", nothing_more)


def tenant_named(value: object) -> str | None:
    """Return the tenant that a field of a request names; None if it is absent, or whoever gets it refuses it."""
    return value if isinstance(value, str) and 0 < len(value) <= _TENANT_LENGTH_MAX else None
