"""The streams of several shards, each followed by its own public route, and the one stream made of them."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from math import inf
from typing import NamedTuple
from urllib.parse import urlencode

from starlette.datastructures import QueryParams
from starlette.types import Message, Receive, Scope, Send

from hascheduler.api.http.limits import holding_of
from hascheduler.api.middleware.auth import still_identified
from hascheduler.api.middleware.overload import EVENTS_S_MAX
from hascheduler.api.ops.events import MEDIA_TYPE, send_piece
from hascheduler.api.routing.long_poll import until_left
from hascheduler.api.services import ApiServices
from hascheduler.shards.answers import named, refusal_in, stay
from hascheduler.shards.peers import Place, WholeAnswer

_HEADERS = (
    (b"content-type", f"{MEDIA_TYPE}; charset=utf-8".encode()),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),  # a proxy must not buffer the stream
)
_KEPT_MAX = 500
_PIECE_BYTES_MAX = 4 * 1024 * 1024
_SILENT_S_MAX = 10.0
"""A shard reports its position twice a second. After this silence it is asked again, at another replica."""
_PATIENCE_S = 20.0
_AGAIN_S = 0.05
_AGAIN_MAX_S = 2.0
_PASSES = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})


class Piece(NamedTuple):
    """One server-sent event as it came; without a type if it only reports the shard's position."""

    id: str
    type: str
    data: bytes
    text: bytes


@dataclass(eq=False)
class FollowedShard:
    """The stream of one shard; owner of the events that it sent and that are not yet taken."""

    place: Place
    scope: Scope
    after: str | None
    news: asyncio.Event
    patience_s: float
    position: str = ""
    """Every event up to this position is, or was, in ``kept``."""
    kept: asyncio.Queue[Piece] = field(default_factory=lambda: asyncio.Queue(_KEPT_MAX))
    received_s: float = field(default_factory=lambda: asyncio.get_running_loop().time())
    refusal: WholeAnswer | None = None
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once it has sent something, or was refused."""
    is_over: bool = False
    _rest: bytes = b""

    def taken(self) -> Sequence[Piece]:
        return [self.kept.get_nowait() for _ in range(self.kept.qsize())]

    async def run(self) -> None:
        """Follow until the caller is refused, or the shard is silent for ``patience_s``."""
        loop = asyncio.get_running_loop()
        pause_s, is_final = _AGAIN_S, False
        while True:
            before_s = self.received_s
            self.refusal = await self._follow(loop)
            if self.refusal is not None:
                self.begun.set()
                is_final = self.refusal.status not in _PASSES
            if is_final or loop.time() - self.received_s >= self.patience_s:
                break
            pause_s = _AGAIN_S if self.received_s > before_s else min(2 * pause_s, _AGAIN_MAX_S)
            await asyncio.sleep(pause_s)
        self.is_over = True
        self.news.set()

    async def _follow(self, loop: asyncio.AbstractEventLoop) -> WholeAnswer | None:
        """Follow one stream to its end; return the refusal if that is the answer."""
        answer = WholeAnswer()
        self._rest = b""
        after = self.position or self.after
        query = [each for each in QueryParams(self.scope["query_string"]).multi_items() if each[0] != "after"]
        query += [] if after is None else [("after", after)]

        async def take(message: Message) -> None:
            if answer.status != HTTPStatus.OK:
                await answer.take(message)
                return
            for piece in self._pieces_in(message.get("body", b"")):
                limit.reschedule(None)  # without room, the client is slow, not the shard
                if piece.type:
                    await self.kept.put(piece)
                self.position = max(self.position, piece.id)
                self.received_s = loop.time()
                self.begun.set()
                self.news.set()
            limit.reschedule(loop.time() + _SILENT_S_MAX)

        with suppress(TimeoutError, ConnectionAbortedError, ValueError):
            async with asyncio.timeout(_SILENT_S_MAX) as limit:
                await self.place.ask({**self.scope, "query_string": urlencode(query).encode()}, stay, take)
        return None if answer.status == HTTPStatus.OK else named(answer, self.place.name)

    def _pieces_in(self, more: bytes) -> Iterator[Piece]:
        *texts, self._rest = (self._rest + more).split(b"\n\n")
        if len(self._rest) > _PIECE_BYTES_MAX:
            raise ValueError("an event is too large")
        for text in texts:
            lines = [line for line in text.split(b"\n") if b": " in line and not line.startswith(b":")]
            fields = dict(line.split(b": ", 1) for line in lines)
            id, type = fields.get(b"id", b"").decode(), fields.get(b"event", b"").decode()
            yield Piece(id, type, fields.get(b"data", b""), text + b"\n\n")


Pieces = Callable[[Sequence[FollowedShard], asyncio.Event], AsyncGenerator[bytes, None]]
"""Makes one stream of several. The event wakes it, and it yields at least twice a second, even if empty."""


async def send_as_one(
    places: Sequence[Place],
    exchange: tuple[Scope, Receive, Send],
    kind: str,
    pieces: Pieces,
    *,
    after: str | None = None,
    of_all: bool = True,
) -> None:
    """Send what ``pieces`` makes of the streams of all shards, in one slot of that ``kind``.

    Raise 429 or 503 if no slot is free. With ``of_all``, wait until every shard has begun; the refusal of one is the
    answer. Otherwise wait only for the home.
    """
    scope, receive, send = exchange
    with holding_of(scope).hold_open(kind):
        await until_left(_follow_all(places, scope, send, pieces, after, of_all=of_all), receive)


async def _follow_all(
    places: Sequence[Place], scope: Scope, send: Send, pieces: Pieces, after: str | None, *, of_all: bool
) -> None:
    news = asyncio.Event()
    needed = [FollowedShard(place, scope, after, news, _PATIENCE_S) for place in (places if of_all else places[:1])]
    followed = needed + [FollowedShard(place, scope, after, news, inf) for place in places[len(needed) :]]
    async with asyncio.TaskGroup() as group:
        following = [group.create_task(each.run(), name="shard-events") for each in followed]
        try:
            for each in needed:
                await each.begun.wait()
            refused = refusal_in([each.refusal for each in needed if each.refusal is not None])
            if refused is not None:
                await refused.send(send)
            else:
                await _send_all(pieces(followed, news), scope, send)
        finally:
            for task in following:
                task.cancel()


async def _send_all(pieces: AsyncGenerator[bytes, None], scope: Scope, send: Send) -> None:
    loop = asyncio.get_running_loop()
    services: ApiServices = scope["state"]["services"]
    until = loop.time() + EVENTS_S_MAX
    await send({"type": "http.response.start", "status": HTTPStatus.OK, "headers": list(_HEADERS)})
    async with aclosing(pieces):
        async for piece in pieces:
            is_good = still_identified(scope, scope["state"]["caller"])
            if not is_good or services.view.stopping or loop.time() >= until:
                break
            if piece:
                await send_piece(send, piece)
    await send_piece(send, b"", more=False)
