"""Puts a process together: the only module that knows both the daemon and the technologies.

``serve`` is one replica, ``work`` one processor; each returns when a SIGTERM or SIGINT has been carried out in good
order, and a second signal ends the process at once.
"""

import asyncio
import os
import ssl
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from secrets import token_hex
from typing import TYPE_CHECKING, Any

import structlog
from structlog.contextvars import bind_contextvars

from hascheduler.api.http.server import ApiServer
from hascheduler.api.ops.health_port import HealthPort
from hascheduler.assembly_databases import ShardDatabases
from hascheduler.assembly_processor import ProcessorParts
from hascheduler.assembly_shards import followed, start_keepers
from hascheduler.check.finding import CheckConfig, CheckReport, merged_report
from hascheduler.clock import SystemClock
from hascheduler.compiled import compiled_rooms, is_stale
from hascheduler.daemon.config import ReplicaConfig, ReplicaPorts
from hascheduler.daemon.leadership.liveness import LivenessServer, Silencing
from hascheduler.daemon.leadership.trusted_clock import TrustedClock
from hascheduler.daemon.replica import Replica
from hascheduler.dispatch.config import DispatchConfig, PolicyConfig
from hascheduler.errors import InvalidInput, WorldError
from hascheduler.lifecycle import STOP_LIMIT_S, on_signal
from hascheduler.model.resources import parse_resources
from hascheduler.model.routing import Routing
from hascheduler.model.schema_version import Migration, MigrationStep
from hascheduler.model.values.zone_data import ZONE_DATA_VERSION
from hascheduler.mongo.accounts import MongoAccountStore
from hascheduler.mongo.apply.claims import MongoClaimStore
from hascheduler.mongo.check.scan import Deployment, MongoInvariantScan
from hascheduler.mongo.connection import Database
from hascheduler.mongo.copies import MongoCopyStore
from hascheduler.mongo.failovers import MongoFailoverStore
from hascheduler.mongo.journal import MongoJournal
from hascheduler.mongo.leases import MongoLeaseStore
from hascheduler.mongo.replicas import MongoReplicaBoard
from hascheduler.mongo.routing import MongoRoutingStore
from hascheduler.mongo.schema.indexes import reach
from hascheduler.mongo.schema.migrate import migrate as migrate_database
from hascheduler.mongo.schema.migrate import require_readable
from hascheduler.mongo.stream.source import MongoChangeSource
from hascheduler.mongo.traces import MongoJobTraces
from hascheduler.mongo.transport import MongoTransport
from hascheduler.ports import Clock, EventExchange, LeaseStore, Transport
from hascheduler.ports.invariant_scan import THOROUGH, ScanProgress
from hascheduler.processor import Handlers, ProcessorConfig
from hascheduler.processor.handler_loop import HandlerLoop
from hascheduler.rabbitmq.connection import require_access
from hascheduler.rabbitmq.events import RabbitEventExchange
from hascheduler.rabbitmq.publisher import RabbitTransport
from hascheduler.rabbitmq.topology import DISPATCH_EXCHANGE
from hascheduler.settings import PREFIX, Settings, heartbeat_deadline_ms
from hascheduler.sharding.copies import CopyKeeper
from hascheduler.sharding.home import agreed_routing
from hascheduler.sharding.reports import ShardReports
from hascheduler.sharding.shard import FollowingReplica
from hascheduler.telemetry.health import ReplicaHealth, Vitals
from hascheduler.telemetry.log_lines import name_process
from hascheduler.telemetry.metrics_http import HttpMetrics
from hascheduler.telemetry.metrics_processor import ProcessorMetrics
from hascheduler.telemetry.metrics_replica import ReplicaGauges, ReplicaMetrics
from hascheduler.telemetry.registry import new_registry
from hascheduler.telemetry.tracing import NO_TRACING, Tracer
from hascheduler.tls import PemFile, ServedCertificates, client_context

if TYPE_CHECKING:
    from hascheduler.api.routing.forwarder import Forwarder
    from hascheduler.assembly_api import ServedShard
    from hascheduler.kubernetes.api import KubernetesApi

log = structlog.get_logger(__name__)


