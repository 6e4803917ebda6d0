"""Assembles the HTTP API of a replica for `hascheduler.assembly`, which imports it when a replica starts.

FastAPI and all routes are half of a replica's imports, and a processor, a check and a migration do not need them.
"""

from dataclasses import dataclass, fields
from secrets import token_hex
from typing import Any

from hascheduler.api.admission.control import AdmissionControl
from hascheduler.api.admission.schedule_limits import ScheduleLimits
from hascheduler.api.admission.worker_registrations import WorkerRegistrations, WorkTerms
from hascheduler.api.middleware.audit import AuditWriter
from hascheduler.api.middleware.auth import AuthConfig, PageTerms
from hascheduler.api.services import ApiServices, SharedServices
from hascheduler.daemon.replica import Replica
from hascheduler.model.collection import Collection
from hascheduler.model.job import JobRef
from hascheduler.model.partition import PARTITION_SUFFIX_LENGTH, with_partition
from hascheduler.model.token import digest_of
from hascheduler.mongo.access import MongoAuditStore, MongoTokenStore
from hascheduler.mongo.buckets import MongoBucketStore
from hascheduler.mongo.connection import Database
from hascheduler.mongo.jobs.store import MongoJobStore
from hascheduler.mongo.replicas import MongoFailoverStore
from hascheduler.mongo.resources import MongoResourceStore
from hascheduler.mongo.schedules import MongoScheduleStore
from hascheduler.mongo.verdicts import MongoVerdictStore
from hascheduler.mongo.work.store import MongoWorkStore
from hascheduler.ports import BucketStore, Clock
from hascheduler.schema.noun import document_of
from hascheduler.settings import Settings, heartbeat_deadline_ms
from hascheduler.telemetry.health import Health
from hascheduler.telemetry.metrics_http import HttpMetrics
from hascheduler.telemetry.tracing import Tracer


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessServices(SharedServices):
    """The services that all shards of one process share, with the ids that it gives out."""

    ids: "JobIds"

    @classmethod
    def of(
        cls, settings: Settings, home: Database, clock: Clock, tracer: Tracer, metrics: HttpMetrics, *, health: Health
    ) -> "ProcessServices":
        """Return the services of a process whose tokens and records are in the database ``home``."""
        audit = MongoAuditStore(home, settings.audit_retention_ms)
        return cls(
            clock=clock,
            ids=JobIds(clock),
            auth=auth_config(settings),
            tokens=MongoTokenStore(home),
            audit=audit,
            audit_writer=AuditWriter(audit, clock, settings.audit_log_max),
            schedule_limits=ScheduleLimits(settings.tenant_schedules_max, settings.least_interval_ms),
            metrics=metrics,
            tracer=tracer,
            health=health,
        )


def services_of(
    settings: Settings, process: ProcessServices, shard: str, database: Database, replica: Replica, *, count: int = 1
) -> ApiServices:
    """Return the services of one shard, whose ``replica`` here has not begun.

    ``count`` is the number of shards: if there are several, the id of a job holds its partition.
    """
    new_job_id = process.ids.new_job_id
    shared: dict[str, Any] = {each.name: getattr(process, each.name) for each in fields(SharedServices)}
    return ApiServices(
        **shared,
        schedules=MongoScheduleStore(database),
        definitions=MongoResourceStore(database, Collection.DEFINITIONS, document_of),
        lanes=MongoResourceStore(database, Collection.LANES, document_of),
        calendars=MongoResourceStore(database, Collection.CALENDARS, document_of),
        tenants=MongoResourceStore(database, Collection.TENANTS, document_of),
        pauses=MongoResourceStore(database, Collection.PAUSES, document_of),
        jobs=MongoJobStore(database, settings.job_retention_ms),
        admission=_admission(settings, process, MongoBucketStore(database), replica),
        verdicts=MongoVerdictStore(database),
        view=replica.view,
        events=replica.events,
        new_id=process.ids.new,
        new_job_id=new_job_id if count == 1 else lambda tenant: with_partition(new_job_id(tenant), tenant),
        work=MongoWorkStore(database, settings.job_retention_ms),
        work_terms=WorkTerms(
            shard,
            settings.heartbeat_interval_ms,
            heartbeat_deadline_ms(settings),
            settings.token_processors_max,
        ),
        registrations=WorkerRegistrations(replica.view, process.clock),
        failovers=MongoFailoverStore(database),
        replicas_expected=settings.replicas_expected,
    )


def _admission(
    settings: Settings, process: ProcessServices, buckets: BucketStore, replica: Replica
) -> AdmissionControl:
    """Return the admission that uses that replica's mirror."""
    admission = AdmissionControl(
        replica.view,
        buckets,
        process.clock,
        settings.max_pending,
        process.metrics.refused,
        max_dependencies=settings.max_dependencies,
    )

    def count_arrival(job: JobRef) -> None:
        admission.arrived(job.tenant, own=process.ids.made(job.id), dependencies=len(job.waits_for))

    replica.on_job_arrival(count_arrival)
    return admission


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


class JobIds:
    """Texts that sort by time: milliseconds, a counter within this process, and random characters against others."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._process = token_hex(5)
        self._count = 0

    def new(self) -> str:
        self._count = (self._count + 1) % 0x1000000
        return f"{self._clock.wall_ms():011x}{self._count:06x}{self._process}"

    def new_job_id(self, _tenant: str) -> str:
        return f"job:{self.new()}"

    def made(self, id: str) -> bool:
        """Return True if the id holds one of these, before the partition of a submitted job or in a triggered one."""
        return id.endswith(self._process) or id[:-PARTITION_SUFFIX_LENGTH].endswith(self._process)
