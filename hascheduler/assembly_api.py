"""Puts the HTTP API of a replica together, for `hascheduler.assembly`, which imports it when a replica starts: FastAPI
and all routes are half of what a replica imports, and a processor, a check and a migration have no use for them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from secrets import token_hex

from hascheduler.api.admission.control import AdmissionControl
from hascheduler.api.admission.distant import DistantAdmission
from hascheduler.api.admission.logins import Logins
from hascheduler.api.admission.schedule_limits import ScheduleLimits
from hascheduler.api.admission.worker_registrations import WorkerRegistrations, WorkTerms
from hascheduler.api.app import ApiServices
from hascheduler.api.middleware.audit_writer import AuditWriter
from hascheduler.api.middleware.auth import AuthConfig, PageTerms
from hascheduler.api.middleware.pools import Pools
from hascheduler.api.routing.forwarding import Forwards
from hascheduler.daemon.replica import Replica
from hascheduler.model.calendar import Calendar
from hascheduler.model.collection import Collection
from hascheduler.model.definition import Definition
from hascheduler.model.documents.calendar import encode_calendar
from hascheduler.model.documents.definition import encode_definition
from hascheduler.model.documents.lane import encode_lane
from hascheduler.model.documents.pause import encode_pause
from hascheduler.model.documents.routing import ROUTING_ID
from hascheduler.model.documents.tenant import encode_tenant
from hascheduler.model.job import JobRef
from hascheduler.model.lane import Lane
from hascheduler.model.partition import PARTITION_SUFFIX_LENGTH, with_partition
from hascheduler.model.routing import Routing, with_slot
from hascheduler.model.tenant import Tenant
from hascheduler.model.token import digest_of
from hascheduler.mongo.audit_log import MongoAuditStore
from hascheduler.mongo.buckets import MongoBucketStore
from hascheduler.mongo.connection import Database
from hascheduler.mongo.copies import MongoCopyStore
from hascheduler.mongo.failovers import MongoFailoverStore
from hascheduler.mongo.jobs.store import MongoJobStore
from hascheduler.mongo.resources import MongoResourceStore
from hascheduler.mongo.routing import MongoNameStore
from hascheduler.mongo.schedules import MongoScheduleStore
from hascheduler.mongo.tokens import MongoTokenStore
from hascheduler.mongo.verdicts import MongoVerdictStore
from hascheduler.mongo.work.store import MongoWorkStore
from hascheduler.ports import Admission, AuditStore, BucketStore, Clock, EventFeed, TokenStore
from hascheduler.settings import Settings, heartbeat_deadline_ms
from hascheduler.sharding.admission import ShardedAdmission
from hascheduler.sharding.copies import CopiesAtOnce
from hascheduler.sharding.events import ShardedEventFeed
from hascheduler.sharding.failovers import ShardedFailoverStore
from hascheduler.sharding.following import Following
from hascheduler.sharding.jobs import ShardedJobStore
from hascheduler.sharding.places import ShardPlaces
from hascheduler.sharding.resources import ShardedResourceStore, keepable_definition
from hascheduler.sharding.schedules import ShardedScheduleStore
from hascheduler.sharding.shard import EachNow, Shard
from hascheduler.sharding.verdicts import ShardedVerdictStore
from hascheduler.sharding.view import ShardedView
from hascheduler.sharding.work import ShardedWorkStore
from hascheduler.telemetry.metrics_http import HttpMetrics
from hascheduler.telemetry.tracing import Tracer


@dataclass(frozen=True, slots=True)
class ServedShard:
    """``shard`` is this process's own; where each replica follows all shards, its replica stays the same."""

    database: Database
    shard: Shard


@dataclass(frozen=True, slots=True)
class Candidacy:
    """What a replica needs that follows some shards alone."""

    following: Following
    forwarder: Forwards