async def serve(settings: Settings) -> None:
    """One replica: the scheduler's loops and the HTTP API, until a signal; `StoreUnavailable` without a database."""
    # Half of all that a replica imports, and nothing of it is for processors, checks and migrations.
    from hascheduler.api.app import create_app
    from hascheduler.assembly_api import Candidacy, ServedShard, services_of

    clock = TrustedClock(SystemClock(), settings.clock_skew_max_ms)
    replica_id = f"{settings.replica_id}.{token_hex(4)}"
    name_process(replica=replica_id)
    certificates = _served_certificates(settings)
    tracer = _tracer(settings, "hascheduler", replica_id)
    vitals, registry = Vitals(), new_registry()
    health = HealthPort(settings.health_host, settings.health_port, vitals, registry, leads=True)
    cluster = _cluster(settings)
    databases = ShardDatabases(settings)
    closing, candidacy = AsyncExitStack(), None
    try:
        await health.open()
        if not await databases.prepare_all():
            return
        routing = await agreed_routing(
            MongoRoutingStore(databases.home), settings.shard_names, settings.database, clock.wall_ms()
        )
        await _broker_accessible(settings)
        liveness = LivenessServer(settings.liveness_host, settings.liveness_port, replica_id)
        await liveness.bind()
        make = partial(
            _replica,
            settings=settings,
            replica_id=replica_id,
            databases=databases,
            liveness=liveness,
            home_clock=clock,
            tracer=tracer,
            metrics=ReplicaMetrics(registry),
            cluster=cluster,
        )
        here = followed(settings, replica_id, clock, liveness, make)
        shards = [ServedShard(database, shard) for database, shard in zip(databases.all, here.shards, strict=True)]
        if here.following is not None and here.reports is not None:
            forwarder = _forwarder(settings, here.reports, replica_id)
            closing.push_async_callback(forwarder.close)
            candidacy = Candidacy(here.following, forwarder)
        services = services_of(
            settings,
            shards,
            routing,
            clock,
            tracer=tracer,
            metrics=HttpMetrics(registry),
            candidacy=candidacy,
        )
        registry.register(ReplicaGauges(services.view.gauges))
        server = ApiServer(
            create_app(services, forwards=candidacy is not None),
            settings.http_host,
            settings.http_port,
            None if certificates is None else certificates.context,
            metrics=services.metrics,
        )
        await server.bind()
        http_endpoint = f"{settings.advertise_host or settings.http_host}:{server.port}"
        here.answer_at(http_endpoint)
        log.info(
            "serving",
            replica=replica_id,
            http=http_endpoint,
            shard=settings.shard,
            **({"shards": settings.shards} if settings.shards > 1 else {}),
            core="compiled" if compiled_rooms() else "pure",
            zone_data=ZONE_DATA_VERSION,
            tls=bool(settings.http_tls_cert_file),
            tokens=settings.tokens_demanded,
        )
        if is_stale():
            log.warning("core_stale", reason="sources were edited after they were compiled; what they say does not run")
        vitals.become(ReplicaHealth(services.view))

        with on_signal(here.stop, STOP_LIMIT_S):
            async with asyncio.TaskGroup() as tasks:
                # To the very end: a replica that hands its leases over is not dead.
                watched = tasks.create_task(liveness.run(), name="liveness")
                recording = tasks.create_task(services.audit_writer.run(), name="audit")
                serving = tasks.create_task(server.run(), name="api")
                beside = [
                    recording,
                    watched,
                    *(tasks.create_task(keeper.run(), name="copies") for keeper in _copy_keepers(shards)),
                ]
                several = len(shards) > 1
                if several:
                    beside += start_keepers(tasks, settings, here, databases.all, clock)
                if certificates is not None:
                    beside.append(tasks.create_task(certificates.keep_fresh(), name="certificates"))
                async with asyncio.TaskGroup() as serving_shards:
                    for replica in here.for_ever:
                        serving_shards.create_task(_run(replica, several=several), name=replica.shard)
                    if here.following is not None:
                        following = here.following.run(partial(_run, several=True))
                        serving_shards.create_task(following, name="following")
                serving.cancel()
                # The last answers leave records too.
                await asyncio.wait([serving])
                for task in beside:
                    task.cancel()
        log.info("stopped", replica=replica_id)
    finally:
        await closing.aclose()
        await databases.close()
        if cluster is not None:
            await cluster.close()
        await health.close()
        await asyncio.to_thread(tracer.close)


