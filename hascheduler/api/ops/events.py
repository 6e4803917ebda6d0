"""``/v1/events``: what happens to jobs and schedules, as server-sent events that browsers' ``EventSource`` reads.

::

    retry: 2000

    id: 1893456000.0000000007         an event of a job; the type is also in the data
    event: succeeded
    data: {"id": …, "at": …, "type": "succeeded", "job": …}

    : still here                      the stream has caught up, or was silent; a client may resume from here, also
    id: 1893456015.0000000002         with a filter that matches few events

    id: 1893456020.0000000001         the events up to this id are no longer available: list the jobs again
    event: reset
    data: {"reason": …}

    event: lagging                    the client reads too slowly; the stream ends, and may be resumed
    data: {"missed": 500}

A stream ends also when the replica stops, and when its token is revoked, or the session of its page ends.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from http import HTTPStatus
from typing import Annotated

import orjson
from fastapi import APIRouter, Header, Query, Request, Response
from pydantic import AfterValidator, BaseModel, Field
from starlette.types import Receive, Scope, Send

from hascheduler.api.http.limits import holding_of
from hascheduler.api.http.problems import problem_responses
from hascheduler.api.middleware.auth import Viewer, still_identified
from hascheduler.api.middleware.overload import EVENTS_S_MAX
from hascheduler.api.routing.long_poll import until_left
from hascheduler.api.services import Services
from hascheduler.errors import InvalidInput
from hascheduler.model.event import POSITION_PATTERN, EventType, encode_event, is_position
from hascheduler.model.values.error_texts import quoted
from hascheduler.ports import Closing, EventFeed, EventFilter, Lagging, Missed, NewEvents
from hascheduler.schema.forms import Name, TextOrEmpty, span, wrong
from hascheduler.schema.noun import AS_REQUEST

MEDIA_TYPE = "text/event-stream"
_RETRY_MS = 2_000
_SILENCE_MS = 15_000
_WRITE_PATIENCE_S = 30
"""A client that reads nothing for this long is considered gone, whatever its connection's state."""


class EventStream(Response):
    """A response that sends ``pieces`` until the client leaves, ``is_authorized`` returns False, or an hour is over.

    It holds a unit of ``limit``; 429 or 503 if there is none. An error of the first piece refuses the request.
    """

    # Not FastAPI's `EventSourceResponse`: its keep-alive has no id to resume from, and it waits for a stalled client
    # as long as the connection lives.
    media_type = MEDIA_TYPE

    def __init__(self, limit: str, pieces: AsyncGenerator[bytes, None], is_authorized: Callable[[], bool]) -> None:
        # A proxy must not buffer the stream.
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._limit = limit
        self._pieces = pieces
        self._is_authorized = is_authorized

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with holding_of(scope).hold_open(self._limit):
            async with aclosing(self._pieces):
                first = await anext(self._pieces)
                await until_left(self._send_all(first, send), receive)

    async def _send_all(self, first: bytes, send: Send) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + EVENTS_S_MAX
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send_piece(send, first)
        async for piece in self._pieces:
            if loop.time() >= until or not self._is_authorized():
                break
            await send_piece(send, piece)
        await send_piece(send, b"", more=False)


async def send_piece(send: Send, piece: bytes, *, more: bool = True) -> None:
    """Send one piece of a stream; raise `TimeoutError` if the client does not read."""
    async with asyncio.timeout(_WRITE_PATIENCE_S):
        await send({"type": "http.response.body", "body": piece, "more_body": more})


async def _pieces(
    feed: EventFeed, after: str | None, which: EventFilter, silence_ms: int
) -> AsyncGenerator[bytes, None]:
    """Yield the pieces until the client lags or this replica stops. The errors of `EventFeed.follow` pass."""
    with feed.follow(after, which) as follower:
        yield f"retry: {_RETRY_MS}\n\n".encode()
        wait_ms = 0  # until it has caught up: the first comment comes at once, with the position
        while not isinstance(message := await follower.next(wait_ms), Closing):
            if isinstance(message, NewEvents) and not message.events:
                wait_ms = silence_ms
            yield _text(message).encode()
            if isinstance(message, Lagging):
                return


