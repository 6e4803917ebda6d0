"""Puts a process together: the only module that knows both the daemon and the technologies.

``serve`` is one replica, ``work`` one processor; each returns when a SIGTERM or SIGINT has been carried out in good
order, and a second signal ends the process at once.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from secrets import token_hex

import structlog
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

from hascheduler.api.app import ApiServices, create_app
from hascheduler.api.server import ApiServer
from hascheduler.clock import SystemClock
from hascheduler.daemon.config import ReplicaConfig
from hascheduler.daemon.liveness import Liveness
from hascheduler.daemon.replica import Replica
from hascheduler.dispatch.config import DispatchConfig, PolicyConfig
from hascheduler.errors import StoreUnavailable
from hascheduler.model.documents import Collection, encode_definition, encode_lane, encode_tenant
from hascheduler.model.policy import bonus_max_of, criteria, idle_key_start_of
from hascheduler.model.resource_texts import parse_resources
from hascheduler.mongo.accounts import MongoAccountStore
from hascheduler.mongo.claims import MongoClaimStore
from hascheduler.mongo.connection import Database, connect, open_database
from hascheduler.mongo.deliveries import MongoDeliveries, MongoTransport
from hascheduler.mongo.indexes import ensure_collections_and_indexes
from hascheduler.mongo.jobs import MongoJobStore
from hascheduler.mongo.journal import MongoJournal
from hascheduler.mongo.leases import MongoLeaseStore
from hascheduler.mongo.nouns import MongoNounStore
from hascheduler.mongo.replicas import MongoReplicaBoard
from hascheduler.mongo.schedules import MongoScheduleStore
from hascheduler.mongo.stream import MongoChangeSource
from hascheduler.mongo.verdicts import MongoVerdictStore
from hascheduler.mongo.work import MongoWorkStore
from hascheduler.ports import Clock, Deliveries, Transport
from hascheduler.processor import Processor, ProcessorConfig, load_handlers
from hascheduler.rabbitmq.deliveries import RabbitDeliveries
from hascheduler.rabbitmq.publisher import RabbitTransport
from hascheduler.settings import Settings

log = structlog.get_logger(__name__)

_DATABASE_PATIENCE_S = 60


async def serve(settings: Settings) -> None:
    """One replica: the scheduler's loops and the HTTP API, until a signal; `StoreUnavailable` without a database."""
    clock = SystemClock()
    replica_id = f"{settings.replica_id}.{token_hex(4)}"
    client = connect(settings.mongodb_uri.get_secret_value())
    try:
        database = open_database(client, settings.database)
        await _prepared(database)
        liveness = Liveness(settings.liveness_host, settings.liveness_port, replica_id)
        await liveness.bind()
        replica = _replica(settings, replica_id, database, liveness, clock)
        server = ApiServer(
            create_app(
                ApiServices(
                    schedules=MongoScheduleStore(database),
                    definitions=MongoNounStore(database, Collection.DEFINITIONS, encode_definition),
                    lanes=MongoNounStore(database, Collection.LANES, encode_lane),
                    tenants=MongoNounStore(database, Collection.TENANTS, encode_tenant),
                    jobs=MongoJobStore(database, settings.job_retention_ms),
                    verdicts=MongoVerdictStore(database),
                    view=replica.view,
                    clock=clock,
                    new_job_id=_JobIds(clock).new,
                )
            ),
            settings.http_host,
            settings.http_port,
        )
        await server.bind()
        replica.http_endpoint = f"{settings.advertise_host or settings.http_host}:{server.port}"
        log.info("serving", replica=replica_id, http=replica.http_endpoint, shard=settings.shard)
        with _on_signal(replica.stop):
            async with asyncio.TaskGroup() as tasks:
                serving = tasks.create_task(server.run(), name="api")
                await replica.run()
                serving.cancel()
        log.info("stopped", replica=replica_id)
    finally:
        await client.close()


