"""``/v1/cluster/live``: the deployment as this replica sees it, once a second, as server-sent events.

::

    event: picture
    data: {"at": …, "cluster": {as /v1/cluster}, "processors": {as /v1/processors}, "alerts": […], "numbers": {…},
           "lanes": {"items": [{"name": …, "pending": …, "waited_ms": …}, …], "whole": true}, "tenants": {…}}

    event: history        once, at the beginning: the same numbers of the last minutes, if pages were open
    data: {"every_ms": 1000, "until": …, "series": {"pending": […], …}}

Each picture is complete, so a client that reconnects, to this replica or to another, needs no earlier one. The picture
is made from the mirror, once a second for all its followers (once for each tenant whose tokens follow); its numbers
of events come from the replica's own events, and are counted only while it is followed. No page costs a cursor.

A stream ends after an hour, when the replica stops, and when its token is revoked; clients reconnect.
"""

import asyncio
from collections import Counter, deque
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
from hascheduler.api.ui.alerts import alerts
from hascheduler.errors import Overloaded
from hascheduler.model.event import EventType
from hascheduler.model.values.instants import MonoMs
from hascheduler.ports import Closing, ClusterView, EventFeed, EventFilter, Follower, Lagging, NewEvents
from hascheduler.schema.forms import instant_text

EVERY_MS = 1_000
HISTORY_MAX = 300
"""Five minutes."""
BUSIEST_MAX = 50
"""How many lanes, and how many tenants, a picture has: those with the most jobs."""
COMPARED_MAX = 5_000
"""If more have jobs, the replica does not search for the busiest once a second."""
_RETRY_MS = 1_000
_COUNTED = (
    EventType.SUBMITTED,
    EventType.STARTED,
    EventType.SUCCEEDED,
    EventType.FAILED,
    EventType.CANCELLED,
    EventType.RETURNED,
)
_LIVE = ("pending", "dispatched", "running")


@dataclass(slots=True)
class _Sight:
    """The view of the tokens of one tenant, or of those for all tenants (None), and owner of its history."""

    tenant: str | None
    events: Follower | None = None
    counting: ExitStack = field(default_factory=ExitStack)
    followed_by: int = 0
    made_at_ms: MonoMs | None = None
    picture: bytes = b""
    history: deque[tuple[int, ...]] = field(default_factory=lambda: deque(maxlen=HISTORY_MAX))
    making: asyncio.Lock = field(default_factory=asyncio.Lock)


class LivePictures:
    """Owner of the pictures of one replica, separate for each of its views."""

    def __init__(self) -> None:
        self._sights: dict[tuple[int, str | None], _Sight] = {}

    @contextmanager
    def followed(self, tenant: str | None, view: ClusterView) -> Iterator[_Sight]:
        """Count events from the first follower on, until the last one has left."""
        key = id(view), tenant  # the followers keep the view alive, so no other view has its id
        sight = self._sights.get(key)
        if sight is None:
            sight = self._sights[key] = _Sight(tenant)
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
                counted = await _counted(sight, services.events)
                elapsed_ms = EVERY_MS if sight.made_at_ms is None else now - sight.made_at_ms
                sight.made_at_ms = now
                sight.picture = _picture(sight, services, counted, elapsed_ms)
        return sight.picture


async def _counted(sight: _Sight, feed: EventFeed) -> Counter[str]:
    """Return how many events of each type there were since the last call. Missed events are not counted."""
    counted: Counter[str] = Counter()
    if sight.events is None:
        try:
            which = EventFilter(frozenset(_COUNTED), tenant=sight.tenant)
            sight.events = sight.counting.enter_context(feed.follow(None, which))
        except Overloaded:  # no room: the picture shows no numbers of events
            return counted
    while True:
        match await sight.events.next(0):
            case NewEvents(events) if events:
                counted.update(event.type.value for event in events)
            case Lagging() | Closing():
                _stop_counting(sight)
                return counted
            case _:
                return counted


def _stop_counting(sight: _Sight) -> None:
    sight.events = None
    sight.counting.close()


def _picture(sight: _Sight, services: ApiServices, counted: Counter[str], elapsed_ms: int) -> bytes:
    cluster, gauges = services.view.cluster(), services.view.gauges()
    live = gauges.jobs if sight.tenant is None else gauges.jobs_of_tenant.get(sight.tenant, {})
    numbers = {state: live.get(state, 0) for state in _LIVE}
    numbers |= {type.value: round(counted[type.value] * 1_000 / elapsed_ms) for type in _COUNTED}
    sight.history.append(tuple(numbers.values()))
    shown = {
        "at": instant_text(services.clock.wall_ms()),
        "cluster": show_cluster(cluster, services.view.unready_reason, of_all=sight.tenant is None).model_dump(
            mode="json", by_alias=True
        ),
        "processors": None
        if sight.tenant is not None
        else show_processors(cluster).model_dump(mode="json", by_alias=True),
        "slots": dict(gauges.slots),
        "alerts": [alert.shown() for alert in alerts(cluster, gauges, services.view.unready_reason)],
        "numbers": numbers,
        # How much of a lane belongs to one tenant is unknown.
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
    names = (*_LIVE, *(type.value for type in _COUNTED))
    columns = list(zip(*sight.history, strict=True)) or [() for _ in names]
    shown: dict[str, Any] = {
        "every_ms": EVERY_MS,
        "until": instant_text(services.clock.wall_ms()),
        "series": dict(zip(names, columns, strict=True)),
    }
    return b"event: history\ndata: " + orjson.dumps(shown) + b"\n\n"


async def _pieces(pictures: LivePictures, tenant: str | None, services: ApiServices) -> AsyncGenerator[bytes, None]:
    """Yield the last minutes, then a picture a second until this replica stops."""
    with pictures.followed(tenant, services.view) as sight:
        yield f"retry: {_RETRY_MS}\n\n".encode() + _history(sight, services)
        while not services.view.stopping:
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

    A picture holds what `/v1/cluster` and, for tokens for all tenants, `/v1/processors` answer, what is wrong
    (`alerts`, each with its runbook), and how many jobs wait, run, and were submitted, started and ended in the last
    second (`numbers`; of the token's tenant).

    `lanes` and `tenants` hold the 50 with the most live jobs, by state, and for lanes how long the oldest due job has
    waited; if `whole` is true, the left-out ones have no jobs. A token of one tenant sees its tenant and no lanes. They
    are null if more than 5000 have jobs.

    Each `picture` is complete: a client that reconnects needs no earlier ones. A stream ends after an hour at most.
    """
    pieces = _pieces(request.app.state.live, caller.only, services)
    return EventStream("viewers", pieces, lambda: still_identified(request.scope, caller))
