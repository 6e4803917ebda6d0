"""Requests that the ring sends to its shards, and one answer made of those of several.

Each shard is asked by its own public route, with the caller's token. A refusal of one shard is the answer of all; if it
is 503, its detail begins with the shard's name. Whatever a shard answers, it is no defect here.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import orjson
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hascheduler.api.http.problems import problem
from hascheduler.api.middleware.auth import Caller
from hascheduler.errors import InvalidInput
from hascheduler.shards.layout import Layout
from hascheduler.shards.peers import in_doubt, unanswered
from hascheduler.shards.place import Place, WholeAnswer, ask_all

Body = Mapping[str, Any]
Exchange = tuple[Scope, Receive, Send]
Merge = Callable[[Layout, Sequence[Place], Any, Exchange], Awaitable[None]]
"""Answers a request to several shards. It is given the shards with the home first, and the body."""

PATIENCE_S = 20.0
"""How long a shard may take to answer: less than the 30 s of the request itself."""
STRANGE = (KeyError, TypeError, ValueError, AttributeError, IndexError, InvalidInput)
"""What reading the answer of another release raises."""
_TENANT_LENGTH_MAX = 256
_NOT_OF_PART = frozenset({b"content-length", b"transfer-encoding", b"accept-encoding"})
_NOT_OF_OWN = _NOT_OF_PART | {b"content-type", b"content-encoding", b"if-match", b"if-none-match", b"idempotency-key"}


# Requests


def own_request(scope: Scope, method: str, path: str, query: str = "", *, caller: Caller | None = None) -> Scope:
    """Return a request without a body that the caller of ``scope`` makes, or in shards that are hosted here another."""
    headers = [each for each in scope["headers"] if each[0] not in _NOT_OF_OWN]
    state = scope["state"] if caller is None else {**scope["state"], "caller": caller}
    asked = {"method": method, "path": path, "raw_path": quote(path, safe="/:~@").encode()}
    return {**scope, **asked, "query_string": query.encode(), "headers": headers, "state": state}


async def _stay() -> Message:
    await asyncio.Event().wait()
    raise AssertionError("nobody ends that")


def replayed(body: bytes = b"", receive: Receive = _stay) -> Receive:
    """Return a `Receive` that gives ``body``, and then that the client has left, for which several shards may wait.
    The client of an own request stays."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def give() -> Message:
        if left:
            return left.pop()
        while (message := await receive())["type"] != "http.disconnect":
            pass
        return message

    return give


def tenant_named(value: object) -> str | None:
    """Return the tenant that a field of a request names; None if it is absent, or if the shard will refuse it."""
    return value if isinstance(value, str) and 0 < len(value) <= _TENANT_LENGTH_MAX else None


async def answer_of(place: Place, scope: Scope, receive: Receive, patience_s: float | None = None) -> WholeAnswer:
    """Return the shard's answer, whole; 503 with its name if it breaks off or takes longer than ``patience_s``."""
    answer = WholeAnswer()
    try:
        async with asyncio.timeout(patience_s):
            await place.ask(scope, receive, answer.take)
    except (TimeoutError, ConnectionAbortedError):
        answer = WholeAnswer()
    if answer.status:
        return answer
    return whole(unanswered(place.name) if scope["method"] == "GET" else in_doubt(place.name, scope))


async def part_of(
    place: Place, scope: Scope, receive: Receive, body: bytes = b"", patience_s: float | None = PATIENCE_S
) -> WholeAnswer:
    """Return the shard's answer to the request with this body, not encoded."""
    headers = [each for each in scope["headers"] if each[0] not in _NOT_OF_PART]
    if body:
        headers.append((b"content-length", str(len(body)).encode()))
    return await answer_of(place, {**scope, "headers": headers}, replayed(body, receive), patience_s)


# Answers


def whole(answer: Response) -> WholeAnswer:
    """Return an answer made here as if a shard had given it."""
    return WholeAnswer(answer.status_code, list(answer.raw_headers), [bytes(answer.body)])


def named(answer: WholeAnswer, shard: str) -> WholeAnswer:
    """Return a refusal; if it is 503, with the shard's name in its detail."""
    if answer.status not in (0, HTTPStatus.SERVICE_UNAVAILABLE):
        return answer
    try:
        refusal = dict(orjson.loads(answer.body))
        if shard in refusal["detail"]:
            return answer
        refusal["detail"] = f"shard {shard}: {refusal['detail']}"
    except STRANGE:
        return whole(unanswered(shard))
    body = orjson.dumps(refusal)
    headers = [each for each in answer.headers if each[0] != b"content-length"]
    return WholeAnswer(answer.status, [*headers, (b"content-length", str(len(body)).encode())], [body])


def naming_refusals(shard: str, routes: ASGIApp) -> ASGIApp:
    """Return the routes of that shard, whose answers of status 503 have its name before what they say."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        refused = WholeAnswer()

        async def pass_on(message: Message) -> None:
            if message.get("status", refused.status) != HTTPStatus.SERVICE_UNAVAILABLE:
                await send(message)
                return
            await refused.take(message)
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                await named(refused, shard).send(send)

        await routes(scope, receive, pass_on)

    return answer


def read(answer: WholeAnswer, shard: str) -> Body | WholeAnswer:
    """Return the body of the shard's answer, or its refusal."""
    if answer.status >= HTTPStatus.BAD_REQUEST:
        return named(answer, shard)
    try:
        body = orjson.loads(answer.body)
    except orjson.JSONDecodeError:
        body = None
    return body if isinstance(body, dict) else unfit(f"shard {shard}: its answer can't be read")


def refusal_in(answers: Sequence[Body | WholeAnswer]) -> WholeAnswer | None:
    """Return a refusal of one shard; one because of the request before a 503."""
    refused = [each for each in answers if isinstance(each, WholeAnswer)]
    return min(refused, key=lambda each: each.status == HTTPStatus.SERVICE_UNAVAILABLE, default=None)


def unfit(
    detail: str = "the answers of the shards don't fit together: are all replicas of one release?",
) -> WholeAnswer:
    return whole(problem(HTTPStatus.SERVICE_UNAVAILABLE, "shard-unanswered", detail, headers={"Retry-After": "2"}))


def fitted(combine: Callable[[], Body], answers: Sequence[WholeAnswer] = ()) -> WholeAnswer:
    """Return what ``combine`` returns, with the warnings of ``answers``; 503 if they don't fit together."""
    try:
        answer = whole(Response(orjson.dumps(combine()), media_type="application/json"))
    except STRANGE:
        return unfit()
    answer.headers += dict.fromkeys(header for each in answers for header in each.headers if header[0] == b"warning")
    return answer


def merged(combine: Callable[[Layout, Sequence[Body], Scope], Body]) -> Merge:
    """Return a `Merge` that asks all shards at once, and answers what ``combine`` makes of their bodies."""

    async def merge(layout: Layout, places: Sequence[Place], _body: Any, exchange: Exchange) -> None:
        scope, receive, send = exchange
        answers = await ask_all(part_of(place, scope, receive) for place in places)
        found = [read(answer, place.name) for place, answer in zip(places, answers, strict=True)]
        bodies = [each for each in found if not isinstance(each, WholeAnswer)]
        answer = refusal_in(found) or fitted(lambda: combine(layout, bodies, scope), answers)
        await answer.send(send)

    return merge