async def work(settings: Settings, modules: Sequence[str], name: str) -> None:
    """One processor with the handlers of ``modules``, until a signal has drained it."""
    clock = SystemClock()
    handlers = load_handlers(modules)
    config = ProcessorConfig(
        id=f"{name}.{token_hex(4)}",
        name=name,
        shard=settings.shard,
        slots=settings.slots,
        resources=parse_resources(settings.resources),
        heartbeat_interval_ms=settings.heartbeat_interval_ms,
        heartbeat_deadline_ms=settings.heartbeat_timeout_ms - settings.heartbeat_interval_ms,
        drain_grace_ms=settings.drain_grace_ms,
    )
    client = connect(settings.mongodb_uri.get_secret_value())
    try:
        database = open_database(client, settings.database)
        await _prepared(database)
        processor = Processor(
            handlers,
            MongoWorkStore(database, settings.job_retention_ms),
            _deliveries(settings, config, database),
            clock,
            config,
        )
        with _on_signal(processor.drain):
            await processor.run()
        log.info("stopped", processor=config.id)
    finally:
        await client.close()


def _replica(settings: Settings, replica_id: str, database: Database, liveness: Liveness, clock: Clock) -> Replica:
    host = settings.advertise_host or settings.liveness_host
    config = ReplicaConfig(
        shard=settings.shard,
        replica_id=replica_id,
        name=settings.replica_id,
        started_at_ms=clock.wall_ms(),
        liveness_endpoint=f"{host}:{liveness.port}",
        lease_duration_ms=settings.lease_duration_ms,
        renew_deadline_ms=settings.renew_deadline_ms,
        retry_period_ms=settings.retry_period_ms,
        heartbeat_timeout_ms=settings.heartbeat_timeout_ms,
        journal_retention_ms=settings.journal_retention_ms,
        dispatch=DispatchConfig(start_timeout_ms=settings.start_timeout_ms, policy=policy_config(settings)),
    )
    return Replica(
        config,
        source=MongoChangeSource(database),
        leases=MongoLeaseStore(database),
        journal=MongoJournal(database),
        claims=MongoClaimStore(database, settings.job_retention_ms),
        accounts=MongoAccountStore(database),
        board=MongoReplicaBoard(database),
        transport=_transport(settings),
        liveness=liveness,
        clock=clock,
    )


def policy_config(settings: Settings) -> PolicyConfig:
    """What is not set follows the preset."""
    bonus_max = settings.on_demand_bonus_max
    if bonus_max is None:
        bonus_max = bonus_max_of(settings.policy)
    return PolicyConfig(
        criteria=criteria(settings.policy),
        max_concurrency=settings.max_concurrency,
        on_demand_bonus_max=None if bonus_max == "none" else bonus_max,
        idle_key_start=settings.idle_key_start or idle_key_start_of(settings.policy),
        learn_cost=settings.learn_cost,
        cost_alpha=settings.cost_alpha,
        idle_ttl_ms=settings.idle_ttl_ms,
    )


def _transport(settings: Settings) -> Transport:
    if settings.transport == "mongo":
        return MongoTransport()
    return RabbitTransport(settings.amqp_url.get_secret_value())


def _deliveries(settings: Settings, config: ProcessorConfig, database: Database) -> Deliveries:
    if settings.transport == "mongo":
        return MongoDeliveries(database, config.id)
    return RabbitDeliveries(settings.amqp_url.get_secret_value(), config.id, config.slots)


async def _prepared(database: Database) -> None:
    """Collections and indexes, waiting for a database that is still starting."""
    async for attempt in AsyncRetrying(
        retry=retry_if_exception_type(StoreUnavailable),
        wait=wait_random_exponential(multiplier=0.2, max=3),
        stop=stop_after_delay(_DATABASE_PATIENCE_S),
        before_sleep=lambda state: log.warning("waiting_for_mongodb", tries=state.attempt_number),
        reraise=True,
    ):
        with attempt:
            await ensure_collections_and_indexes(database)


@contextmanager
def _on_signal(stop: Callable[[], None]) -> Iterator[None]:
    """SIGTERM and SIGINT call ``stop``; a second one ends the process as if it had been killed."""
    loop = asyncio.get_running_loop()
    stopping = False

    def receive(number: int) -> None:
        nonlocal stopping
        if stopping:
            sys.stderr.write("hascheduler: second signal, leaving at once\n")
            os._exit(128 + number)
        stopping = True
        log.info("stopping", signal=signal.Signals(number).name)
        stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, receive, number)
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


class _JobIds:
    """Ids that sort by time of submission: milliseconds, a counter within this process, and chance against others."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._process = token_hex(5)
        self._count = 0

    def new(self) -> str:
        self._count = (self._count + 1) % 0x1000000
        return f"job:{self._clock.wall_ms():011x}{self._count:06x}{self._process}"
