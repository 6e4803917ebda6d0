"""Puts the HTTP API of a replica together, for `hascheduler.assembly`, which imports it when a replica starts: FastAPI
and all routes are half of what a replica imports, and a processor, a check and a migration have no use for them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from secrets import token_hex

from hascheduler.api.admission.control import AdmissionControl
from hascheduler.api.admission.distant import DistantAdmission
from hascheduler.api.admission.schedule_limits import ScheduleLimits
from hascheduler.api.admission.worker_registrations import WorkerRegistrations, WorkTerms
from hascheduler.api.app import ApiServices
from hascheduler.api.middleware.audit_writer import AuditWriter
from hascheduler.api.middleware.auth import AuthConfig, PageTerms
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
from hascheduler.model.routing import SLOT_SUFFIX_LENGTH, Routing, with_slot
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
from hascheduler.ports import Admission, Clock, EventFeed
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


def services_of(
    settings: Settings,
    shards: Sequence[ServedShard],
    routing: Routing | None,
    clock: Clock,
    *,
    tracer: Tracer,
    metrics: HttpMetrics,
    candidacy: Candidacy | None = None,
) -> ApiServices:
    """Of the home alone where there is no ``routing``; otherwise of all ``shards``, the home first."""
    ids = _Ids(clock)
    admissions = EachNow([each.shard for each in shards], _Admissions(settings, shards, ids, clock, metrics).to)
    home = shards[0]
    database = home.database
    audit = MongoAuditStore(database, settings.audit_retention_ms)
    services = ApiServices(
        schedules=MongoScheduleStore(database),
        definitions=MongoResourceStore(database, Collection.DEFINITIONS, encode_definition),
        lanes=MongoResourceStore(database, Collection.LANES, encode_lane),
        calendars=MongoResourceStore(database, Collection.CALENDARS, encode_calendar),
        tenants=MongoResourceStore(database, Collection.TENANTS, encode_tenant),
        pauses=MongoResourceStore(database, Collection.PAUSES, encode_pause),
        jobs=MongoJobStore(database, settings.job_retention_ms),
        admission=admissions[0],
        verdicts=MongoVerdictStore(database),
        view=home.shard.view,
        events=_followed_events(home.shard),
        clock=clock,
        new_id=ids.new,
        new_job_id=ids.new_job_id,
        auth=auth_config(settings),
        tokens=MongoTokenStore(database),
        audit=audit,
        audit_writer=AuditWriter(audit, clock, settings.audit_log_max),
        work=MongoWorkStore(database, settings.job_retention_ms),
        work_terms=WorkTerms(
            settings.shard,
            settings.heartbeat_interval_ms,
            heartbeat_deadline_ms(settings),
            settings.token_processors_max,
        ),
        registrations=WorkerRegistrations(home.shard.view, clock),
        failovers=MongoFailoverStore(database),
        schedule_limits=ScheduleLimits(settings.tenant_schedules_max, settings.least_interval_ms),
        tracer=tracer,
        metrics=metrics,
        forwarder=None if candidacy is None else candidacy.forwarder,
    )
    if routing is None:
        return services
    following = None if candidacy is None else candidacy.following
    return _over_all(settings, services, shards, routing, admissions=admissions, ids=ids, following=following)


def _over_all(
    settings: Settings,
    home: ApiServices,
    shards: Sequence[ServedShard],
    routing: Routing,
    *,
    admissions: Sequence[Admission],
    ids: "_Ids",
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


def _followed_events(shard: Shard) -> EventFeed:
    assert shard.events is not None
    return shard.events


class _Admissions:
    """The admission to each shard, as it is at the moment: by the mirror where the shard is followed here."""

    def __init__(
        self, settings: Settings, shards: Sequence[ServedShard], ids: "_Ids", clock: Clock, metrics: HttpMetrics
    ) -> None:
        self._shards = shards
        self._settings = settings
        self._ids = ids
        self._clock = clock
        self._metrics = metrics
        self._buckets = [MongoBucketStore(each.database) for each in shards]
        self._by_mirror: dict[int, AdmissionControl] = {}
        self._by_hearsay: dict[int, DistantAdmission] = {}
        for index, each in enumerate(shards):
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
        admission = AdmissionControl(
            replica.view,
            self._buckets[index],
            self._clock,
            self._settings.max_pending,
            self._metrics.refused,
            max_dependencies=self._settings.max_dependencies,
        )

        def count_arrival(job: JobRef) -> None:
            admission.arrived(job.tenant, own=self._ids.made(job.id), dependencies=len(job.waits_for))

        replica.on_job_arrival(count_arrival)
        self._by_mirror[index] = admission

    def _distant(self, index: int) -> DistantAdmission:
        shard = self._shards[index]
        jobs = MongoJobStore(shard.database, self._settings.job_retention_ms)
        return DistantAdmission(
            # As it is at the moment: it is asked for nothing where the shard is followed.
            shard.shard.distant,
            self._buckets[index],
            jobs,
            self._clock,
            is_ready=lambda: self._shards[0].shard.view.ready,
            max_pending=self._settings.max_pending,
            refused=self._metrics.refused,
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


class _Ids:
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
        """Whether it has one of these, before the slot of a submitted job, or in the id of a triggered one."""
        return id.endswith(self._process) or id[:-SLOT_SUFFIX_LENGTH].endswith(self._process)
