"""Changes of all jobs or schedules that match, in one shard after the other.

First all shards count, and the sum is compared with the agreed count (``expected``). Then each shard changes what
matches in it, until one has more left than a request may do, or the time is over. A caller repeats the request with
``next``:

* for jobs, ``next`` is an instant, the same for every shard: what a shard has changed already no longer matches there;
* for schedules, which are changed by name, it is ``SHARD~NAME``: the index of a shard and the name to go on after.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from http import HTTPStatus
from typing import Any

import orjson
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope

from hascheduler.api.http.problems import problem
from hascheduler.api.jobs.all_that_match import (
    BUSY_MS_MAX,
    CHANGED_MAX,
    ChangedResponse,
    counted_only,
    require_expected,
)
from hascheduler.api.middleware.audit import note_of
from hascheduler.errors import Conflict
from hascheduler.schema.forms import instant_text
from hascheduler.schema.noun import answer_of
from hascheduler.shards.answers import STRANGE, Body, Exchange, part_of, read, refusal_in, unfit, whole
from hascheduler.shards.layout import Layout
from hascheduler.shards.peers import Place, WholeAnswer, ask_all


async def _change(layout: Layout, places: Sequence[Place], body: Any, exchange: Exchange, *, by_name: bool) -> None:
    scope, receive, send = exchange
    if not isinstance(body, dict):
        await places[0].ask(*exchange)  # its refusal says what is wrong
        return
    try:
        answer = await _changed(places, body, scope, receive, by_name=by_name)
    except STRANGE:
        answer = unfit()
    # This replica audits the whole, even if other replicas have audited their parts.
    note_of(scope).unaudited = body.get("dry_run") is True
    await answer.send(send)


async def _changed(
    places: Sequence[Place], body: Body, scope: Scope, receive: Receive, *, by_name: bool
) -> WholeAnswer:
    async def ask(place: Place, after: Any, **changes: Any) -> Body | WholeAnswer:
        given = {**body, "after": after, **changes}
        part = orjson.dumps({name: value for name, value in given.items() if value is not None})
        return read(await part_of(place, scope, receive, part, patience_s=None), place.name)

    index, after = 0, body.get("after")
    if by_name:
        index, after = _position(after, len(places))
    elif after is None:
        after = instant_text(scope["state"]["services"].clock.wall_ms())
    found = await ask_all(ask(place, after, dry_run=True) for place in places)
    refusal = refusal_in(found)
    if refusal is not None:
        return refusal
    counted = [each for each in found if not isinstance(each, WholeAnswer)]
    answer = counted_only(sum(each["matched"] for each in counted), exact=all(each["exact"] for each in counted))
    if body.get("dry_run") is True:
        return _shown(answer)
    if body.get("after") is None:
        try:
            require_expected(answer, body.get("expected"))
        except Conflict as error:
            return whole(problem(HTTPStatus.CONFLICT, "conflict", str(error)))
    loop = asyncio.get_running_loop()
    until = loop.time() + BUSY_MS_MAX / 1_000
    while index < len(places):
        one = await ask(places[index], after, expected=None)
        if isinstance(one, WholeAnswer):
            if not answer.changed and not answer.asked_to_stop:
                return one
            break  # answer with the changes so far; a repeated request gets the refusal
        for name in ("changed", "asked_to_stop", "refused"):
            setattr(answer, name, getattr(answer, name) + int(one[name]))
        answer.error = answer.error or one["error"]
        if by_name:
            after = one["next"]
        if not one["complete"]:
            break
        index += 1
        if answer.changed + answer.asked_to_stop >= CHANGED_MAX or loop.time() >= until:
            break
    answer.complete = index == len(places)
    answer.next = None if answer.complete else f"{index}~{after or ''}" if by_name else str(after)
    return _shown(answer)


def _position(after: Any, shard_count: int) -> tuple[int, Any]:
    """Return the index of the shard to go on in, and the name to go on after.

    A name alone comes from a deployment that had one shard then.
    """
    index, mark, name = after.partition("~") if isinstance(after, str) else ("", "", "")
    if mark and index.isascii() and index.isdecimal() and int(index) < shard_count:
        return int(index), name or None
    return 0, after


def _shown(answer: ChangedResponse) -> WholeAnswer:
    return whole(JSONResponse(answer_of(answer)))


change_jobs = partial(_change, by_name=False)
change_schedules = partial(_change, by_name=True)