async def work(settings: Settings, handlers: Handlers, handler_loop: HandlerLoop, name: str) -> None:
    """One processor with these handlers, until a signal has drained it. It starts ``handler_loop`` for them."""
    clock = SystemClock()
    config = ProcessorConfig(
        id=f"{name}.{token_hex(4)}",
        name=name,
        shard=settings.shard,
        slots=settings.slots,
        resources=parse_resources(settings.resources),
        heartbeat_interval_ms=settings.heartbeat_interval_ms,
        heartbeat_deadline_ms=heartbeat_deadline_ms(settings),
        drain_grace_ms=settings.drain_grace_ms,
    )
    name_process(processor=config.id)
    tracer = _tracer(settings, "hascheduler-processor", config.id, for_handlers=True)
    vitals, registry = Vitals(), new_registry()
    health = HealthPort(settings.health_host, settings.health_port, vitals, registry, leads=False)
    databases = ShardDatabases(settings)
    try:
        await health.open()
        parts = ProcessorParts(
            settings,
            databases.all,
            handlers,
            handler_loop,
            clock,
            broker_tls(settings),
            tracer,
            ProcessorMetrics(registry),
        )
        routing: Routing | None = None

        async def find_place(home: Database) -> None:
            nonlocal routing
            # The collections and indexes are the replicas' to make: a processor has no right to.
            await require_readable(home)
            routing = await parts.routing()

        if not await databases.home_ready(find_place):
            return
        await _broker_accessible(settings)
        liveness = LivenessServer(settings.liveness_host, settings.liveness_port, config.id)
        await liveness.bind()
        config = replace(config, liveness_endpoint=_liveness_endpoint(settings, liveness))
        processor = parts.processor(config, routing, liveness)
        vitals.become(processor.health)
        handler_loop.start()
        with on_signal(processor.drain, config.drain_grace_ms / 1_000 + STOP_LIMIT_S):
            async with asyncio.TaskGroup() as tasks:
                # To the very end: a processor that is leaving is not dead.
                watched = tasks.create_task(liveness.run(), name="liveness")
                watching = tasks.create_task(handler_loop.watch(), name="handler loop")
                await processor.run()
                watched.cancel()
                watching.cancel()
        log.info("stopped", processor=config.id)
    finally:
        await databases.close()
        await health.close()
        await asyncio.to_thread(tracer.close)


async def migrate(settings: Settings, *, dry_run: bool) -> Mapping[str, Migration] | None:
    """`hascheduler.mongo.schema.migrate` of each shard's database, by its name, telling of each step; None where a
    signal ended it between two of them."""
    async with ShardDatabases(settings) as databases:
        if not await databases.home_ready():
            return None
        migrating = asyncio.create_task(_migrate_all(databases.all, dry_run=dry_run), name="migrate")
        with on_signal(migrating.cancel, STOP_LIMIT_S):
            await asyncio.wait([migrating])
        return None if migrating.cancelled() else migrating.result()


async def _migrate_all(databases: Sequence[Database], *, dry_run: bool) -> Mapping[str, Migration]:
    return {database.name: await migrate_database(database, _log_step, dry_run=dry_run) for database in databases}


def _log_step(event: str, step: MigrationStep, more: Mapping[str, Any]) -> None:
    log.info(event, step=str(step), **more)


async def routing(settings: Settings) -> Routing | None:
    """What the home has; None: it is the only shard, or was never used."""
    return await follow_routing(settings, lambda _: True, 0)


async def begin_moves(settings: Settings, known: Routing, moves: Mapping[int, int]) -> Routing:
    """The routing in which they have begun. `WorldError` where it is no longer that of ``known``."""
    async with ShardDatabases(settings) as databases:
        begun = known.beginning(moves)
        if not await MongoRoutingStore(databases.home).replace(known.epoch, begun):
            raise WorldError("slots were moved by another command meanwhile: look at them, and try again")
        return begun


async def follow_routing(settings: Settings, is_enough: Callable[[Routing], bool], look_s: float) -> Routing | None:
    """Read the routing again and again until it is enough; None: there is none."""
    async with ShardDatabases(settings) as databases:
        store, found = MongoRoutingStore(databases.home), None

        async def read() -> None:
            nonlocal found
            found = await store.get()

        await databases.demand(read)
        while found is not None and not is_enough(found):
            await asyncio.sleep(look_s)
            await databases.demand(read)
        return found


async def audit(settings: Settings, progress: ScanProgress) -> CheckReport | None:
    """What is broken in the databases of all shards, by a thorough look; None where a signal came first."""
    async with ShardDatabases(settings) as databases:
        if not await databases.home_ready():
            return None
        reports = {}
        for shard, database in zip(settings.shard_names, databases.all, strict=True):
            scan = MongoInvariantScan(database, _deployment(settings, shard, databases))
            reports[shard] = await scan.look(THOROUGH, progress)
        return reports[settings.shard] if len(reports) == 1 else merged_report(reports)


