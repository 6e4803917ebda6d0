"""``scheduler.cluster``: the state of the cluster and the audit log; ``scheduler.tokens``: tokens and their roles.

``scheduler.work``: take jobs and end them over HTTP, for processors without the broker and the database.
"""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Literal, Unpack

from hascheduler.client import answers
from hascheduler.client.answers import DrainResponse, FailoversResponse, PausedResponse, ProcessorsResponse
from hascheduler.client.asynchronous.asking import AsyncPart
from hascheduler.client.bodies import plain
from hascheduler.client.options import AttemptName, AuditFilter, FinishOptions, RegisterBody, Report, Role
from hascheduler.client.requests import delete, named, take_back
from hascheduler.model.values.instants import parse_duration

_SILENCE_MAX_S = 20.0
"""How long a replica may be silent; it sends a picture every second."""
_PROCESSORS = "work/processors"


class AsyncClusterApi(AsyncPart):
    async def status(self) -> answers.ClusterResponse:
        """Return the leader, the replicas and the verdict (`health`), as the replica that answers sees them."""
        return await self._get(answers.ClusterResponse, "/v1/cluster")

    async def live(self) -> AsyncIterator[Mapping[str, Any]]:
        """Yield the whole status once a second, with processors and job counts, over one connection."""
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
        """Return the processors, and the drained names that none of them has."""
        return await self._get(ProcessorsResponse, "/v1/processors")

    async def drain(self, name: str, because: str | None = None) -> DrainResponse:
        """Give processors of that name no new jobs until `undrain`; jobs that they hold go on."""
        return await self._post(DrainResponse, named("processors", name, "drain"), plain(because=because))

    async def undrain(self, name: str) -> DrainResponse:
        return await self._post(DrainResponse, named("processors", name, "undrain"))

    async def pause(self, because: str, *, schedules_only: bool = False) -> PausedResponse:
        """Pause everything until `resume`: no schedule fires and, unless ``schedules_only``, no job is dispatched."""
        body = {"because": because, "schedules_only": schedules_only}
        return await self._post(PausedResponse, "/v1/cluster/pause", body)

    async def resume(self) -> PausedResponse:
        """Resume everything that `pause` has paused."""
        return await self._post(PausedResponse, "/v1/cluster/resume")

    async def failovers(self, limit: int | None = None) -> tuple[answers.FailoverResponse, ...]:
        """Return the changes of leadership, the newest first."""
        return (await self._get(FailoversResponse, "/v1/cluster/failovers", limit=limit)).items_

    async def health(self, *, live: bool = False) -> str:
        """Return why the process at the URL is not ready, or with ``live`` why it is not alive; "" if it is.

        The URL may be that of a health port, which processors have too.
        """
        return await self._ask(lambda body: str(body["reason"]), "GET", "/livez" if live else "/readyz", answers=(503,))

    async def whoami(self) -> answers.WhoamiResponse:
        """Return the permissions of this scheduler's token."""
        return await self._get(answers.WhoamiResponse, "/v1/whoami")

    def audit(self, **filter: Unpack[AuditFilter]) -> AsyncIterator[answers.AuditResponse]:
        """Yield who changed what, the newest first."""
        return self._each(answers.AuditResponse, "/v1/audit", **filter)

    def record(self, span: str | float) -> AsyncIterator[str]:
        """Yield the leader's inputs and decisions for ``span``, for ``hascheduler simulate``; ask the leader itself."""
        # The leader may be silent for all of that time.
        return self._follow("/v1/cluster/recording", parse_duration(span, ("for",)) / 1_000, **{"for": span})


class AsyncTokensApi(AsyncPart):
    async def create(
        self, name: str, role: Role, tenant: str = "*", *, expires_in: str | float | None = None
    ) -> answers.NewTokenResponse:
        """Create a token; only this answer shows the token itself.

        A token that a failed try may have made is revoked before the next try. If its id is not known, there is no next
        try: after `Unavailable`, find it with `list` and revoke it.
        """
        body = plain(name=name, role=role, tenant=tenant, expires_in=expires_in)
        return await self._post(answers.NewTokenResponse, "/v1/tokens", body, probe=take_back("tokens"))

    def list(self) -> AsyncIterator[answers.TokenResponse]:
        return self._each(answers.TokenResponse, "/v1/tokens")

    async def revoke(self, token_id: str) -> bool:
        """Revoke a token; return False if there was none."""
        return await self._asker.ask(delete(named("tokens", token_id)))


class AsyncWorkApi(AsyncPart):
    """The exchange of processors in other languages; a program in Python has `hascheduler.processor`."""

    async def register(self, **processor: Unpack[RegisterBody]) -> answers.RegisteredResponse:
        """Register a processor; return it, and how often it has to send a heartbeat.

        If the answer is lost, the registration goes unused and expires.
        """
        path, probe = f"/v1/{_PROCESSORS}", take_back(_PROCESSORS)
        return await self._post(answers.RegisteredResponse, path, dict(processor), probe=probe)

    async def deregister(self, processor: str) -> bool:
        """Deregister it, so that its attempts go to others; return False if it was not registered."""
        return await self._asker.ask(delete(named(_PROCESSORS, processor)))

    async def fetch(
        self, processor: str, *, wait: float = 0.0, limit: int | None = None, running: Sequence[AttemptName] = ()
    ) -> answers.FetchResponse:
        """Return attempts promised to it; wait up to ``wait`` seconds until there is one."""
        body = plain(processor=processor, wait=wait, limit=limit, running=list(running))
        return await self._post(answers.FetchResponse, "/v1/work/fetch", body, held_s=wait)

    async def start(self, job: str, attempt: int, processor: str) -> answers.StartedResponse:
        """Return the payload of an attempt that is still the processor's; otherwise raise `Refused`, 409: drop it."""
        body = {"job": job, "attempt": attempt, "processor": processor}
        return await self._post(answers.StartedResponse, "/v1/work/start", body)

    async def heartbeat(
        self, processor: str, *, running: Sequence[Report] = (), draining: bool | None = None
    ) -> answers.HeldAttemptsResponse:
        """Send a heartbeat with the progress of each attempt; return which of them have to stop."""
        body = plain(processor=processor, running=list(running), draining=draining)
        return await self._post(answers.HeldAttemptsResponse, "/v1/work/heartbeat", body)

    async def finish(
        self,
        job: str,
        attempt: int,
        processor: str,
        outcome: Literal["succeeded", "failed", "cancelled", "given_back"],
        **options: Unpack[FinishOptions],
    ) -> answers.FinishResponse:
        """Report how the attempt ended; return ``done``, or ``late`` if the job had gone on without it."""
        body = plain(job=job, attempt=attempt, processor=processor, outcome=outcome, **options)
        return await self._post(answers.FinishResponse, "/v1/work/finish", body)
