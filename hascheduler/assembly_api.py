"""Puts the HTTP API of a replica together, for `hascheduler.assembly`, which imports it when a replica starts: FastAPI
and all routes are half of what a replica imports, and a processor, a check and a migration have no use for them.
"""

from secrets import token_hex

from hascheduler.api.admission.control import AdmissionControl
from hascheduler.api.admission.schedule_limits import ScheduleLimits
from hascheduler.api.admission.worker_registrations import WorkerRegistrations, WorkTerms
from hascheduler.api.app import ApiServices
from hascheduler.api.middleware.audit_writer import AuditWriter
from hascheduler.api.middleware.auth import AuthConfig, PageTerms
from hascheduler.daemon.replica import Replica
from hascheduler.model.collection import Collection
from hascheduler.model.documents.calendar import encode_calendar
from hascheduler.model.documents.definition import encode_definition
from hascheduler.model.documents.lane import encode_lane
from hascheduler.model.documents.pause import encode_pause
from hascheduler.model.documents.tenant import encode_tenant
from hascheduler.model.job import JobRef
from hascheduler.model.token import digest_of
from hascheduler.mongo.audit_log import MongoAuditStore
from hascheduler.mongo.buckets import MongoBucketStore
from hascheduler.mongo.connection import Database
from hascheduler.mongo.failovers import MongoFailoverStore
from hascheduler.mongo.jobs.store import MongoJobStore
from hascheduler.mongo.matches import MongoMatchStore
from hascheduler.mongo.operations import MongoOperationStore
from hascheduler.mongo.resources import MongoResourceStore
from hascheduler.mongo.schedules import MongoScheduleStore
from hascheduler.mongo.tokens import MongoTokenStore
from hascheduler.mongo.verdicts import MongoVerdictStore
from hascheduler.ports import Clock, WorkStore
from hascheduler.settings import Settings
from hascheduler.telemetry.metrics_http import HttpMetrics
from hascheduler.telemetry.tracing import Tracer


def services_of(
    settings: Settings,
    database: Database,
    replica: Replica,
    clock: Clock,
    work: WorkStore,
    *,
    heartbeat_deadline_ms: int,
    tracer: Tracer,
    metrics: HttpMetrics,
) -> ApiServices:
    ids = _JobIds(clock)
    admission = AdmissionControl(replica.view, MongoBucketStore(database), clock, settings.max_pending, metrics.refused)

    def count_arrival(job: JobRef) -> None:
        admission.arrived(job.tenant, own=ids.made(job.id))

    replica.on_job_arrival(count_arrival)
    audit = MongoAuditStore(database, settings.audit_retention_ms)
    return ApiServices(
        schedules=MongoScheduleStore(database),
        definitions=MongoResourceStore(database, Collection.DEFINITIONS, encode_definition),
        lanes=MongoResourceStore(database, Collection.LANES, encode_lane),
        calendars=MongoResourceStore(database, Collection.CALENDARS, encode_calendar),
        tenants=MongoResourceStore(database, Collection.TENANTS, encode_tenant),
        pauses=MongoResourceStore(database, Collection.PAUSES, encode_pause),
        jobs=MongoJobStore(database, settings.job_retention_ms),
        admission=admission,
        verdicts=MongoVerdictStore(database),
        view=replica.view,
        events=replica.events,
        clock=clock,
        new_job_id=ids.new,
        auth=auth_config(settings),
        tokens=MongoTokenStore(database),
        audit=audit,
        audit_writer=AuditWriter(audit, clock, settings.audit_log_max),
        work=work,
        work_terms=_work_terms(settings, heartbeat_deadline_ms),
        registrations=WorkerRegistrations(replica.view, clock),
        failovers=MongoFailoverStore(database),
        operations=MongoOperationStore(database),
        matches=MongoMatchStore(database),
        schedule_limits=ScheduleLimits(settings.tenant_schedules_max, settings.least_interval_ms),
        tracer=tracer,
        metrics=metrics,
    )


def auth_config(settings: Settings) -> AuthConfig:
    token = settings.admin_token.get_secret_value()
    return AuthConfig(
        settings.tokens_demanded,
        digest_of(token) if token else None,
        settings.own_hosts,
        any_address=not settings.listens_on_loopback,
        pages=PageTerms(
            settings.ui,
            settings.ui_session_life_ms,
            read_only=settings.ui_read_only,
            shows_payloads=settings.ui_payloads == "on_request",
            environment=settings.ui_name,
        ),
    )


def _work_terms(settings: Settings, deadline_ms: int) -> WorkTerms:
    return WorkTerms(settings.shard, settings.heartbeat_interval_ms, deadline_ms, settings.token_processors_max)


class _JobIds:
    """Ids that sort by time of submission: milliseconds, a counter within this process, and chance against others."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._process = token_hex(5)
        self._count = 0

    def new(self) -> str:
        self._count = (self._count + 1) % 0x1000000
        return f"job:{self._clock.wall_ms():011x}{self._count:06x}{self._process}"

    def made(self, id: str) -> bool:
        """Whether it is one of these, also within the id of a triggered job."""
        return id.endswith(self._process)