async def require_servers(settings: Settings) -> None:
    """`InvalidInput` where MongoDB or the broker can't be used; one try."""
    async with ShardDatabases(settings) as databases:
        await databases.demand(lambda: reach(databases.home))
    await _broker_accessible(settings, must_answer=True)


async def _broker_accessible(settings: Settings, *, must_answer: bool = False) -> None:
    """`InvalidInput` where the broker refuses us, unless the settings ask for patience: its users may come soon."""
    if settings.transport == "rabbitmq" and not settings.startup_patience_ms:
        await require_access(settings.amqp_url.get_secret_value(), broker_tls(settings), must_answer=must_answer)


def _deployment(settings: Settings, shard: str, databases: ShardDatabases) -> Deployment:
    config = CheckConfig(
        job_retention_ms=settings.job_retention_ms,
        journal_retention_ms=settings.journal_retention_ms,
        heartbeat_timeout_ms=settings.heartbeat_timeout_ms,
        start_timeout_ms=settings.start_timeout_ms,
    )
    by_shard = dict(zip(settings.shard_names, databases.all, strict=True)) if settings.shards > 1 else {}
    return Deployment(config, shard, settings.lease_store == "mongodb", settings.max_concurrency, by_shard)


def _forwarder(settings: Settings, reports: ShardReports, replica_id: str) -> "Forwarder":
    from hascheduler.api.routing.forwarder import Forwarder

    return Forwarder(
        lambda shard: reports.addresses(shard, replica_id), tls=peer_tls(settings), tls_name=settings.peer_tls_name
    )


def peer_tls(settings: Settings) -> ssl.SSLContext | None:
    """How replicas ask each other; None: over plain HTTP, as the API speaks none either."""
    if not settings.http_tls_cert_file:
        return None
    return client_context(*_pem_files(settings, "peer_tls_ca_file", "http_tls_cert_file", "http_tls_key_file"))


async def _run(replica: FollowingReplica, *, several: bool) -> None:
    if several:
        bind_contextvars(shard=replica.shard)  # on the lines of this task and of those that it begins
    await replica.run()


def _copy_keepers(shards: "Sequence[ServedShard]") -> list[CopyKeeper]:
    """Of all shards but the home."""
    home = shards[0]

    def keeper(shard: "ServedShard") -> CopyKeeper:
        return CopyKeeper(
            MongoCopyStore(home.database),
            MongoCopyStore(shard.database),
            wanted=home.shard.nouns,
            there=shard.shard.nouns,
            leading=lambda: shard.shard.view.leading,
            fresh=lambda: home.shard.view.ready and shard.shard.view.ready,
        )

    return [keeper(shard) for shard in shards[1:]]


def _replica(
    shard_index: int,
    silencing: Silencing,
    *,
    settings: Settings,
    replica_id: str,
    databases: ShardDatabases,
    liveness: LivenessServer,
    home_clock: Clock,
    tracer: Tracer,
    metrics: ReplicaMetrics,
    cluster: "KubernetesApi | None",
) -> Replica:
    shard, database = settings.shard_names[shard_index], databases.all[shard_index]
    # One elsewhere has a clock of its own, which is compared with its MongoDB's.
    clock = home_clock if databases.is_at_home(shard_index) else SystemClock()
    config = ReplicaConfig(
        shard=shard,
        replica_id=replica_id,
        name=settings.replica_id,
        started_at_ms=clock.wall_ms(),
        liveness_endpoint=_liveness_endpoint(settings, liveness),
        lease_duration_ms=settings.lease_duration_ms,
        renew_deadline_ms=settings.renew_deadline_ms,
        retry_period_ms=settings.retry_period_ms,
        heartbeat_timeout_ms=settings.heartbeat_timeout_ms,
        journal_retention_ms=settings.journal_retention_ms,
        clock_skew_max_ms=settings.clock_skew_max_ms,
        audit_interval_ms=settings.audit_interval_ms,
        standstill_after_ms=settings.standstill_after_ms,
        batch_delay_max_ms=settings.batch_delay_max_ms,
        dispatch=DispatchConfig(
            start_timeout_ms=settings.start_timeout_ms,
            unknown_spared_ms=settings.heartbeat_timeout_ms,
            part=(shard_index, settings.shards),
            policy=policy_config(settings),
        ),
    )
    return Replica(
        config,
        ReplicaPorts(
            source=MongoChangeSource(database, databases.preparation(shard_index)),
            leases=_lease_store(settings, shard, database, cluster),
            leases_streamed=cluster is None,
            journal=MongoJournal(database),
            claims=MongoClaimStore(database, settings.job_retention_ms, tracer),
            accounts=MongoAccountStore(database),
            board=MongoReplicaBoard(database),
            transport=_transport(settings),
            fallback=MongoTransport() if settings.transport_fallback == "mongo" else None,
            liveness=silencing,
            clock=clock,
            exchange=_event_exchange(settings),
            tracer=tracer,
            # Of the transports only the broker carries headers.
            traces=MongoJobTraces(database) if settings.transport == "rabbitmq" else None,
            failovers=MongoFailoverStore(database),
            scan=MongoInvariantScan(database, _deployment(settings, shard, databases)),
            metrics=metrics,
        ),
    )


