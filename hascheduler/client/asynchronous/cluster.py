"""``scheduler.cluster``: what the replicas see, and who changed what; ``scheduler.tokens``: who may ask for what."""

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any, Unpack

from hascheduler.client import answers
from hascheduler.client.answers import DrainResponse, FailoversResponse, PausedResponse, ProcessorsResponse
from hascheduler.client.asynchronous.asking import AsyncPart
from hascheduler.client.bodies import plain
from hascheduler.client.options import AuditFilter, Role
from hascheduler.client.requests import delete, named, take_back
from hascheduler.model.values.durations import parse_duration

_SILENCE_MAX_S = 20.0
"""A replica sends a picture every second."""


class AsyncClusterApi(AsyncPart):
    async def status(self) -> answers.ClusterResponse:
        """The leader, the replicas and what is wrong, as the replica that answers sees it."""
        return await self._get(answers.ClusterResponse, "/v1/cluster")

    async def live(self) -> AsyncIterator[Mapping[str, Any]]:
        """The same once a second, with processors, alerts and numbers of jobs, over one connection and until that ends.
        Each is whole, so a caller that comes back needs nothing of those before."""
        event = ""
        async for line in self._follow("/v1/cluster/live", _SILENCE_MAX_S):
            name, _, value = line.partition(": ")
            if name == "event":
                event = value
            elif name == "data" and event == "picture":
                yield json.loads(value)

    async def processors(self) -> tuple[answers.ProcessorResponse, ...]:
        return (await self.processor_list()).items_

    async def processor_list(self) -> ProcessorsResponse:
        """The processors, and beside them the drained names that none of them has."""
        return await self._get(ProcessorsResponse, "/v1/processors")

    async def drain(self, name: str, because: str | None = None) -> DrainResponse:
        """The processors of that name get no new jobs, until `undrain`; what they have goes on."""
        return await self._post(DrainResponse, named("processors", name, "drain"), plain(because=because))

    async def undrain(self, name: str) -> DrainResponse:
        return await self._post(DrainResponse, named("processors", name, "undrain"))

    async def pause(self, because: str, *, schedules_only: bool = False) -> PausedResponse:
        """Everything: no schedule fires and, unless ``schedules_only``, no job is dispatched, until `resume`."""
        body = {"because": because, "schedules_only": schedules_only}
        return await self._post(PausedResponse, "/v1/cluster/pause", body)

    async def resume(self) -> PausedResponse:
        """All that `pause` has paused."""
        return await self._post(PausedResponse, "/v1/cluster/resume")

    async def failovers(self, limit: int | None = None) -> tuple[answers.FailoverResponse, ...]:
        """The changes of leadership, the newest first."""
        return (await self._get(FailoversResponse, "/v1/cluster/failovers", limit=limit)).items_

    async def whoami(self) -> answers.WhoamiResponse:
        """What the token of this scheduler may do."""
        return await self._get(answers.WhoamiResponse, "/v1/whoami")

    def audit(self, **filter: Unpack[AuditFilter]) -> AsyncIterator[answers.AuditResponse]:
        """Who changed what, the newest first."""
        return self._each(answers.AuditResponse, "/v1/audit", **filter)

    def record(self, span: str | float) -> AsyncIterator[str]:
        """The inputs and decisions of the leader for ``span``, as lines of JSON for ``hascheduler simulate``. The
        leader has to be the replica that is asked."""
        # It may be silent for all of that time.
        return self._follow("/v1/cluster/recording", parse_duration(span, ("for",)) / 1_000, **{"for": span})


class AsyncTokensApi(AsyncPart):
    async def create(
        self, name: str, role: Role, tenant: str = "*", *, expires_in: str | float | None = None
    ) -> answers.NewTokenResponse:
        """The only answer that shows the token itself. If it is unknown whether a try made one, and its id is told,
        that is revoked before the next; without an id it is sent once: after `Unavailable` look with `list` for one to
        revoke."""
        body = plain(name=name, role=role, tenant=tenant, expires_in=expires_in)
        return await self._post(answers.NewTokenResponse, "/v1/tokens", body, look=take_back("tokens"))

    def list(self) -> AsyncIterator[answers.TokenResponse]:
        return self._each(answers.TokenResponse, "/v1/tokens")

    async def revoke(self, token_id: str) -> bool:
        """False if there was none."""
        return await self._asker.ask(delete(named("tokens", token_id)))
