"""The events of shards that this replica does not follow, for one request: of each a stream of a replica that does.

::

    GET /v1/events ──┬─► this replica's own shards ─────────────────────────────┐
                     └─► GET /v1/events?shard=0002 of another replica ─► PeerEvents ─► merged by id

The caller shows its own token there too, and is judged and charged there as here. What must hold:

* Every event up to ``position`` is in the buffer, or was. The other replica tells its position twice a second, as the
  events of all other shards wait for that.
* The buffer has a bound. Where it is full, the other replica waits, and says in the end that its client is too slow.
* A stream that ends goes on at the next replica, after the last position; the feed ends where none answers for
  `_PATIENCE_S`, or the caller is refused.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from http import HTTPStatus
from typing import Self

import httpx
import orjson
import structlog
from fastapi import Request
from tenacity import AsyncRetrying, retry_if_result, stop_after_delay, wait_random_exponential

from hascheduler.api.http.problems import ProblemError
from hascheduler.api.routing.forwarding import LIST_AGAIN
from hascheduler.errors import InvalidInput
from hascheduler.model.event import Event, decode_event
from hascheduler.ports import Closing, EventFeed, EventFilter, Lagging, Missed, NewEvents

log = structlog.get_logger(__name__)

SILENT_S_MAX = 10.0
"""Another replica says where it is twice a second; one that says nothing for so long is left for the next."""
_KEPT_MAX = 500
_PATIENCE_S = 20.0
_PLACED_S_MAX = 2.0
_AGAIN_MAX_S = 2.0
_PAUSE_S = 0.05
_PASSES = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})
_OWN_QUERY = frozenset({"after", "shard"})
_Answer = NewEvents | Missed | Lagging | Closing
Opened = httpx.Response | ProblemError


class PeerEvents:
    """`hascheduler.ports.EventFeed` of one shard, and its only `Follower`. ``ask`` opens a stream after a position."""

    def __init__(self, ask: Callable[[str | None], Awaitable[Opened]], after: str | None) -> None:
        self._ask = ask
        self._after = after
        self._stream: httpx.Response | None = None
        self._is_over = False
        self._kept: deque[Event | Missed | Lagging | Closing] = deque()
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self.placed = asyncio.Event()
        """Set once the other replica has said where it is."""
        self.position = ""

    async def begin(self) -> ProblemError | None:
        """The refusal, or None: `run` reads on."""
        opened = await self._ask(self._after)
        if isinstance(opened, ProblemError):
            return opened
        self._stream = opened
        return None

    async def run(self) -> None:
        """Read until there is no more to come."""
        try:
            while self._stream is not None and not self._is_over:
                await self._read_all(self._stream)
                if not self._is_over:
                    self._stream = await self._opened_again()
        except (ValueError, KeyError, TypeError, InvalidInput) as error:
            log.warning("peer_events_unreadable", error=str(error) or type(error).__name__)
        finally:
            self._kept.append(Closing())
            self._news.set()

    async def _read_all(self, stream: httpx.Response) -> None:
        try:
            await self._read(stream)
        except httpx.HTTPError as error:
            log.debug("peer_events_broken_off", error=str(error) or type(error).__name__)
        finally:
            await self.close()

    async def close(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            await stream.aclose()

    @contextmanager
    def follow(self, after: str | None, which: EventFilter) -> Iterator[Self]:
        """From where it was begun, and by the request's own filter."""
        yield self

    async def next(self, wait_ms: int) -> _Answer:
        if not self._kept and wait_ms:
            self._news.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_ms / 1_000):
                    await self._news.wait()
        events: list[Event] = []
        while self._kept and isinstance(first := self._kept[0], Event):
            events.append(first)
            self._kept.popleft()
        self._room.set()
        if events or not self._kept:
            return NewEvents(events, events[-1].id if self._kept else self.position)
        return self._kept.popleft()  # type: ignore[return-value]  # no event

    async def _opened_again(self) -> httpx.Response | None:
        asked = AsyncRetrying(
            retry=retry_if_result(lambda opened: isinstance(opened, ProblemError) and opened.status_code in _PASSES),
            stop=stop_after_delay(_PATIENCE_S),
            wait=wait_random_exponential(multiplier=0.1, max=_AGAIN_MAX_S),
            retry_error_callback=lambda _: None,
        )
        # One that ends each stream at once is not asked without a pause.
        await asyncio.sleep(_PAUSE_S)
        opened: Opened | None = await asked(self._ask, self.position or self._after)
        return opened if isinstance(opened, httpx.Response) else None

    async def _read(self, stream: httpx.Response) -> None:
        fields: dict[str, str] = {}
        async for line in stream.aiter_lines():
            if line:
                name, _, value = line.partition(":")
                fields[name] = value.removeprefix(" ")
            elif fields:
                await self._take(fields)
                fields = {}

    async def _take(self, fields: Mapping[str, str]) -> None:
        data = orjson.loads(fields.get("data", "{}"))
        match fields.get("event"):
            case None:
                pass  # where it is, and no more
            case "reset":
                await self._keep(Missed(str(data["reason"]).removesuffix(LIST_AGAIN), str(data["position"])))
            case "lagging":
                self._is_over = True
                await self._keep(Lagging(int(data["missed"])))
            case _:
                await self._keep(decode_event(data))
        if "id" in fields:
            self.position = max(self.position, fields["id"])
            self.placed.set()

    async def _keep(self, said: Event | Missed | Lagging | Closing) -> None:
        while len(self._kept) >= _KEPT_MAX:
            self._room.clear()
            await self._room.wait()
        self._kept.append(said)
        self._news.set()


@asynccontextmanager
async def peer_events(
    stream: Callable[[str, Sequence[tuple[str, str]]], Awaitable[Opened]],
    request: Request,
    shards: Sequence[str],
    after: str | None,
) -> AsyncIterator[Mapping[str, EventFeed]]:
    """Of each of these shards its events after that position, for as long as this is entered; `ProblemError` where
    one can't be had. ``stream`` asks a replica that follows the shard for ``/v1/events`` with a query."""
    same = [(name, value) for name, value in request.query_params.multi_items() if name not in _OWN_QUERY]

    def asking(shard: str) -> Callable[[str | None], Awaitable[Opened]]:
        async def ask(position: str | None) -> Opened:
            query = [*same, ("shard", shard), *([] if position is None else [("after", position)])]
            return await stream(shard, query)

        return ask

    feeds = {shard: PeerEvents(asking(shard), after) for shard in shards}
    reading: list[asyncio.Task[None]] = []
    try:
        async with asyncio.TaskGroup() as opening:
            begun = [opening.create_task(feed.begin(), name="peer-events") for feed in feeds.values()]
        for refused in (each.result() for each in begun):
            if refused is not None:
                raise refused
        reading = [asyncio.create_task(feed.run(), name="peer-events") for feed in feeds.values()]
        # It does so at once, unless it does not know its place itself.
        with suppress(TimeoutError):
            async with asyncio.timeout(_PLACED_S_MAX):
                for feed in feeds.values():
                    await feed.placed.wait()
        yield feeds
    finally:
        for task in reading:
            task.cancel()
        await asyncio.gather(*reading, return_exceptions=True)
        for feed in feeds.values():
            await feed.close()
