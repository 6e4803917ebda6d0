"""The collaborators of the routes: ports, limits, metrics.

They come with each request, in ``scope["state"]``: the edge puts in those of its deployment, and a layer between the
edge and the routes may put in others, in a copy of the state. So one set of routes serves several schedulers. Their
`SharedServices` must be the same objects.
"""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request
from starlette.types import Scope

from hascheduler.api.admission.control import AdmissionControl
from hascheduler.api.admission.logins import Logins
from hascheduler.api.admission.schedule_limits import ScheduleLimits
from hascheduler.api.admission.worker_registrations import WorkerRegistrations, WorkTerms
from hascheduler.api.http.limits import Limits, limits
from hascheduler.api.middleware.audit import AuditWriter
from hascheduler.api.middleware.auth import AuthConfig
from hascheduler.api.routing.long_poll import SharedWaits
from hascheduler.api.routing.recent_reads import RecentReads
from hascheduler.ports import (
    AuditStore,
    Clock,
    ClusterView,
    EventFeed,
    FailoverStore,
    JobStore,
    ResourceStore,
    ScheduleStore,
    TokenStore,
    VerdictStore,
    WorkStore,
)
from hascheduler.schema.calendar import Calendar
from hascheduler.schema.definition import Definition
from hascheduler.schema.lane import Lane
from hascheduler.schema.pause import StandingPause
from hascheduler.schema.tenant import Tenant
from hascheduler.telemetry.health import Health
from hascheduler.telemetry.metrics_http import HttpMetrics
from hascheduler.telemetry.tracing import NO_TRACING, Tracer


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedServices:
    """The collaborators that belong to the process, so that all its shards share them."""

    clock: Clock
    auth: AuthConfig
    tokens: TokenStore
    audit: AuditStore
    audit_writer: AuditWriter
    schedule_limits: ScheduleLimits = field(default_factory=ScheduleLimits)
    metrics: HttpMetrics = field(default_factory=HttpMetrics)
    tracer: Tracer = NO_TRACING
    limits: Limits = field(default_factory=limits)
    logins: Logins = field(default_factory=Logins)
    health: Health | None = None
    """The health of the process; None stands for the health of the replica that `ApiServices.view` belongs to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiServices(SharedServices):
    """The collaborators of the routes that answer one request.

    ``new_id`` returns ids that never repeat and that sort by time, ``new_job_id`` the id of a job of the given tenant.
    """

    schedules: ScheduleStore
    definitions: ResourceStore[Definition]
    lanes: ResourceStore[Lane]
    calendars: ResourceStore[Calendar]
    tenants: ResourceStore[Tenant]
    pauses: ResourceStore[StandingPause]
    jobs: JobStore
    admission: AdmissionControl
    verdicts: VerdictStore
    view: ClusterView
    events: EventFeed
    new_id: Callable[[], str]
    new_job_id: Callable[[str], str]
    work: WorkStore
    work_terms: WorkTerms
    registrations: WorkerRegistrations
    failovers: FailoverStore
    waits: SharedWaits = field(default_factory=SharedWaits)
    replicas_expected: int = 0
    """How many replicas should be alive; 0: as many as were alive within the last hour."""
    recent: RecentReads = field(default_factory=RecentReads)
    is_one_of_several: bool = False
    """True if other schedulers hold other tenants.

    Then jobs may depend only on jobs of their own tenant, and processors that are unknown here may be known there.
    """
    tenants_in: Callable[[int], Awaitable[Collection[str]]] | None = None
    """Read the tenants of a partition that have any document here; None if all tenants are here."""
    peer_key: bytes | None = None
    """The key by which replicas sign their claims about requests that they pass on; None if no claim is trusted."""


async def _services(request: Request) -> ApiServices:
    return services_of(request.scope)


def services_of(scope: Scope) -> ApiServices:
    """Return the services that answer the request."""
    services = scope["state"]["services"]
    assert isinstance(services, ApiServices)
    return services


Services = Annotated[ApiServices, Depends(_services)]
