"""Requests that the ring sends to its shards, and one answer made of several.

Each shard is asked by its own public route, with the caller's token. A refusal of one shard is the answer of all; if it
is 503, its detail begins with the shard's name. No answer of a shard, however wrong, is treated as a defect here.

In an answer about the whole cluster the replicas, leader, journal and stream are those of the home, and each shard has
a row. A shard without a replica that answers is shown as such, and hides no other.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import orjson
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hascheduler.api.http.problems import problem
from hascheduler.api.middleware.auth import Caller
from hascheduler.api.ops.health_rules import summary_of
from hascheduler.api.ui.live import BUSIEST_MAX
from hascheduler.errors import InvalidInput
from hascheduler.shards.layout import Layout
from hascheduler.shards.peers import Place, WholeAnswer, ask_all, in_doubt, unanswered

Body = Mapping[str, Any]
Exchange = tuple[Scope, Receive, Send]
Merge = Callable[[Layout, Sequence[Place], Any, Exchange], Awaitable[None]]
"""Answers a request to several shards; it is given the shards with the home first, and the body."""

PATIENCE_S = 20.0
"""How long a shard may take to answer: less than the 30 s of the request itself."""
STRANGE = (KeyError, TypeError, ValueError, AttributeError, IndexError, InvalidInput)
"""The errors that reading the answer of another release may raise."""
_TENANT_LENGTH_MAX = 256
_NOT_OF_PART = frozenset({b"content-length", b"transfer-encoding", b"accept-encoding"})
_NOT_OF_OWN = _NOT_OF_PART | {b"content-type", b"content-encoding", b"if-match", b"if-none-match", b"idempotency-key"}


# Requests


def own_request(scope: Scope, method: str, path: str, query: str = "", *, caller: Caller | None = None) -> Scope:
    """Return a request without a body by the caller of ``scope``, or by another ``caller`` for shards hosted here."""
    headers = [each for each in scope["headers"] if each[0] not in _NOT_OF_OWN]
    state = scope["state"] if caller is None else {**scope["state"], "caller": caller}
    asked = {"method": method, "path": path, "raw_path": quote(path, safe="/:~@").encode()}
    return {**scope, **asked, "query_string": query.encode(), "headers": headers, "state": state}


async def stay() -> Message:
    """Wait forever, as for a client that never leaves."""
    await asyncio.Event().wait()
    raise AssertionError("an event that is never set")


def replayed(body: bytes = b"", receive: Receive = stay) -> Receive:
    """Return a `Receive` of ``body`` and then of the client's leaving, for which several shards may wait.

    Without ``receive`` the client never leaves, as in an own request.
    """
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
    """Return the shard's whole answer; 503 with its name if it breaks off or takes longer than ``patience_s``."""
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
    """Return an answer made here in the form of a shard's answer."""
    return WholeAnswer(answer.status_code, list(answer.raw_headers), [bytes(answer.body)])


def named(answer: WholeAnswer, shard: str) -> WholeAnswer:
    """Return a refusal, with the shard's name in its detail if it is 503."""
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
    """Return the routes of that shard, which put its name at the start of the detail of each 503."""

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
    """Return the refusal of one shard; prefer one that is not 503, as it is about the request."""
    refused = [each for each in answers if isinstance(each, WholeAnswer)]
    return min(refused, key=lambda each: each.status == HTTPStatus.SERVICE_UNAVAILABLE, default=None)


def unfit(
    detail: str = "the shards' answers don't match: do all replicas run the same release?",
) -> WholeAnswer:
    return whole(problem(HTTPStatus.SERVICE_UNAVAILABLE, "shard-unanswered", detail, headers={"Retry-After": "2"}))


def fitted(combine: Callable[[], Body], answers: Sequence[WholeAnswer] = ()) -> WholeAnswer:
    """Return the result of ``combine``, with the warnings of ``answers``; 503 if they don't fit together."""
    try:
        answer = whole(Response(orjson.dumps(combine()), media_type="application/json"))
    except STRANGE:
        return unfit()
    answer.headers += dict.fromkeys(header for each in answers for header in each.headers if header[0] == b"warning")
    return answer


