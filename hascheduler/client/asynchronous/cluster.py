"""``scheduler.cluster``: what the replicas see, and who changed what."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from hascheduler.client.asynchronous.asking import Ask, Follow, each
from hascheduler.client.bodies import encoded, plain, query_of
from hascheduler.client.requests import Request, body_of, items_of, named
from hascheduler.client.wire import (
    AuditResponse,
    ClusterResponse,
    DrainResponse,
    FailoverResponse,
    PausedResponse,
    ProcessorResponse,
    ProcessorsResponse,
    WhoamiResponse,
)
from hascheduler.model.values.durations import parse_duration

_SILENCE_MAX_S = 20.0
"""A replica sends a picture every second."""


class AsyncClusterApi:
    def __init__(self, ask: Ask, follow: Follow) -> None:
        self._ask = ask
        self._follow = follow

    async def status(self) -> ClusterResponse:
        """The leader, the replicas and what is wrong, as the replica that answers sees it."""
        return await self._ask(Request("GET", "/v1/cluster", body_of))

    async def live(self) -> AsyncIterator[Mapping[str, Any]]:
        """The same once a second, with processors, alerts and numbers of jobs, over one connection and until that ends.
        Each is whole, so a caller that comes back needs nothing of those before."""
        request: Request[Any] = Request("GET", "/v1/cluster/live", body_of, more_s=_SILENCE_MAX_S)
        event = ""
        async for line in self._follow(request):
            name, _, value = line.partition(": ")
            if name == "event":
                event = value
            elif name == "data" and event == "picture":
                yield json.loads(value)

    async def processors(self) -> Sequence[ProcessorResponse]:
        return await self._ask(Request("GET", "/v1/processors", items_of))

    async def processor_list(self) -> ProcessorsResponse:
        """The processors, and beside them the drained names that none of them has."""
        return await self._ask(Request("GET", "/v1/processors", body_of))

    async def drain(self, name: str, because: str | None = None) -> DrainResponse:
        """The processors of that name get no new jobs, until `undrain`; what they have goes on."""
        path, content = named("processors", name, "drain"), encoded(plain(because=because))
        return await self._ask(Request("POST", path, body_of, content=content))

    async def undrain(self, name: str) -> DrainResponse:
        return await self._ask(Request("POST", named("processors", name, "undrain"), body_of))

    async def pause(self, because: str, *, schedules_only: bool = False) -> PausedResponse:
        """Everything: no schedule fires and, unless ``schedules_only``, no job is dispatched, until `resume`."""
        content = encoded(plain(because=because, schedules_only=schedules_only))
        return await self._ask(Request("POST", "/v1/cluster/pause", body_of, content=content))

    async def resume(self) -> PausedResponse:
        """All that `pause` has paused."""
        return await self._ask(Request("POST", "/v1/cluster/resume", body_of))

    async def failovers(self, limit: int | None = None) -> Sequence[FailoverResponse]:
        """The changes of leadership, the newest first."""
        return await self._ask(Request("GET", "/v1/cluster/failovers", items_of, query_of(limit=limit)))

    async def whoami(self) -> WhoamiResponse:
        """What the token of this scheduler may do."""
        return await self._ask(Request("GET", "/v1/whoami", body_of))

    async def audit(
        self,
        *,
        who: str | None = None,
        tenant: str | None = None,
        path: str | None = None,
        since: datetime | str | None = None,
    ) -> AsyncIterator[AuditResponse]:
        """Who changed what, the newest first."""
        query = query_of(who=who, tenant=tenant, path=path, since=since)
        async for record in each(self._ask, "/v1/audit", query):
            yield record

    async def record(self, span: str | float) -> AsyncIterator[str]:
        """The inputs and decisions of the leader for ``span``, as lines of JSON for ``hascheduler simulate``. The
        leader has to be the replica that is asked."""
        # It may be silent for all of that time.
        span_s = parse_duration(span, ("for",)) / 1_000
        query = query_of(**{"for": span})
        async for line in self._follow(Request("GET", "/v1/cluster/recording", body_of, query, more_s=span_s)):
            yield line
