"""What a request needs to be answered by another replica: its body, once more, and an answer where none gives one.

`hascheduler.api.routing.forwarder` has the whole; it is loaded where replicas follow some shards alone.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from http import HTTPStatus
from typing import Protocol

from fastapi import Request, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hascheduler.api.http.problems import problem
from hascheduler.errors import NotFollowedHere
from hascheduler.ports import ClusterView, EventFeed

FORWARDED = "x-hascheduler-forwarded"
NOT_FOLLOWED = "x-hascheduler-not-followed"
KEPT_BYTES_MAX = 512 * 1024
_KEPT = "kept_body"
_WITH_BODY = "/v1/work/"
"""The requests with a body of which another replica may be asked; all others that are forwarded have none."""
NONE_ANSWERS = "no replica that follows shard {} answers"
RETRY_LATER = {"Retry-After": "2"}
LIST_AGAIN = "; list the jobs again"
"""What a stream of events adds to the reason of a gap; another replica that passes it on takes it off before."""


class Forwards(Protocol):
    """`hascheduler.api.routing.forwarder.Forwarder`."""

    async def answer(self, request: Request, shard: str) -> Response: ...

    def events(
        self, request: Request, shards: Sequence[str], after: str | None
    ) -> AbstractAsyncContextManager[Mapping[str, EventFeed]]:
        """`hascheduler.api.routing.peer_events.peer_events`."""
        ...


def require_followed(view: ClusterView, tenant: str | None) -> None:
    """`NotFollowedHere` where something of that tenant, or of any, may be in a shard that this replica does not
    follow."""
    for shard in view.unseen_shards(tenant):
        raise NotFollowedHere(shard)


class KeptBody:
    """Keeps the body of each request that may be forwarded, as it is read."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_kept = scope["type"] == "http" and scope["path"].startswith(_WITH_BODY)
        if not is_kept:
            await self._app(scope, receive, send)
            return
        kept = scope.setdefault("state", {})[_KEPT] = _BodyKept()

        async def keep() -> Message:
            message = await receive()
            if message["type"] == "http.request":
                kept.add(message.get("body", b""), more=message.get("more_body", False))
            return message

        await self._app(scope, keep, send)


class _BodyKept:
    __slots__ = ("is_whole", "pieces", "size")

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.size = 0
        self.is_whole = False

    def add(self, piece: bytes, *, more: bool) -> None:
        self.size += len(piece)
        self.is_whole = not more
        if self.size <= KEPT_BYTES_MAX:
            self.pieces.append(piece)
        else:
            self.pieces.clear()


def body_of(scope: Scope) -> bytes | None:
    """The body of a request that `KeptBody` saw, and nothing where it was not read; None: it is not whole here."""
    kept = scope.get("state", {}).get(_KEPT)
    if not isinstance(kept, _BodyKept) or (not kept.size and not kept.is_whole):
        return b""
    return b"".join(kept.pieces) if kept.is_whole and kept.size <= KEPT_BYTES_MAX else None


def unanswered(shard: str, *, followed_elsewhere: bool = False, may_be_done: bool = False) -> Response:
    """503 with the name of the shard. ``followed_elsewhere``: to a replica that forwards, which asks the next one."""
    headers = dict(RETRY_LATER)
    if followed_elsewhere:
        headers[NOT_FOLLOWED] = shard
        detail = f"this replica does not follow shard {shard}, and was asked by one that does not either"
    elif may_be_done:
        detail = f"a replica that follows shard {shard} broke off; whether it was carried out is unknown"
    else:
        detail = NONE_ANSWERS.format(shard)
    return problem(HTTPStatus.SERVICE_UNAVAILABLE, "shard-unanswered", detail, headers=headers)
