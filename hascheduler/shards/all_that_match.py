"""Changes of all jobs or schedules that match, in one shard after the other.

All shards count first, and what people agreed to (``expected``) is compared with the sum. Then each shard changes what
matches in it, until one has more left than a request may do, or the time is over. A caller repeats the request with
``next``:

* of jobs, ``next`` is an instant, the same for every shard: what a shard has done already no longer matches there;
* of schedules, which are changed by name, it is ``SHARD~NAME``: the index of a shard and the name to go on after.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import Any

import orjson
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from hascheduler.api.http.problems import problem
from hascheduler.api.jobs.all_that_match import (
    BUSY_MS_MAX,
    CHANGED_MAX,
    ChangedResponse,
    SomeBody,
    counted_only,
    require_expected,
)
from hascheduler.api.middleware.audit import AuditNote
from hascheduler.errors import Conflict
from hascheduler.shards.answers import STRANGE, Body, part_of, read, refusal_in, unfit
from hascheduler.shards.layout import Layout
from hascheduler.shards.place import Place, WholeAnswer, ask_all
from hascheduler.wire.fields import instant_text

Position = tuple[int, Any]
"""The index of the shard to go on in, and ``after`` for the request to it."""


class _ByInstant:
    """Of jobs: every shard is asked again, and leaves alone what came after the instant."""

    def begin(self, after: Any, scope: Scope, shards: int) -> Position:
        return 0, instant_text(scope["state"]["services"].clock.wall_ms()) if after is None else after

    def next_shard(self, position: Position) -> Position:
        return position[0] + 1, position[1]

    def text(self, position: Position, told: Any) -> str:
        return str(position[1])


class _ByName:
    """Of schedules."""

    def begin(self, after: Any, scope: Scope, shards: int) -> Position:
        index, mark, name = after.partition("~") if isinstance(after, str) else ("", "", "")
        if mark and index.isascii() and index.isdecimal() and int(index) < shards:
            return int(index), name or None
        return 0, after  # a name alone is one of a deployment that had one shard then; all else is refused there

    def next_shard(self, position: Position) -> Position:
        return position[0] + 1, None

    def text(self, position: Position, told: Any) -> str:
        return f"{position[0]}~{position[1] or '' if told is None else told}"


async def _change(  # noqa: PLR0917  # a `Merge`, once it has its steps
    steps: _ByInstant | _ByName,
    layout: Layout,
    places: Sequence[Place],
    body: Any,
    scope: Scope,
    receive: Receive,
    send: Send,
) -> None:
    if not isinstance(body, dict):
        await places[0].ask(scope, receive, send)  # which says what is wrong
    else:
        ask = partial(_asked, scope=scope, receive=receive)
        position = steps.begin(body.get("after"), scope, len(places))
        try:
            answer = await _changed(steps, ask, places, body, position)
        except STRANGE:
            answer = unfit("the answers of the shards don't fit together: are all replicas of one release?")
        # Here too if other replicas have recorded their parts.
        scope["state"].setdefault("audit_note", AuditNote()).unaudited = body.get("dry_run") is True
        await answer.send(send) if isinstance(answer, WholeAnswer) else await answer(scope, receive, send)


async def _changed(
    steps: _ByInstant | _ByName, ask: Callable[..., Any], places: Sequence[Place], body: Body, position: Position
) -> Response | WholeAnswer:
    counted = await ask_all(ask(place, {**body, "dry_run": True, "after": position[1]}) for place in places)
    refused = refusal_in(counted)
    if refused is not None:
        return refused
    answer = counted_only(sum(each["matched"] for each in counted), exact=all(each["exact"] for each in counted))
    if body.get("dry_run") is True:
        return _shown(answer)
    if body.get("after") is None:
        try:
            require_expected(answer, SomeBody.model_construct(expected=body.get("expected")))
        except Conflict as error:
            return problem(HTTPStatus.CONFLICT, "conflict", str(error))
    loop = asyncio.get_running_loop()
    until = loop.time() + BUSY_MS_MAX / 1_000
    told: Any = None
    while position[0] < len(places):
        one = await ask(places[position[0]], {**body, "expected": None, "after": position[1]})
        if isinstance(one, WholeAnswer):
            if not answer.changed and not answer.asked_to_stop:
                return one
            break  # what was changed is told; whoever repeats it gets the refusal
        _add(answer, one)
        told = one["next"]
        if not one["complete"]:
            break
        position = steps.next_shard(position)
        told = None
        if answer.changed + answer.asked_to_stop >= CHANGED_MAX or loop.time() >= until:
            break
    answer.complete = position[0] == len(places)
    answer.next = None if answer.complete else steps.text(position, told)
    return _shown(answer)


async def _asked(place: Place, body: Body, *, scope: Scope, receive: Receive) -> Body | WholeAnswer:
    given = orjson.dumps({name: value for name, value in body.items() if value is not None})
    return read(await part_of(place, scope, receive, given, patience_s=None), place.name)


def _add(answer: ChangedResponse, one: Mapping[str, Any]) -> None:
    for name in ("changed", "asked_to_stop", "refused"):
        setattr(answer, name, getattr(answer, name) + int(one[name]))
    answer.error = answer.error or one["error"]


def _shown(answer: ChangedResponse) -> Response:
    return JSONResponse(answer.model_dump(mode="json"))


change_jobs = partial(_change, _ByInstant())
change_schedules = partial(_change, _ByName())
