# Written by scripts/generate-client from hascheduler/client/asynchronous/operations.py: change that one.
"""``scheduler.cluster``: the state of the cluster and the audit log; ``scheduler.tokens``: tokens and their roles.

``scheduler.work``: take jobs and end them over HTTP, for processors without the broker and the database.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, Unpack

from hascheduler.client import answers
from hascheduler.client.answers import DrainResponse, FailoversResponse, PausedResponse, ProcessorsResponse
from hascheduler.client.bodies import plain
from hascheduler.client.options import AttemptName, AuditFilter, FinishOptions, RegisterBody, Report, Role
from hascheduler.client.requests import delete, named, take_back
from hascheduler.client.synchronous.asking import Part
from hascheduler.model.values.instants import parse_duration

_SILENCE_MAX_S = 20.0
"""How long a replica may be silent; it sends a picture every second."""
_PROCESSORS = "work/processors"


class ClusterApi(Part):
    def status(self) -> answers.ClusterResponse:
        """Return the leader, the replicas and the verdict (`health`), as the replica that answers sees them."""
        return self._get(answers.ClusterResponse, "/v1/cluster")

    def live(self) -> Iterator[Mapping[str, Any]]:
        """Yield the whole status once a second, with processors and job counts, over one connection."""
        event = ""
        for line in self._follow("/v1/cluster/live", _SILENCE_MAX_S):
            name, _, value = line.partition(": ")
            if name == "event":
                event = value
            elif name == "data" and event == "picture":
                yield json.loads(value)

    def processors(self) -> tuple[answers.ProcessorResponse, ...]:
        return (self.processor_list()).items_

    def processor_list(self) -> ProcessorsResponse:
        """Return the processors, and the drained names that none of them has."""
        return self._get(ProcessorsResponse, "/v1/processors")

    def drain(self, name: str, because: str | None = None) -> DrainResponse:
        """Give processors of that name no new jobs until `undrain`; jobs that they hold go on."""
        return self._post(DrainResponse, named("processors", name, "drain"), plain(because=because))

    def undrain(self, name: str) -> DrainResponse:
        return self._post(DrainResponse, named("processors", name, "undrain"))

    def pause(self, because: str, *, schedules_only: bool = False) -> PausedResponse:
        """Pause everything until `resume`: no schedule fires and, unless ``schedules_only``, no job is dispatched."""
        body = {"because": because, "schedules_only": schedules_only}
        return self._post(PausedResponse, "/v1/cluster/pause", body)

    def resume(self) -> PausedResponse:
        """Resume everything that `pause` has paused."""
        return self._post(PausedResponse, "/v1/cluster/resume")

    def failovers(self, limit: int | None = None) -> tuple[answers.FailoverResponse, ...]:
        """Return the changes of leadership, the newest first."""
        return (self._get(FailoversResponse, "/v1/cluster/failovers", limit=limit)).items_

    def health(self, *, live: bool = False) -> str:
        """Return why the process at the URL is not ready, or with ``live`` why it is not alive; "" if it is.

        The URL may be that of a health port, which processors have too.
        """
        return self._ask(lambda body: str(body["reason"]), "GET", "/livez" if live else "/readyz", answers=(503,))

    def whoami(self) -> answers.WhoamiResponse:
        """Return the permissions of this scheduler's token."""
        return self._get(answers.WhoamiResponse, "/v1/whoami")

    def audit(self, **filter: Unpack[AuditFilter]) -> Iterator[answers.AuditResponse]:
        """Yield who changed what, the newest first."""
        return self._each(answers.AuditResponse, "/v1/audit", **filter)

    def record(self, span: str | float) -> Iterator[str]:
        """Yield the leader's inputs and decisions for ``span``, for ``hascheduler simulate``; ask the leader itself."""
        # The leader may be silent for all of that time.
        return self._follow("/v1/cluster/recording", parse_duration(span, ("for",)) / 1_000, **{"for": span})


class TokensApi(Part):
    def create(
        self, name: str, role: Role, tenant: str = "*", *, expires_in: str | float | None = None
    ) -> answers.NewTokenResponse:
        """Create a token; only this answer shows the token itself.

        A token that a failed try may have made is revoked before the next try. If its id is not known, there is no next
        try: after `Unavailable`, find it with `list` and revoke it.
        """
        body = plain(name=name, role=role, tenant=tenant, expires_in=expires_in)
        return self._post(answers.NewTokenResponse, "/v1/tokens", body, probe=take_back("tokens"))

    def list(self) -> Iterator[answers.TokenResponse]:
        return self._each(answers.TokenResponse, "/v1/tokens")

    def revoke(self, token_id: str) -> bool:
        """Revoke a token; return False if there was none."""
        return self._asker.ask(delete(named("tokens", token_id)))


class WorkApi(Part):
    """The exchange of processors in other languages; a program in Python has `hascheduler.processor`."""

    def register(self, **processor: Unpack[RegisterBody]) -> answers.RegisteredResponse:
        """Register a processor; return it, and how often it has to send a heartbeat.

        If the answer is lost, the registration goes unused and expires.
        """
        path, probe = f"/v1/{_PROCESSORS}", take_back(_PROCESSORS)
        return self._post(answers.RegisteredResponse, path, dict(processor), probe=probe)

    def deregister(self, processor: str) -> bool:
        """Deregister it, so that its attempts go to others; return False if it was not registered."""
        return self._asker.ask(delete(named(_PROCESSORS, processor)))

    def fetch(
        self, processor: str, *, wait: float = 0.0, limit: int | None = None, running: Sequence[AttemptName] = ()
    ) -> answers.FetchResponse:
        """Return attempts promised to it; wait up to ``wait`` seconds until there is one."""
        body = plain(processor=processor, wait=wait, limit=limit, running=list(running))
        return self._post(answers.FetchResponse, "/v1/work/fetch", body, held_s=wait)

    def start(self, job: str, attempt: int, processor: str) -> answers.StartedResponse:
        """Return the payload of an attempt that is still the processor's; otherwise raise `Refused`, 409: drop it."""
        body = {"job": job, "attempt": attempt, "processor": processor}
        return self._post(answers.StartedResponse, "/v1/work/start", body)

    def heartbeat(
        self, processor: str, *, running: Sequence[Report] = (), draining: bool | None = None
    ) -> answers.HeldAttemptsResponse:
        """Send a heartbeat with the progress of each attempt; return which of them have to stop."""
        body = plain(processor=processor, running=list(running), draining=draining)
        return self._post(answers.HeldAttemptsResponse, "/v1/work/heartbeat", body)

    def finish(
        self,
        job: str,
        attempt: int,
        processor: str,
        outcome: Literal["succeeded", "failed", "cancelled", "given_back"],
        **options: Unpack[FinishOptions],
    ) -> answers.FinishResponse:
        """Report how the attempt ended; return ``done``, or ``late`` if the job had gone on without it."""
        body = plain(job=job, attempt=attempt, processor=processor, outcome=outcome, **options)
        return self._post(answers.FinishResponse, "/v1/work/finish", body)
