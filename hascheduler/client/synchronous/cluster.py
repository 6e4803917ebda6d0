# Written by scripts/generate-client from hascheduler/client/asynchronous/cluster.py: change that one.
"""``scheduler.cluster``: what the replicas see, and who changed what."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from hascheduler.client.bodies import query_of
from hascheduler.client.requests import Request, body_of, items_of
from hascheduler.client.synchronous.asking import Ask, Follow, each
from hascheduler.client.wire import (
    AuditResponse,
    ClusterResponse,
    FailoverResponse,
    ProcessorResponse,
    WhoamiResponse,
)
from hascheduler.model.durations import parse_duration


class ClusterApi:
    def __init__(self, ask: Ask, follow: Follow) -> None:
        self._ask = ask
        self._follow = follow

    def status(self) -> ClusterResponse:
        """The leader, the replicas and what is wrong, as the replica that answers sees it."""
        return self._ask(Request("GET", "/v1/cluster", body_of))

    def processors(self) -> Sequence[ProcessorResponse]:
        return self._ask(Request("GET", "/v1/processors", items_of))

    def failovers(self, limit: int | None = None) -> Sequence[FailoverResponse]:
        """The changes of leadership, the newest first."""
        return self._ask(Request("GET", "/v1/cluster/failovers", items_of, query_of(limit=limit)))

    def whoami(self) -> WhoamiResponse:
        """What the token of this scheduler may do."""
        return self._ask(Request("GET", "/v1/whoami", body_of))

    def audit(
        self,
        *,
        who: str | None = None,
        tenant: str | None = None,
        path: str | None = None,
        since: datetime | str | None = None,
    ) -> Iterator[AuditResponse]:
        """Who changed what, the newest first."""
        query = query_of(who=who, tenant=tenant, path=path, since=since)
        for record in each(self._ask, "/v1/audit", query):
            yield record

    def record(self, span: str | float) -> Iterator[str]:
        """What the leader is told and decides for so long, as lines of JSON for ``hascheduler simulate``. The leader
        has to be the replica that is asked."""
        # It may be silent for all of that time.
        span_s = parse_duration(span, ("for",)) / 1_000
        query = query_of(**{"for": span})
        for line in self._follow(Request("GET", "/v1/cluster/recording", body_of, query, more_s=span_s)):
            yield line
