"""Asks several shards the same, each by its own public route and with the caller's token, and makes one answer of all.

A refusal of one shard is the answer of all; a 503 has the shard's name before what it says. What a shard answers is
read with care: nothing that it may say is a defect here.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

import orjson
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hascheduler.api.http.problems import problem
from hascheduler.errors import InvalidInput
from hascheduler.shards.layout import Layout
from hascheduler.shards.peers import unanswered
from hascheduler.shards.place import Place, WholeAnswer, answer_of, ask_all

Body = Mapping[str, Any]
Merge = Callable[[Layout, Sequence[Place], Any, Scope, Receive, Send], Awaitable[None]]
"""Answers a request that is over all shards. It is given the layout, the shards with the home first, and the body."""

PATIENCE_S = 20.0
"""A shard that has not answered by then is one of which no replica answers: the request itself may take 30 s."""
STRANGE = (KeyError, TypeError, ValueError, AttributeError, IndexError, InvalidInput)
"""What reading an answer raises that is none of this release."""
_RETRY_AFTER = {"Retry-After": "2"}


async def part_of(
    place: Place, scope: Scope, receive: Receive, body: bytes = b"", patience_s: float | None = PATIENCE_S
) -> WholeAnswer:
    """Return that shard's answer to the request with this body, as it is and not encoded; one without an answer is 503
    with the shard's name."""
    headers = [each for each in scope["headers"] if each[0] not in (b"accept-encoding", b"content-length")]
    if body:
        headers.append((b"content-length", str(len(body)).encode()))
    part = {**scope, "headers": headers}
    try:
        async with asyncio.timeout(patience_s):
            answer = await answer_of(place, part, _replayed(body, receive))
    except (TimeoutError, ConnectionAbortedError):
        answer = WholeAnswer()
    return named(answer, place.name)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Return what gives the body, and after that tells that the client has left: several may wait for that."""
    is_given = False

    async def give() -> Message:
        nonlocal is_given
        if not is_given:
            is_given = True
            return {"type": "http.request", "body": body, "more_body": False}
        while (message := await receive())["type"] != "http.disconnect":
            pass
        return message

    return give


def whole(answer: Response) -> WholeAnswer:
    """Return an answer that is made here as if a shard had given it."""
    return WholeAnswer(answer.status_code, list(answer.raw_headers), [bytes(answer.body)])


def named(answer: WholeAnswer, shard: str) -> WholeAnswer:
    """Return a refusal with the name of the shard before what it says, if it is 503; all else as it is."""
    if not answer.status:
        return whole(unanswered(shard))
    if answer.status != HTTPStatus.SERVICE_UNAVAILABLE:
        return answer
    try:
        told = dict(orjson.loads(answer.body))
        if shard in told["detail"]:
            return answer
        told["detail"] = f"shard {shard}: {told['detail']}"
    except STRANGE:
        return whole(unanswered(shard))
    body = orjson.dumps(told)
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
    """Return what the shard says; a refusal as it is."""
    if answer.status >= HTTPStatus.BAD_REQUEST:
        return answer
    try:
        body = orjson.loads(answer.body)
    except orjson.JSONDecodeError:
        body = None
    return body if isinstance(body, dict) else whole(unfit(f"shard {shard}: what it answers can't be read"))


def refusal_in(answers: Sequence[Body | WholeAnswer]) -> WholeAnswer | None:
    """Return the refusal that tells the most: what is wrong with the request before who does not answer."""
    refused = [each for each in answers if isinstance(each, WholeAnswer)]
    return min(refused, key=lambda each: each.status == HTTPStatus.SERVICE_UNAVAILABLE, default=None)


def unfit(detail: str) -> Response:
    """Return 503 for an answer that another replica should not have given."""
    return problem(HTTPStatus.SERVICE_UNAVAILABLE, "shard-unanswered", detail, headers=_RETRY_AFTER)


def fitted(combine: Callable[[], Body], warnings: Sequence[bytes] = ()) -> Response:
    """Return what ``combine`` makes of the answers; 503 if they don't fit together."""
    try:
        answer = Response(orjson.dumps(combine()), media_type="application/json")
    except STRANGE:
        return unfit("the answers of the shards don't fit together: are all replicas of one release?")
    answer.raw_headers += [(b"warning", warning) for warning in dict.fromkeys(warnings)]
    return answer


def merged(combine: Callable[[Layout, Sequence[Body], Scope], Body]) -> Merge:
    """Return a `Merge` that asks all shards at once, and answers what ``combine`` makes of their bodies."""

    async def merge(
        layout: Layout, places: Sequence[Place], _body: Any, scope: Scope, receive: Receive, send: Send
    ) -> None:
        answers = await ask_all(part_of(place, scope, receive) for place in places)
        told = [read(answer, place.name) for place, answer in zip(places, answers, strict=True)]
        refused = refusal_in(told)
        if refused is not None:
            await refused.send(send)
            return
        bodies = [each for each in told if not isinstance(each, WholeAnswer)]
        warnings = [value for answer in answers for name, value in answer.headers if name == b"warning"]
        await fitted(lambda: combine(layout, bodies, scope), warnings)(scope, receive, send)

    return merge