def _text(message: NewEvents | Missed | Lagging) -> str:
    match message:
        case NewEvents((), ""):
            return ": still here\n\n"
        case NewEvents((), position):
            return f": still here\nid: {position}\n\n"
        case NewEvents(events):
            return "".join(_one(event.type, encode_event(event), event.id) for event in events)
        case Missed(reason, position):
            return _one("reset", {"reason": f"{reason}; list the jobs again", "position": position}, position)
        case Lagging(missed):
            return _one("lagging", {"missed": missed})


def _one(type: str, data: object, id: str = "") -> str:
    head = f"id: {id}\n" if id else ""
    return f"{head}event: {type}\ndata: {orjson.dumps(data).decode()}\n\n"


router = APIRouter(tags=["events"])


def _event_id(text: str) -> str:
    if not is_position(text):
        raise wrong(f"{quoted(text)} is not an event id", "that of an event, such as 1893456000.0000000007")
    return text


EventId = Annotated[str, AfterValidator(_event_id), Field(json_schema_extra={"pattern": POSITION_PATTERN})]


KEEPALIVE = span(200, 30_000, of_query=True)


class EventQuery(BaseModel):
    type: list[EventType] = Field(
        default=[], max_length=len(EventType), description="Only events of this type; may be repeated"
    )
    definition: Name | None = Field(
        default=None, description="Only events of jobs of this definition, and of their schedules"
    )
    schedule: Name | None = Field(default=None, description="Only events of this schedule, and of jobs that it made")
    job: TextOrEmpty | None = Field(default=None, description="Only events of this job")
    tenant: Name | None = Field(default=None, description="Only events of this tenant's jobs and schedules")
    shard: Name | None = Field(default=None, description="Only events of this shard, if there are several")
    after: EventId | None = Field(
        default=None, description="Continue after the event with this id; the header Last-Event-ID takes precedence"
    )
    keepalive: Annotated[int, KEEPALIVE] | None = Field(
        default=None,
        description="How often an idle stream sends its position as an `id` to continue after: 200 ms to 30 s; "
        f"{_SILENCE_MS // 1_000} s by default",
        examples=["500ms"],
    )

    def filter(self, tenant: str | None) -> EventFilter:
        return EventFilter(frozenset(self.type), self.definition, self.schedule, self.job, tenant)


@router.get(
    "/events",
    status_code=HTTPStatus.OK,
    response_class=EventStream,
    responses={200: {"content": {MEDIA_TYPE: {}}, "description": "Server-sent events"}, **problem_responses(422, 429)},
)
async def follow_events(
    query: Annotated[EventQuery, Query(), AS_REQUEST],
    request: Request,
    services: Services,
    caller: Viewer,
    last_event_id: Annotated[EventId | None, Header(description="The id to continue after")] = None,
) -> EventStream:
    """Follow the events of jobs and schedules.

    Types are `submitted`, `dispatched`, `started`, `returned` (the job waits again, perhaps until `retry_at`),
    `reprioritized`, `cancel_requested`, `revived`, `succeeded`, `failed`, `cancelled`, and `schedule.missed`: `count`
    times of a schedule, from `nominal_at` through `through_at`, made no job. Its `job` is null.

    A client that reconnects with the last `id` it received, to any replica, gets each event at least once: ids are the
    same everywhere. If that is too long ago, a `reset` comes first: list the jobs again. A client that reads too slowly
    gets `lagging` and must reconnect. A stream ends after an hour at most.
    """
    which = query.filter(caller.filter_of(query.tenant))
    after = last_event_id or query.after
    if query.shard not in (None, services.work_terms.scheduler):
        raise InvalidInput(
            ("shard",), f"{quoted(query.shard)} is not a shard", f"{services.work_terms.scheduler}, the only one"
        )
    pieces = _pieces(services.events, after, which, query.keepalive or _SILENCE_MS)
    return EventStream("followers", pieces, lambda: still_identified(request.scope, caller))