def _liveness_endpoint(settings: Settings, liveness: LivenessServer) -> str:
    return f"{settings.advertise_host or settings.liveness_host}:{liveness.port}"


def policy_config(settings: Settings) -> PolicyConfig:
    """What is not set follows the preset."""
    preset, bonus_max = PolicyConfig.of(settings.policy), settings.on_demand_bonus_max
    if bonus_max is None:
        bonus_max = preset.on_demand_bonus_max
    return replace(
        preset,
        max_concurrency=settings.max_concurrency,
        on_demand_bonus_max=None if bonus_max == "none" else bonus_max,
        idle_key_start=settings.idle_key_start or preset.idle_key_start,
        learn_cost=settings.learn_cost,
        cost_alpha=settings.cost_alpha,
        idle_ttl_ms=settings.idle_ttl_ms,
    )


def _transport(settings: Settings) -> Transport:
    if settings.transport == "mongo":
        return MongoTransport()
    return RabbitTransport(settings.amqp_url.get_secret_value(), broker_tls(settings))


def _tracer(settings: Settings, service: str, instance: str, *, for_handlers: bool = False) -> Tracer:
    if settings.tracing == "none":
        return NO_TRACING
    try:
        from hascheduler.telemetry.otlp import otlp_tracer  # needs an extra
    except ImportError as error:
        if not (error.name or "").startswith("opentelemetry"):
            raise
        problem = f"otlp needs {error.name}, which is not installed"
        raise InvalidInput(("HASCHEDULER_TRACING",), problem, "pip install 'hascheduler[otel]' before") from None
    messaging = {"messaging.system": "rabbitmq", "messaging.destination.name": DISPATCH_EXCHANGE}
    carried = messaging if settings.transport == "rabbitmq" else None
    return otlp_tracer(service, instance, carried, for_handlers=for_handlers)


def _event_exchange(settings: Settings) -> EventExchange | None:
    if not settings.events_exchange:
        return None
    return RabbitEventExchange(settings.amqp_url.get_secret_value(), settings.events_exchange, broker_tls(settings))


def broker_tls(settings: Settings) -> ssl.SSLContext | None:
    """None where the URL says all there is to say."""
    if not (settings.amqp_tls_ca_file or settings.amqp_tls_cert_file):
        return None
    return client_context(*_pem_files(settings, "amqp_tls_ca_file", "amqp_tls_cert_file", "amqp_tls_key_file"))


def _cluster(settings: Settings) -> "KubernetesApi | None":
    """None where leases are in MongoDB: then the API server is not used."""
    if settings.lease_store == "mongodb":
        return None
    from hascheduler.kubernetes.api import KubernetesApi, in_cluster

    return KubernetesApi(in_cluster(os.environ, settings.service_account_dir, settings.lease_namespace))


def _lease_store(settings: Settings, shard: str, database: Database, cluster: "KubernetesApi | None") -> LeaseStore:
    if cluster is None:
        return MongoLeaseStore(database)
    from hascheduler.kubernetes.leases import KubernetesLeaseStore

    name = settings.lease_name
    return KubernetesLeaseStore(cluster, f"{name}-{shard}" if name and shard != settings.shard else name)


def _served_certificates(settings: Settings) -> ServedCertificates | None:
    if not settings.http_tls_cert_file:
        return None
    return ServedCertificates(
        *_pem_files(settings, "http_tls_cert_file", "http_tls_key_file", "http_tls_client_ca_file")
    )


def _pem_files(settings: Settings, *fields: str) -> list[PemFile]:
    return [PemFile(PREFIX + field.upper(), getattr(settings, field)) for field in fields]
