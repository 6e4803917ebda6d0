"""``/v1/cluster/live``: the deployment as this replica sees it, once a second, as server-sent events.

::

    event: picture
    data: {"at": …, "cluster": {as /v1/cluster}, "processors": {as /v1/processors}, "numbers": {…},
           "lanes": {"items": [{"name": …, "pending": …, "waited_ms": …}, …], "whole": true}, "tenants": {…}}

    event: history        at the beginning, and whenever it has a new point: at most the last hour, oldest first
    data: {"every_ms": 30000, "until": …, "series": {"pending": […], …}}

The picture is made from the mirror, once a second for all its followers (once for each tenant whose tokens follow). The
replica always keeps the history of all tenants, from its own events; that of one tenant is kept only while it is
followed. No page costs a cursor. A stream also ends when the replica stops and when its token is revoked.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from heapq import nlargest
from http import HTTPStatus
from typing import Any

import orjson
from fastapi import APIRouter, Request

from hascheduler.api.http.problems import problem_responses
from hascheduler.api.middleware.auth import Viewer, still_identified
from hascheduler.api.ops.cluster import show_cluster
from hascheduler.api.ops.events import EventStream
from hascheduler.api.ops.processors import show_processors
from hascheduler.api.services import ApiServices, Services
from hascheduler.errors import Overloaded
from hascheduler.mirror.history import COUNTED, JobHistory
from hascheduler.mirror.history import EVERY_MS as HISTORY_EVERY_MS
from hascheduler.model.event import EventType
from hascheduler.model.values.instants import MonoMs
from hascheduler.ports import Closing, EventFeed, EventFilter, Follower, Lagging, NewEvents
from hascheduler.schema.forms import instant_text

EVERY_MS = 1_000
BUSIEST_MAX = 50
"""How many lanes, and how many tenants, a picture has: those with the most jobs."""
COMPARED_MAX = 5_000
"""If more have jobs, the replica does not search for the busiest once a second."""
_RETRY_MS = 1_000
_LIVE = ("pending", "dispatched", "running")


@dataclass(slots=True)
class _Sight:
    """The view of the tokens of one tenant, or of those for all tenants (None).

    It owns the history of its tenant and the ``totals`` of that tenant's events; those of all are the replica's.
    """

    tenant: str | None
    history: JobHistory
    totals: Counter[EventType] = field(default_factory=Counter)
    events: Follower | None = None
    counting: ExitStack = field(default_factory=ExitStack)
    followed_by: int = 0
    made_at_ms: MonoMs | None = None
    picture: bytes = b""
    making: asyncio.Lock = field(default_factory=asyncio.Lock)


class LivePictures:
    """Owner of the pictures of one replica, separate for each of its views."""

    def __init__(self) -> None:
        self._sights: dict[tuple[int, str | None], _Sight] = {}

    @contextmanager
    def followed(self, tenant: str | None, services: ApiServices) -> Iterator[_Sight]:
        """Keep the sight of that tenant from its first follower on, until the last one has left."""
        key = id(services.view), tenant  # the followers keep the view alive, so no other view has its id
        sight = self._sights.get(key)
        if sight is None:
            history = services.view.history() if tenant is None else JobHistory(services.clock.mono_ms(), {})
            sight = self._sights[key] = _Sight(tenant, history)
        sight.followed_by += 1
        try:
            yield sight
        finally:
            sight.followed_by -= 1
            if not sight.followed_by:
                _stop_counting(sight)
                self._sights.pop(key, None)

    async def picture(self, sight: _Sight, services: ApiServices) -> bytes:
        """Return the newest picture, at most a second old."""
        async with sight.making:
            now = services.clock.mono_ms()
            if sight.made_at_ms is None or now - sight.made_at_ms >= EVERY_MS:
                if sight.tenant is not None:
                    await _count(sight, services.events)
                sight.picture = await _picture(sight, services)
                sight.made_at_ms = now
        return sight.picture


async def _count(sight: _Sight, feed: EventFeed) -> None:
    """Count the events of a tenant since the last call. Missed events are not counted."""
    if sight.events is None:
        try:
            which = EventFilter(frozenset(COUNTED), tenant=sight.tenant)
            sight.events = sight.counting.enter_context(feed.follow(None, which))
        except Overloaded:  # no room: the picture counts no events
            return
    while True:
        match await sight.events.next(0):
            case NewEvents(events) if events:
                for event in events:
                    sight.totals[event.type] += event.count or 1
            case Lagging() | Closing():
                _stop_counting(sight)
                return
            case _:
                return


def _stop_counting(sight: _Sight) -> None:
    sight.events = None
    sight.counting.close()


async def _picture(sight: _Sight, services: ApiServices) -> bytes:
    shown_cluster = await show_cluster(services, sight.tenant)
    cluster, gauges = services.view.cluster(), services.view.gauges()
    live = gauges.jobs if sight.tenant is None else gauges.jobs_of_tenant.get(sight.tenant, {})
    numbers: dict[str, Any] = {state: live.get(state, 0) for state in _LIVE}
    if sight.tenant is None:
        services.view.history()  # with a sample of now
    else:
        sight.history.sample(services.clock.mono_ms(), sight.totals, {**numbers, "slots": sum(gauges.slots.values())})
    # How long the jobs of one tenant have waited is unknown, and how much of a lane belongs to it.
    numbers["oldest_wait_ms"] = max(gauges.waited_ms.values(), default=None) if sight.tenant is None else None
    numbers["per_minute"] = sight.history.per_minute()
    shown = {
        "at": instant_text(services.clock.wall_ms()),
        "cluster": shown_cluster.model_dump(mode="json", by_alias=True),
        "processors": None
        if sight.tenant is not None
        else show_processors(cluster).model_dump(mode="json", by_alias=True),
        "slots": dict(gauges.slots),
        "numbers": numbers,
        "lanes": None if sight.tenant is not None else _busiest(gauges.jobs_of_lane, gauges.waited_ms),
        "tenants": _busiest(gauges.jobs_of_tenant if sight.tenant is None else {sight.tenant: live}),
    }
    return b"event: picture\ndata: " + orjson.dumps(shown) + b"\n\n"


def _busiest(
    live: Mapping[str, Mapping[str, int]], waited_ms: Mapping[str, int] | None = None
) -> dict[str, Any] | None:
    """Return the lanes or tenants with the most jobs first; None if there are too many to compare.

    ``whole`` is true if those left out have no jobs.
    """
    if len(live) > COMPARED_MAX:
        return None
    names = nlargest(BUSIEST_MAX, sorted(live), key=lambda name: sum(live[name].values()))
    items = [{"name": name, **{state: live[name].get(state, 0) for state in _LIVE}} for name in names]
    if waited_ms is not None:
        items = [{**item, "waited_ms": waited_ms.get(str(item["name"]))} for item in items]
    return {"items": items, "whole": len(live) <= BUSIEST_MAX}


def _history(sight: _Sight, services: ApiServices) -> bytes:
    age_ms = services.clock.mono_ms() - sight.history.until_ms
    shown = {
        "every_ms": HISTORY_EVERY_MS,
        "until": instant_text(services.clock.wall_ms() - age_ms),
        "series": sight.history.series(),
    }
    return b"event: history\ndata: " + orjson.dumps(shown) + b"\n\n"


async def _pieces(pictures: LivePictures, tenant: str | None, services: ApiServices) -> AsyncGenerator[bytes, None]:
    """Yield the last hour whenever it has a new point, and a picture a second, until this replica stops."""
    with pictures.followed(tenant, services) as sight:
        yield f"retry: {_RETRY_MS}\n\n".encode()
        shown_until_ms = -1
        while not services.view.stopping:
            if sight.history.until_ms != shown_until_ms:
                shown_until_ms = sight.history.until_ms
                yield _history(sight, services)
            yield await pictures.picture(sight, services)
            await asyncio.sleep(EVERY_MS / 1_000)


router = APIRouter(prefix="/cluster", tags=["cluster"])


@router.get(
    "/live",
    status_code=HTTPStatus.OK,
    response_class=EventStream,
    responses={
        200: {"content": {EventStream.media_type: {}}, "description": "Server-sent events"},
        **problem_responses(429),
    },
)
async def follow_cluster(request: Request, services: Services, caller: Viewer) -> EventStream:
    """Follow the cluster as this replica sees it, once a second.

    A `picture` holds what `/v1/cluster` and, for tokens for all tenants, `/v1/processors` answer, and `numbers` of the
    token's tenant: how many jobs wait and run, how long the oldest has waited (null for a token of one tenant), and how
    many were submitted, started and ended, and how many fires were missed, in the last minute (`per_minute`).

    A `history` comes first and every 30 s: at most the last hour, in points of 30 s, oldest first.

    `lanes` and `tenants` hold the 50 with the most live jobs, by state, and for lanes how long the oldest due job has
    waited; if `whole` is true, the left-out ones have no jobs. A token of one tenant sees its tenant and no lanes. They
    are null if more than 5000 have jobs.

    Each `picture` is complete: a client that reconnects needs no earlier ones. A stream ends after an hour at most.
    """
    pieces = _pieces(request.app.state.live, caller.only, services)
    return EventStream("viewers", pieces, lambda: still_identified(request.scope, caller))
