"""The events of all shards as one stream, in the order of their ids; and their pictures as one, once a second.

::

    GET /v1/events ─┬─► shard, hosted here: its routes ──────┐
                    └─► shard, hosted elsewhere: a replica ──┴─► FollowedShard ─► held back ─► in the order of the ids

Each shard is followed by its own public route, hosted here or not, with the caller's own token. Ids are instants of the
MongoDB, one order over all shards, and one id is the position to go on after in each.

* An event is held back until every shard's stream has passed it, which each reports twice a second (``keepalive``). A
  silent shard holds the others back for `HELD_BACK_MAX_S` and no longer.
* The events of a shard that are not yet taken have a bound. If it is reached, the shard waits, and in the end it
  reports that its client is too slow (``lagging``).
* A stream that ends goes on after the last position, at another replica if need be. The whole ends if a shard is silent
  for 20 s, or if the caller is refused.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice, zip_longest
from typing import Any
from urllib.parse import urlencode

import orjson
from starlette.datastructures import QueryParams
from starlette.types import Receive, Scope, Send

from hascheduler.api.ops.events import KEEPALIVE
from hascheduler.api.ui.live import EVERY_MS
from hascheduler.errors import InvalidInput
from hascheduler.lifecycle import in_time
from hascheduler.mirror.history import POINTS_MAX
from hascheduler.shards.answers import STRANGE, picture_as_one
from hascheduler.shards.following import FollowedShard, Piece, send_as_one
from hascheduler.shards.peers import Place

HELD_BACK_MAX_S = 2.0
_KEEPALIVE, _SILENCE = "500ms", "15s"
_RETRY_MS = 2_000
_PICTURE_RETRY_MS = 1_000
_PICTURE_OLD_S = 5.0
_LOOK_S = 0.5
_LAST_EVENT_ID = b"last-event-id"


async def follow_events(places: Sequence[Place], scope: Scope, receive: Receive, send: Send) -> None:
    """Answer ``/v1/events`` over all shards."""
    query = QueryParams(scope["query_string"])
    after = dict(scope["headers"]).get(_LAST_EVENT_ID, b"").decode("latin-1") or query.get("after")
    silence_ms, pairs = 0, query.multi_items()
    with suppress(InvalidInput):  # each shard refuses it
        silence_ms = KEEPALIVE.read(query.get("keepalive", _SILENCE))
        pairs = [*(pair for pair in pairs if pair[0] != "keepalive"), ("keepalive", _KEEPALIVE)]
    headers = [each for each in scope["headers"] if each[0] not in (_LAST_EVENT_ID, b"accept-encoding")]
    part = {**scope, "headers": headers, "query_string": urlencode(pairs).encode()}
    await send_as_one(
        places, (part, receive, send), "followers", partial(in_order, silence_s=silence_ms / 1_000), after=after
    )


async def in_order(
    followed: Sequence[FollowedShard], news: asyncio.Event, *, silence_s: float
) -> AsyncGenerator[bytes, None]:
    """Yield the events of all shards in the order of their ids, and every ``silence_s`` how far they are."""
    loop = asyncio.get_running_loop()
    yield b"retry: %d\n\n" % _RETRY_MS
    held: list[tuple[str, float, bytes]] = []
    sent_s = -silence_s  # the first comment has the client's position at once
    while True:
        news.clear()
        # Read before the events are taken: the order of later ones is not known yet.
        past, now_s = min(each.position for each in followed), loop.time()
        is_over = any(each.is_over for each in followed)
        for piece in [piece for each in followed for piece in each.taken()]:
            if piece.type == "lagging":
                yield piece.text
                return
            if piece.type == "reset":
                yield _gap(piece, past)
            else:
                held.append((piece.id, now_s, piece.text))
        held.sort()
        ready = sum(id <= past for id, _, _ in held)
        overdue = [n for n, (_, since_s, _) in enumerate(held, 1) if now_s - since_s >= HELD_BACK_MAX_S]
        ready = max(ready, *overdue[-1:], 0)
        if ready:
            yield b"".join(text for _, _, text in held[:ready])
            held, sent_s = held[ready:], now_s
        elif past and now_s - sent_s >= silence_s:
            yield b": still here\nid: %b\n\n" % past.encode()
            sent_s = now_s
        elif is_over:
            return
        else:
            yield b""
            await in_time(news.wait(), min([_LOOK_S, *(since_s + HELD_BACK_MAX_S - now_s for _, since_s, _ in held)]))


def _gap(piece: Piece, past: str) -> bytes:
    """Return a reset with a position that does not skip what another shard has yet to send."""
    position, data = min(piece.id, past or piece.id), piece.data
    with suppress(*STRANGE):
        data = orjson.dumps({**orjson.loads(data), "position": position})
    return b"id: %b\nevent: reset\ndata: %b\n\n" % (position.encode(), data)


# Pictures


async def follow_pictures(places: Sequence[Place], scope: Scope, receive: Receive, send: Send) -> None:
    """Answer ``/v1/cluster/live`` over all shards: the last picture of each, as one."""
    headers = [each for each in scope["headers"] if each[0] != b"accept-encoding"]
    await send_as_one(places, ({**scope, "headers": headers}, receive, send), "viewers", _pictures, of_all=False)


async def _pictures(followed: Sequence[FollowedShard], news: asyncio.Event) -> AsyncGenerator[bytes, None]:
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    yield b"retry: %d\n\n" % _PICTURE_RETRY_MS
    names = [each.place.name for each in followed]
    last: dict[str, Mapping[str, Any]] = {}
    histories: dict[str, Mapping[str, Any]] = {}
    shown_s, is_first, has_history = -EVERY_MS / 1_000, True, False
    while not followed[0].is_over:
        news.clear()
        for name, each in zip(names, followed, strict=True):
            for piece in each.taken():
                with suppress(*STRANGE):
                    (last if piece.type == "picture" else histories)[name] = orjson.loads(piece.data)
                    has_history |= piece.type == "history" and name == names[0]  # a point of the home stands for all
            if loop.time() - each.received_s >= _PICTURE_OLD_S:
                last.pop(name, None)
        now_s = loop.time()
        is_whole = len(last) == len(followed) or now_s - began_s >= HELD_BACK_MAX_S
        if names[0] in last and now_s - shown_s >= EVERY_MS / 1_000 and (is_whole or not is_first):
            with suppress(*STRANGE):
                if has_history:
                    has_history = False
                    yield _event("history", _history_as_one([histories[name] for name in names if name in histories]))
                yield _event("picture", picture_as_one(names, [last.get(name) for name in names]))
            shown_s, is_first = now_s, False
        yield b""
        await in_time(news.wait(), _LOOK_S)


def _event(type: str, data: object) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (type.encode(), orjson.dumps(data))


def _history_as_one(histories: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the summed history, aligned at the newest point; a shorter history counts as 0 further back."""
    series = {}
    for name in histories[0]["series"]:
        from_newest = zip_longest(*(reversed(each["series"][name]) for each in histories), fillvalue=0)
        series[name] = [sum(values) for values in islice(from_newest, POINTS_MAX)][::-1]
    return {**histories[0], "series": series}