def merged(combine: Callable[[Layout, Sequence[Body], Scope], Body]) -> Merge:
    """Return a `Merge` that asks all shards at once and answers with ``combine`` of their bodies."""

    async def merge(layout: Layout, places: Sequence[Place], _body: Any, exchange: Exchange) -> None:
        scope, receive, send = exchange
        answers = await ask_all(part_of(place, scope, receive) for place in places)
        found = [read(answer, place.name) for place, answer in zip(places, answers, strict=True)]
        bodies = [each for each in found if not isinstance(each, WholeAnswer)]
        answer = refusal_in(found) or fitted(lambda: combine(layout, bodies, scope), answers)
        await answer.send(send)

    return merge


_PATIENCE_S = 5.0
_QUARANTINE_MAX = 100
_OF_ROW = ("leader", "unready_reason", "stream_lag_ms", "journal_seq")
_READ = frozenset({*_OF_ROW, "leading", "replicas", "counts", "findings", "mirrors_differ", "quarantine", "health"})
_UNANSWERED = "no replica that hosts it answers"
_NO_LEADER_OF_SHARD = {"severity": "page", "rule": "leader", "runbook": "HaschedulerShardWithoutLeader"}
_LIVE = ("pending", "dispatched", "running")


async def cluster(_: Layout, places: Sequence[Place], _body: Any, exchange: Exchange) -> None:
    """Answer as the home does, with a row for each shard."""
    scope, receive, send = exchange
    of_processors = {**scope, "path": "/v1/processors", "raw_path": b"/v1/processors", "query_string": b""}
    answers = await ask_all(
        part_of(place, part, receive, patience_s=_PATIENCE_S) for part in (scope, of_processors) for place in places
    )
    answer = answers[0]
    if answer.status == HTTPStatus.OK:
        names = [place.name for place in places]
        found = [read(each, name) for each, name in zip(answers, [*names, *names], strict=True)]
        bodies = [None if isinstance(each, WholeAnswer) else each for each in found]
        answer = fitted(lambda: cluster_as_one(names, bodies[: len(names)], bodies[len(names) :]))
    await answer.send(send)


def cluster_as_one(names: Sequence[str], own: Sequence[Body | None], served: Sequence[Body | None]) -> Body:
    """Return the cluster of all shards; raise `KeyError` if the home does not answer.

    ``own`` has each shard's answer about itself, ``served`` about its processors; None if it does not answer.
    """
    home: Body = own[0] or {}
    own_name = next((each["name"] for each in home["replicas"] if each["id"] == home["replica_id"]), None)
    known = [each if each is not None and each.keys() >= _READ else None for each in own]
    rows = [_row(*each, own_name) for each in zip(names, known, served, strict=True)]
    answered = [each for each in known if each is not None]
    scanned = [each["findings"] for each in answered if each["findings"] is not None]
    counts = {"counts": sums(each["counts"] for each in scanned)}
    return {
        **home,
        "leading": any(row["leading"] for row in rows),
        "counts": {**sums(each["counts"] for each in answered), "definitions": home["counts"].get("definitions", 0)},
        "findings": {"at": min(each["at"] for each in scanned), **counts} if scanned else None,
        "mirrors_differ": sorted({name for each in answered for name in each["mirrors_differ"]}),
        "quarantine": [document for each in answered for document in each["quarantine"]][:_QUARANTINE_MAX],
        "shards": rows,
        "health": _health(names, known),
    }


def _row(name: str, own: Body | None, served: Body | None, own_name: object) -> Body:
    followers = [] if own is None else [each["name"] for each in own["replicas"] if each["alive"]]
    shown = own or {**dict.fromkeys(_OF_ROW), "unready_reason": _UNANSWERED}
    is_here = own_name in followers
    return {
        **{field: shown[field] for field in _OF_ROW},
        "name": name,
        "ready": not shown["unready_reason"],
        # Another replica may have answered, and may lead it.
        "leading": is_here and bool(shown["leading"]),
        "processors": 0 if served is None else sum(bool(each.get("alive")) for each in served["items"]),
        "counts": {state: count for state, count in shown.get("counts", {}).items() if state != "definitions"},
        "followers": followers,
        "followed": is_here,
    }


