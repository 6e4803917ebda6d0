# Written by scripts/generate-client from hascheduler/client/asynchronous/cluster.py: change that one.
"""``scheduler.cluster``: what the replicas see, and who changed what; ``scheduler.tokens``: who may ask for what."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Unpack

from hascheduler.client import answers
from hascheduler.client.answers import DrainResponse, FailoversResponse, PausedResponse, ProcessorsResponse
from hascheduler.client.bodies import plain
from hascheduler.client.options import AuditFilter, Role
from hascheduler.client.requests import delete, named, take_back
from hascheduler.client.synchronous.asking import Part
from hascheduler.model.values.durations import parse_duration

_SILENCE_MAX_S = 20.0
"""A replica sends a picture every second."""


class ClusterApi(Part):
    def status(self) -> answers.ClusterResponse:
        """The leader, the replicas and what is wrong, as the replica that answers sees it."""
        return self._get(answers.ClusterResponse, "/v1/cluster")

    def live(self) -> Iterator[Mapping[str, Any]]:
        """The same once a second, with processors, alerts and numbers of jobs, over one connection and until that ends.
        Each is whole, so a caller that comes back needs nothing of those before."""
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
        """The processors, and beside them the drained names that none of them has."""
        return self._get(ProcessorsResponse, "/v1/processors")

    def drain(self, name: str, because: str | None = None) -> DrainResponse:
        """The processors of that name get no new jobs, until `undrain`; what they have goes on."""
        return self._post(DrainResponse, named("processors", name, "drain"), plain(because=because))

    def undrain(self, name: str) -> DrainResponse:
        return self._post(DrainResponse, named("processors", name, "undrain"))

    def pause(self, because: str, *, schedules_only: bool = False) -> PausedResponse:
        """Everything: no schedule fires and, unless ``schedules_only``, no job is dispatched, until `resume`."""
        body = {"because": because, "schedules_only": schedules_only}
        return self._post(PausedResponse, "/v1/cluster/pause", body)

    def resume(self) -> PausedResponse:
        """All that `pause` has paused."""
        return self._post(PausedResponse, "/v1/cluster/resume")

    def failovers(self, limit: int | None = None) -> tuple[answers.FailoverResponse, ...]:
        """The changes of leadership, the newest first."""
        return (self._get(FailoversResponse, "/v1/cluster/failovers", limit=limit)).items_

    def whoami(self) -> answers.WhoamiResponse:
        """What the token of this scheduler may do."""
        return self._get(answers.WhoamiResponse, "/v1/whoami")

    def audit(self, **filter: Unpack[AuditFilter]) -> Iterator[answers.AuditResponse]:
        """Who changed what, the newest first."""
        return self._each(answers.AuditResponse, "/v1/audit", **filter)

    def record(self, span: str | float) -> Iterator[str]:
        """The inputs and decisions of the leader for ``span``, as lines of JSON for ``hascheduler simulate``. The
        leader has to be the replica that is asked."""
        # It may be silent for all of that time.
        return self._follow("/v1/cluster/recording", parse_duration(span, ("for",)) / 1_000, **{"for": span})


class TokensApi(Part):
    def create(
        self, name: str, role: Role, tenant: str = "*", *, expires_in: str | float | None = None
    ) -> answers.NewTokenResponse:
        """The only answer that shows the token itself. If it is unknown whether a try made one, and its id is told,
        that is revoked before the next; without an id it is sent once: after `Unavailable` look with `list` for one to
        revoke."""
        body = plain(name=name, role=role, tenant=tenant, expires_in=expires_in)
        return self._post(answers.NewTokenResponse, "/v1/tokens", body, look=take_back("tokens"))

    def list(self) -> Iterator[answers.TokenResponse]:
        return self._each(answers.TokenResponse, "/v1/tokens")

    def revoke(self, token_id: str) -> bool:
        """False if there was none."""
        return self._asker.ask(delete(named("tokens", token_id)))
