"""Assembles a process: the only module that knows both the daemon and the technologies.

``serve`` is one replica, ``work`` one processor; each returns after a SIGTERM or SIGINT has led to an orderly stop, and
a second signal ends the process at once.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from secrets import token_hex
from typing import Any

import structlog

from hascheduler.api.http.server import ApiServer
from hascheduler.api.ops.health_port import HealthPort
from hascheduler.assembly_processor import ProcessorParts
from hascheduler.assembly_replica import (
    ReplicaParts,
    broker_tls,
    cluster_of,
    deployment_of,
    liveness_endpoint,
    pem_files,
)
from hascheduler.check.finding import CheckReport
from hascheduler.check.servers import Requirement
from hascheduler.clock import SystemClock
from hascheduler.compiled import compiled_rooms, is_stale
from hascheduler.daemon.leadership.liveness import LivenessServer
from hascheduler.daemon.leadership.trusted_clock import TrustedClock
from hascheduler.errors import InvalidInput, WorldError
from hascheduler.lifecycle import STOP_LIMIT_S, on_signal
from hascheduler.model.resources import parse_resources
from hascheduler.model.schema_version import Migration, MigrationStep
from hascheduler.model.values.redaction import redacted
from hascheduler.model.values.zone_data import ZONE_DATA_VERSION
from hascheduler.mongo.check.scan import MongoInvariantScan
from hascheduler.mongo.connection import Database, connect, open_database, tls_options
from hascheduler.mongo.doctor import examine_database
from hascheduler.mongo.schema.indexes import reach
from hascheduler.mongo.schema.migrate import migrate as migrate_database
from hascheduler.mongo.schema.migrate import require_readable
from hascheduler.ports.invariant_scan import THOROUGH, InvariantScan, ScanProgress
from hascheduler.processor import Handlers, ProcessorConfig
from hascheduler.processor.handler_loop import HandlerLoop
from hascheduler.rabbitmq.connection import DISPATCH_EXCHANGE, require_access
from hascheduler.rabbitmq.doctor import examine_broker
from hascheduler.settings import Settings, heartbeat_deadline_ms
from hascheduler.shards.check import PlacedScan, deployment_report
from hascheduler.shards.databases import ShardDatabases
from hascheduler.shards.gateways import peer_key
from hascheduler.shards.home import LayoutStore, agreed_layout, stored_layout
from hascheduler.shards.layout import Layout
from hascheduler.telemetry.health import Vitals
from hascheduler.telemetry.log_lines import name_process
from hascheduler.telemetry.metrics_http import HttpMetrics
from hascheduler.telemetry.metrics_processor import ProcessorMetrics
from hascheduler.telemetry.metrics_replica import ReplicaMetrics
from hascheduler.telemetry.registry import new_registry
from hascheduler.telemetry.tracing import NO_TRACING, Tracer
from hascheduler.tls import ServedCertificates, client_context

log = structlog.get_logger(__name__)


async def serve(settings: Settings) -> None:
    """Run one replica, its loops and the HTTP API, until a signal; raise `StoreUnavailable` without a database."""
    # Half of a replica's imports, which processors, checks and migrations do not need.
    from hascheduler.assembly_api import ProcessServices
    from hascheduler.shards.serve import OneShard, Ring

    clock = TrustedClock(SystemClock(), settings.clock_skew_max_ms)
    replica_id = f"{settings.replica_id}.{token_hex(4)}"
    name_process(replica=replica_id)
    certificates = _served_certificates(settings)
    tracer = _tracer(settings, "hascheduler", replica_id)
    vitals, registry = Vitals(), new_registry()
    health = HealthPort(settings.health_host, settings.health_port, vitals, registry, leads=True)
    cluster = cluster_of(settings)
    databases = ShardDatabases(settings)
    serving: OneShard | Ring | None = None
    try:
        await health.open()
        if not await databases.prepare_all():
            return
        layout = await agreed_layout(databases.home, settings.shard_names, clock.wall_ms)
        await _broker_accessible(settings)
        liveness = LivenessServer(settings.liveness_host, settings.liveness_port, replica_id)
        await liveness.bind()
        parts = ReplicaParts(settings, replica_id, liveness, tracer, ReplicaMetrics(registry), cluster)
        process = ProcessServices.of(settings, databases.home, clock, tracer, HttpMetrics(registry), health=vitals)
        if layout is None:
            serving = OneShard(databases.home, parts, process)
        else:
            key = await peer_key(databases.home, token_hex(32))
            serving = Ring(databases, layout, parts, process, peer_key=key, tls=peer_tls(settings))
        registry.register(serving.gauges)
        server = ApiServer(
            serving.application,
            settings.http_host,
            settings.http_port,
            None if certificates is None else certificates.context,
            metrics=process.metrics,
        )
        await server.bind()
        http_endpoint = f"{settings.advertise_host or settings.http_host}:{server.port}"
        serving.answer_at(http_endpoint)
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
            log.warning("compiled_core_stale", reason="sources were edited after they were compiled, and do not run")
        vitals.become(serving.health)

        with on_signal(serving.stop, STOP_LIMIT_S):
            async with asyncio.TaskGroup() as tasks:
                # To the very end: a replica that hands over its leases is not dead, and the last answers are recorded.
                beside = [
                    tasks.create_task(liveness.run(), name="liveness"),
                    tasks.create_task(process.audit_writer.run(), name="audit"),
                ]
                if certificates is not None:
                    beside.append(tasks.create_task(certificates.keep_fresh(), name="certificates"))
                await serving.run(tasks.create_task(server.run(), name="api"))
                for task in beside:
                    task.cancel()
        log.info("stopped", replica=replica_id)
    finally:
        if serving is not None:
            await serving.close()
        await databases.close()
        if cluster is not None:
            await cluster.close()
        await health.close()
        await asyncio.to_thread(tracer.close)


async def work(settings: Settings, handlers: Handlers, handler_loop: HandlerLoop, name: str) -> None:
    """Run one processor with these handlers until a signal has drained it, and start ``handler_loop`` for them."""
    clock = SystemClock()
    config = ProcessorConfig(
        id=f"{name}.{token_hex(4)}",
        name=name,
        scheduler=settings.shard,
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
            databases.catch_up,
            handlers,
            handler_loop,
            clock,
            broker_tls(settings),
            tracer,
            ProcessorMetrics(registry),
        )
        layout: Layout | None = None

        async def find_place(home: Database) -> None:
            nonlocal layout
            # Only replicas make collections and indexes: a processor has no right to.
            await require_readable(home)
            layout = await parts.layout()

        if not (await databases.home_ready(find_place) and await databases.compare_all()):
            return
        await _broker_accessible(settings)
        liveness = LivenessServer(settings.liveness_host, settings.liveness_port, config.id)
        await liveness.bind()
        config = replace(config, liveness_endpoint=liveness_endpoint(settings, liveness))
        processor = parts.processor(config, layout, liveness)
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
    """Run `hascheduler.mongo.schema.migrate` on each shard's database, by its name, reporting each step.

    None if a signal ended it between two steps.
    """
    async with ShardDatabases(settings) as databases:
        # Before the first replica there is no layout, and no databases are assigned: then all are made.
        if not await _are_own(settings, databases, new=True):
            return None
        migrating = asyncio.create_task(_migrate_all(databases.all, dry_run=dry_run), name="migrate")
        with on_signal(migrating.cancel, STOP_LIMIT_S):
            await asyncio.wait([migrating])
        return None if migrating.cancelled() else migrating.result()


async def _are_own(settings: Settings, databases: ShardDatabases, *, new: bool) -> bool:
    """Return True if the databases were compared before a signal came.

    Raise `InvalidInput` if the deployment has another number of shards than the settings, or assigns another database
    to one of them.
    """

    async def compare(home: Database) -> None:
        await reach(home)
        store = LayoutStore(home)
        if not new or await store.get() is not None:
            await stored_layout(store, settings.shards)

    return await databases.home_ready(compare) and await databases.all_compared(new=new)


async def _migrate_all(databases: Sequence[Database], *, dry_run: bool) -> Mapping[str, Migration]:
    return {database.name: await migrate_database(database, _log_step, dry_run=dry_run) for database in databases}


def _log_step(event: str, step: MigrationStep, more: Mapping[str, Any]) -> None:
    log.info(event, step=str(step), **more)


async def layout(settings: Settings) -> Layout | None:
    """Return the layout in the home; None if the deployment has one shard, or was never used."""
    return await follow_layout(settings, lambda _: True, 0)


async def begin_moves(settings: Settings, known: Layout, moves: Mapping[int, int]) -> Layout:
    """Return the layout in which these moves have begun; raise `WorldError` if it is no longer the ``known`` one."""
    async with ShardDatabases(settings) as databases:
        begun = known.beginning(moves)
        if not await LayoutStore(databases.home).replace(known.epoch, begun):
            raise WorldError("partitions were moved by another command meanwhile: look at them, and try again")
        return begun


async def follow_layout(settings: Settings, is_enough: Callable[[Layout], bool], look_s: float) -> Layout | None:
    """Poll the layout until it is enough, and return it; None if there is none."""
    async with ShardDatabases(settings) as databases:
        store, found = LayoutStore(databases.home), None

        async def read() -> None:
            nonlocal found
            found = await store.get()

        await databases.demand(read)
        while found is not None and not is_enough(found):
            await asyncio.sleep(look_s)
            await databases.demand(read)
        return found


async def audit(settings: Settings, progress: ScanProgress) -> CheckReport | None:
    """Return the broken invariants in the databases of all shards, by a thorough check; None if a signal came first."""
    async with ShardDatabases(settings) as databases:
        if not await _are_own(settings, databases, new=False):
            return None
        names = settings.shard_names
        scans: list[InvariantScan] = [
            MongoInvariantScan(database, deployment_of(settings, shard))
            for shard, database in zip(names, databases.all, strict=True)
        ]
        if len(scans) == 1:
            return await scans[0].run(THOROUGH, progress)
        placed = {shard: PlacedScan(scans[index], databases.all, names, index) for index, shard in enumerate(names)}
        return await deployment_report(placed, THOROUGH, progress)


async def examine(settings: Settings, uris: Sequence[str]) -> AsyncIterator[Requirement]:
    """Yield what the servers at ``uris`` have of what a deployment needs; without ``uris``, those of the settings."""
    for uri in uris or _uris(settings):
        server = redacted(uri).partition("?")[0]
        if uri.startswith("amqp"):
            async for requirement in examine_broker(uri, broker_tls(settings), server):
                yield requirement
            continue
        tls = tls_options(settings.mongodb_tls_ca_file, settings.mongodb_tls_cert_file)
        client = connect(uri, tls_ca_file=settings.mongodb_tls_ca_file, tls_cert_file=settings.mongodb_tls_cert_file)
        async with client:
            async for requirement in examine_database(open_database(client, settings.database), uri, tls, server):
                yield requirement


def _uris(settings: Settings) -> Sequence[str]:
    broker = [settings.amqp_url.get_secret_value()] if settings.transport == "rabbitmq" else []
    return [*dict.fromkeys(settings.shard_uris), *broker]


async def require_servers(settings: Settings) -> None:
    """Raise `InvalidInput` if MongoDB or the broker can't be used; one try."""
    async with ShardDatabases(settings) as databases:
        await databases.demand(lambda: reach(databases.home))
    await _broker_accessible(settings, must_answer=True)


async def _broker_accessible(settings: Settings, *, must_answer: bool = False) -> None:
    """Raise `InvalidInput` if the broker refuses us, unless the settings ask for patience: its users may come soon."""
    if settings.transport == "rabbitmq" and not settings.startup_patience_ms:
        await require_access(settings.amqp_url.get_secret_value(), broker_tls(settings), must_answer=must_answer)


def peer_tls(settings: Settings) -> ssl.SSLContext | None:
    """Return the TLS that replicas use to ask each other; None for plain HTTP, if the API uses it too."""
    if not settings.http_tls_cert_file:
        return None
    return client_context(*pem_files(settings, "peer_tls_ca_file", "http_tls_cert_file", "http_tls_key_file"))


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


def _served_certificates(settings: Settings) -> ServedCertificates | None:
    if not settings.http_tls_cert_file:
        return None
    return ServedCertificates(
        *pem_files(settings, "http_tls_cert_file", "http_tls_key_file", "http_tls_client_ca_file")
    )