@dataclass(frozen=True, slots=True)
class ProcessServices:
    """What the services of all shards of one process share: who may ask and how much, what is recorded, new ids."""

    clock: Clock
    ids: "JobIds"
    auth: AuthConfig
    tokens: TokenStore
    audit: AuditStore
    audit_writer: AuditWriter
    schedule_limits: ScheduleLimits
    metrics: HttpMetrics
    tracer: Tracer
    pools: Pools = field(default_factory=Pools)
    logins: Logins = field(default_factory=Logins)

    @classmethod
    def of(
        cls, settings: Settings, home: Database, clock: Clock, *, tracer: Tracer, metrics: HttpMetrics
    ) -> "ProcessServices":
        """Return those of a process whose tokens and records are in the database ``home``."""
        audit = MongoAuditStore(home, settings.audit_retention_ms)
        return cls(
            clock,
            JobIds(clock),
            auth_config(settings),
            MongoTokenStore(home),
            audit,
            AuditWriter(audit, clock, settings.audit_log_max),
            ScheduleLimits(settings.tenant_schedules_max, settings.least_interval_ms),
            metrics,
            tracer,
        )


def services_of(
    settings: Settings, process: ProcessServices, shard: str, database: Database, replica: Replica, *, count: int = 1
) -> ApiServices:
    """Return the services of one shard, whose replica here is that one and has not begun. ``count`` is how many shards
    there are: of several, the id of a job tells its partition."""
    new_job_id = process.ids.new_job_id
    return ApiServices(
        schedules=MongoScheduleStore(database),
        definitions=MongoResourceStore(database, Collection.DEFINITIONS, encode_definition),
        lanes=MongoResourceStore(database, Collection.LANES, encode_lane),
        calendars=MongoResourceStore(database, Collection.CALENDARS, encode_calendar),
        tenants=MongoResourceStore(database, Collection.TENANTS, encode_tenant),
        pauses=MongoResourceStore(database, Collection.PAUSES, encode_pause),
        jobs=MongoJobStore(database, settings.job_retention_ms),
        admission=_admission(settings, process, MongoBucketStore(database), replica),
        verdicts=MongoVerdictStore(database),
        view=replica.view,
        events=replica.events,
        clock=process.clock,
        new_id=process.ids.new,
        new_job_id=new_job_id if count == 1 else lambda tenant: with_partition(new_job_id(tenant), tenant),
        auth=process.auth,
        tokens=process.tokens,
        audit=process.audit,
        audit_writer=process.audit_writer,
        work=MongoWorkStore(database, settings.job_retention_ms),
        work_terms=WorkTerms(
            shard,
            settings.heartbeat_interval_ms,
            heartbeat_deadline_ms(settings),
            settings.token_processors_max,
        ),
        registrations=WorkerRegistrations(replica.view, process.clock),
        failovers=MongoFailoverStore(database),
        schedule_limits=process.schedule_limits,
        tracer=process.tracer,
        metrics=process.metrics,
        pools=process.pools,
        logins=process.logins,
    )


def services_over(
    settings: Settings,
    process: ProcessServices,
    shards: Sequence[ServedShard],
    routing: Routing | None,
    *,
    candidacy: Candidacy | None = None,
) -> ApiServices:
    """Of the home alone where there is no ``routing``; otherwise of all ``shards``, the home first."""
    home = shards[0]
    assert isinstance(home.shard.replica, Replica)
    services = services_of(settings, process, settings.shard, home.database, home.shard.replica)
    if routing is None:
        return services
    admissions = EachNow([each.shard for each in shards], _Admissions(settings, shards, process, services.admission).to)
    services = replace(services, forwarder=None if candidacy is None else candidacy.forwarder)
    following = None if candidacy is None else candidacy.following
    return _over_all(settings, services, shards, routing, admissions=admissions, ids=process.ids, following=following)


