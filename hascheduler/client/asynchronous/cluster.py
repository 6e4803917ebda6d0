"""``scheduler.cluster``: what the replicas see, and who changed what."""

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any, Unpack

from hascheduler.client.answers import (
    AuditResponse,
    ClusterResponse,
    DrainResponse,
    FailoverResponse,
    FailoversResponse,
    PausedResponse,
    ProcessorResponse,
    ProcessorsResponse,
    WhoamiResponse,
)
from hascheduler.client.asynchronous.asking import Ask, Follow, each
from hascheduler.client.bodies import plain, query_of
from hascheduler.client.options import AuditFilter
from hascheduler.client.requests import Request, as_it_is, asked, named
from hascheduler.model.values.durations import parse_duration

_SILENCE_MAX_S = 20.0
"""A replica sends a picture every second."""


class AsyncClusterApi:
    def __init__(self, ask: Ask, follow: Follow) -> None:
        self._ask = ask
        self._follow = follow

    async def status(self) -> ClusterResponse:
        """The leader, the replicas and what is wrong, as the replica that answers sees it."""
        return await self._ask(asked(ClusterResponse, "GET", "/v1/cluster"))

    async def live(self) -> AsyncIterator[Mapping[str, Any]]:
        """The same once a second, with processors, alerts and numbers of jobs, over one connection and until that ends.
        Each is whole, so a caller that comes back needs nothing of those before."""
        request: Request[Any] = asked(as_it_is, "GET", "/v1/cluster/live", more_s=_SILENCE_MAX_S)
        event = ""
        async for line in self._follow(request):
            name, _, value = line.partition(": ")
            if name == "event":
                event = value
            elif name == "data" and event == "picture":
                yield json.loads(value)

    async def processors(self) -> tuple[ProcessorResponse, ...]:
        return (await self.processor_list()).items_

    async def processor_list(self) -> ProcessorsResponse:
        """The processors, and beside them the drained names that none of them has."""
        return await self._ask(asked(ProcessorsResponse, "GET", "/v1/processors"))

    async def drain(self, name: str, because: str | None = None) -> DrainResponse:
        """The processors of that name get no new jobs, until `undrain`; what they have goes on."""
        path = named("processors", name, "drain")
        return await self._ask(asked(DrainResponse, "POST", path, body=plain(because=because)))

    async def undrain(self, name: str) -> DrainResponse:
        return await self._ask(asked(DrainResponse, "POST", named("processors", name, "undrain")))

    async def pause(self, because: str, *, schedules_only: bool = False) -> PausedResponse:
        """Everything: no schedule fires and, unless ``schedules_only``, no job is dispatched, until `resume`."""
        body = plain(because=because, schedules_only=schedules_only)
        return await self._ask(asked(PausedResponse, "POST", "/v1/cluster/pause", body=body))

    async def resume(self) -> PausedResponse:
        """All that `pause` has paused."""
        return await self._ask(asked(PausedResponse, "POST", "/v1/cluster/resume"))

    async def failovers(self, limit: int | None = None) -> tuple[FailoverResponse, ...]:
        """The changes of leadership, the newest first."""
        query = query_of(limit=limit)
        return (await self._ask(asked(FailoversResponse, "GET", "/v1/cluster/failovers", query))).items_

    async def whoami(self) -> WhoamiResponse:
        """What the token of this scheduler may do."""
        return await self._ask(asked(WhoamiResponse, "GET", "/v1/whoami"))

    async def audit(self, **filter: Unpack[AuditFilter]) -> AsyncIterator[AuditResponse]:
        """Who changed what, the newest first."""
        async for record in each(self._ask, "/v1/audit", query_of(**filter), AuditResponse):
            yield record

    async def record(self, span: str | float) -> AsyncIterator[str]:
        """The inputs and decisions of the leader for ``span``, as lines of JSON for ``hascheduler simulate``. The
        leader has to be the replica that is asked."""
        # It may be silent for all of that time.
        span_s = parse_duration(span, ("for",)) / 1_000
        query = query_of(**{"for": span})
        async for line in self._follow(asked(as_it_is, "GET", "/v1/cluster/recording", query, more_s=span_s)):
            yield line