def sums(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(total)


def processors(answers: Sequence[Body]) -> Body:
    """Return the processors of all shards; a drained name is absent if no shard has a processor of that name."""
    items = sorted((item for each in answers for item in each["items"]), key=lambda item: str(item["id"]))
    there, drained = {item["name"] for item in items}, answers[0]["absent"]
    return {**answers[0], "items": items, "absent": [each for each in drained if each["name"] not in there]}


def failovers(answers: Sequence[Body], limit: int) -> Body:
    items = [item for answer in answers for item in answer["items"]]
    return {"items": sorted(items, key=lambda item: str(item["deciding_at"]), reverse=True)[:limit]}


def picture_as_one(names: Sequence[str], answers: Sequence[Body | None]) -> Body:
    """Return the live picture of all shards; None stands for a missing or old one, `KeyError` if the home's."""
    home: Body = answers[0] or {}
    answered = [each for each in answers if each is not None]
    served = [each and each["processors"] for each in answers]
    return {
        **home,
        "cluster": cluster_as_one(names, [each and each["cluster"] for each in answers], served),
        "processors": home["processors"] and processors([each for each in served if each is not None]),
        "slots": sums(each["slots"] for each in answered),
        "numbers": _numbers([each["numbers"] for each in answered]),
        "lanes": _busiest([each["lanes"] for each in answered]),
        "tenants": _busiest([each["tenants"] for each in answered]),
    }


def _numbers(answers: Sequence[Body]) -> Body:
    waits = [each["oldest_wait_ms"] for each in answers]
    return {
        **{name: sum(each[name] for each in answers) for name in _LIVE},
        "oldest_wait_ms": max((wait_ms for wait_ms in waits if wait_ms is not None), default=None),
        "per_minute": sums(each["per_minute"] for each in answers),
    }


def _health(names: Sequence[str], own: Sequence[Body | None]) -> Body:
    """Return the verdict on all shards: each problem once, those of other shards than the home with the shard's name.

    Raise `KeyError` if the home does not answer.
    """
    home: Body = (own[0] or {})["health"]
    problems: dict[str, Body] = {}
    unchecked: list[Body] = []
    healths = [each and each["health"] for each in own]
    for index, (name, health) in enumerate(zip(names, healths, strict=True)):
        if health is None:
            text = f"No replica that hosts shard {name} answers: its jobs and schedules are not shown."
            problems[text] = {"evidence": None, "since": None, "link": None, **_NO_LEADER_OF_SHARD, "text": text}
        else:
            of_shard = f" (shard {name})" if index else ""
            unchecked += [{**one, "rule": one["rule"] + of_shard} for one in health["unchecked"]]
            for problem in health["problems"]:
                text = f"{problem['text'].removesuffix('.')}{of_shard}."
                if index and problem["rule"] == _NO_LEADER_OF_SHARD["rule"]:
                    text = f"No replica leads shard {name}: its schedules do not fire and its jobs do not start."
                    problems[text] = {**problem, **_NO_LEADER_OF_SHARD, "text": text}
                elif problem["text"] not in problems:
                    problems[text] = {**problem, "text": text}
    ordered = sorted(problems.values(), key=lambda each: each["severity"] != "page")
    known = [each for each in healths if each is not None]
    counts = {name: [each["counts"][name] for each in healths if each] for name in home["counts"]}
    return {
        **home,
        **summary_of([(each["severity"], each["text"]) for each in ordered], [each["rule"] for each in unchecked]),
        "problems": ordered,
        "checked": [rule for rule in home["checked"] if all(rule in each["checked"] for each in known)],
        "unchecked": unchecked,
        "counts": {
            name: None if None in each or len(each) < len(names) else sum(each) for name, each in counts.items()
        },
    }


def _busiest(answers: Sequence[Body | None]) -> Body | None:
    known = [each for each in answers if each is not None]
    if len(known) < len(answers):
        return None
    by_name: dict[str, dict[str, Any]] = {}
    for item in (item for each in known for item in each["items"]):
        total = by_name.setdefault(item["name"], {**item, **dict.fromkeys(_LIVE, 0)})
        total |= {state: total[state] + item[state] for state in _LIVE}
        if "waited_ms" in item:
            total["waited_ms"] = max((total["waited_ms"], item["waited_ms"]), key=lambda ms: -1 if ms is None else ms)
    items = sorted(by_name.values(), key=lambda item: (-sum(item[state] for state in _LIVE), item["name"]))
    whole = len(items) <= BUSIEST_MAX and all(each["whole"] for each in known)
    return {"items": items[:BUSIEST_MAX], "whole": whole}