def _over_all(
    settings: Settings,
    home: ApiServices,
    shards: Sequence[ServedShard],
    routing: Routing,
    *,
    admissions: Sequence[Admission],
    ids: "JobIds",
    following: Following | None,
) -> ApiServices:
    """The services of the home, with those that several shards have their part in over all of them."""
    databases, retention_ms = [shard.database for shard in shards], settings.job_retention_ms
    names = MongoNameStore(databases[0])
    places = ShardPlaces(routing, names, settings.shard_mongodbs)
    here = [served.shard for served in shards]
    places.follow(lambda: here[0].nouns(Collection.ROUTING).get(ROUTING_ID))
    if following is None:
        view = ShardedView(places, [shard.view for shard in here])
        feeds: Sequence[EventFeed | None] = [shard.events for shard in here]
    else:
        views = EachNow(here, lambda _, shard: shard.view)
        view = ShardedView(places, views, followers=following.followers, unsettled=lambda: following.unready_reason)
        feeds = EachNow(here, lambda _, shard: shard.events)
    events = ShardedEventFeed(places, feeds)
    copies = CopiesAtOnce(MongoCopyStore(databases[0]), [MongoCopyStore(database) for database in databases[1:]])
    keepable = keepable_definition(len(shards))
    jobs = [MongoJobStore(each, retention_ms) for each in databases]
    return replace(
        home,
        schedules=ShardedScheduleStore(
            places, names, [MongoScheduleStore(each) for each in databases], jobs, home.clock
        ),
        definitions=ShardedResourceStore(home.definitions, Collection.DEFINITIONS, _name, copies, keepable),
        lanes=ShardedResourceStore(home.lanes, Collection.LANES, _name, copies),
        calendars=ShardedResourceStore(home.calendars, Collection.CALENDARS, _name, copies),
        tenants=ShardedResourceStore(home.tenants, Collection.TENANTS, _name, copies),
        pauses=ShardedResourceStore(home.pauses, Collection.PAUSES, lambda pause: pause.id, copies),
        jobs=ShardedJobStore(places, jobs),
        admission=ShardedAdmission(places, admissions),
        verdicts=ShardedVerdictStore(places, [MongoVerdictStore(each) for each in databases]),
        view=view,
        events=events,
        join_events=events.joined,
        new_job_id=lambda tenant: with_slot(ids.new_job_id(tenant), tenant),
        work=ShardedWorkStore(places, [MongoWorkStore(each, retention_ms) for each in databases]),
        work_terms=replace(home.work_terms, choose_shard=view.shard_for),
        registrations=WorkerRegistrations(view, home.clock),
        failovers=ShardedFailoverStore(places, [MongoFailoverStore(each) for each in databases]),
    )


def _name(noun: Definition | Lane | Calendar | Tenant) -> str:
    return noun.name


def _admission(
    settings: Settings, process: ProcessServices, buckets: BucketStore, replica: Replica
) -> AdmissionControl:
    """Return the admission by that replica's mirror."""
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


class _Admissions:
    """The admission to each shard, as it is at the moment: by the mirror where the shard is followed here."""

    def __init__(
        self, settings: Settings, shards: Sequence[ServedShard], process: ProcessServices, home: Admission
    ) -> None:
        self._shards = shards
        self._settings = settings
        self._process = process
        self._buckets = [MongoBucketStore(each.database) for each in shards]
        self._by_mirror: dict[int, Admission] = {0: home}
        self._by_hearsay: dict[int, DistantAdmission] = {}
        for index, each in enumerate(shards[1:], 1):
            each.shard.when_followed(partial(self._followed, index))

    def to(self, index: int, shard: Shard) -> Admission:
        if shard.is_followed:
            return self._by_mirror[index]
        if index not in self._by_hearsay:
            self._by_hearsay[index] = self._distant(index)
        return self._by_hearsay[index]

    def _followed(self, index: int, replica: Replica | None) -> None:
        if replica is None:
            self._by_mirror.pop(index, None)
            return
        self._by_mirror[index] = _admission(self._settings, self._process, self._buckets[index], replica)

    def _distant(self, index: int) -> DistantAdmission:
        shard = self._shards[index]
        jobs = MongoJobStore(shard.database, self._settings.job_retention_ms)
        return DistantAdmission(
            # As it is at the moment: it is asked for nothing where the shard is followed.
            shard.shard.distant,
            self._buckets[index],
            jobs,
            self._process.clock,
            is_ready=lambda: self._shards[0].shard.view.ready,
            max_pending=self._settings.max_pending,
            refused=self._process.metrics.refused,
            max_dependencies=self._settings.max_dependencies,
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


class JobIds:
    """Texts that sort by time: milliseconds, a counter within this process, and chance against others."""

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
        """Whether it has one of these, before the partition of a submitted job, or in the id of a triggered one."""
        return id.endswith(self._process) or id[:-PARTITION_SUFFIX_LENGTH].endswith(self._process)
