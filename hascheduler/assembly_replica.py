"""Assembles the replica of one shard, with its connections: its database, the broker, Kubernetes.

A shard does not know the others. So this serves a deployment of one shard, and each shard of several, alike.
"""

import os
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hascheduler.check.finding import CheckConfig
from hascheduler.daemon.config import ReplicaConfig, ReplicaPorts
from hascheduler.daemon.leadership.liveness import LivenessServer, Silencing
from hascheduler.daemon.replica import Replica
from hascheduler.dispatch.config import DispatchConfig, PolicyConfig
from hascheduler.mongo.apply.claims import MongoClaimStore
from hascheduler.mongo.check.scan import Deployment, MongoInvariantScan
from hascheduler.mongo.connection import Database
from hascheduler.mongo.jobs.store import MongoJobStore
from hascheduler.mongo.journal import MongoJournal
from hascheduler.mongo.leases import MongoLeaseStore
from hascheduler.mongo.replicas import MongoAccountStore, MongoFailoverStore, MongoReplicaBoard
from hascheduler.mongo.stream.source import MongoChangeSource
from hascheduler.mongo.transport import MongoJobTraces, MongoTransport
from hascheduler.ports import Clock, EventExchange, LeaseStore, Transport
from hascheduler.ports.invariant_scan import InvariantScan
from hascheduler.rabbitmq.publisher import RabbitEventExchange, RabbitTransport
from hascheduler.settings import PREFIX, Settings
from hascheduler.telemetry.metrics_replica import ReplicaMetrics
from hascheduler.telemetry.tracing import Tracer
from hascheduler.tls import PemFile, client_context

if TYPE_CHECKING:
    from hascheduler.kubernetes.api import KubernetesApi


@dataclass(frozen=True, slots=True)
class ReplicaParts:
    """The parts that the replicas of all shards of one process share. ``cluster`` is None if leases are in MongoDB."""

    settings: Settings
    replica_id: str
    liveness: LivenessServer
    tracer: Tracer
    metrics: ReplicaMetrics
    cluster: "KubernetesApi | None" = None

    def replica_of(
        self,
        shard: str,
        database: Database,
        clock: Clock,
        *,
        part: tuple[int, int] = (0, 1),
        silencing: Silencing | None = None,
        prepare: Callable[[], Awaitable[None]] | None = None,
        scan: Callable[[InvariantScan], InvariantScan] = lambda own: own,
    ) -> Replica:
        """Return the replica of that shard, which has not begun.

        ``part`` is the shard's place and the number of shards: the replica keeps its part of each cap. ``silencing`` is
        notified when this replica gets out of touch or back; None: the process's liveness endpoint is, for ever.
        ``prepare`` is the work left before the first stream is opened. ``scan`` may add to the leader's scans of its
        database.
        """
        settings = self.settings
        return Replica(
            self._config(shard, clock, part),
            ReplicaPorts(
                source=MongoChangeSource(database, prepare),
                leases=self._lease_store(shard, database),
                leases_streamed=self.cluster is None,
                journal=MongoJournal(database),
                claims=MongoClaimStore(database, settings.job_retention_ms, self.tracer),
                accounts=MongoAccountStore(database),
                board=MongoReplicaBoard(database),
                transport=_transport(settings),
                fallback=MongoTransport() if settings.transport_fallback == "mongo" else None,
                liveness=silencing or self.liveness,
                clock=clock,
                exchange=_event_exchange(settings),
                tracer=self.tracer,
                # Only the broker's transport carries headers.
                traces=MongoJobTraces(database) if settings.transport == "rabbitmq" else None,
                jobs=MongoJobStore(database, settings.job_retention_ms),
                failovers=MongoFailoverStore(database),
                scan=scan(MongoInvariantScan(database, deployment_of(settings, shard))),
                metrics=self.metrics,
            ),
        )

    def _config(self, shard: str, clock: Clock, part: tuple[int, int]) -> ReplicaConfig:
        settings = self.settings
        return ReplicaConfig(
            scheduler=shard,
            replica_id=self.replica_id,
            name=settings.replica_id,
            started_at_ms=clock.wall_ms(),
            liveness_endpoint=liveness_endpoint(settings, self.liveness),
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
                part=part,
                policy=policy_config(settings),
            ),
        )

    def _lease_store(self, shard: str, database: Database) -> LeaseStore:
        if self.cluster is None:
            return MongoLeaseStore(database)
        from hascheduler.kubernetes.leases import KubernetesLeaseStore

        name = self.settings.lease_name
        return KubernetesLeaseStore(self.cluster, f"{name}-{shard}" if name and shard != self.settings.shard else name)


def deployment_of(settings: Settings, shard: str) -> Deployment:
    """Return the facts that a check of that shard's database needs."""
    config = CheckConfig(
        job_retention_ms=settings.job_retention_ms,
        journal_retention_ms=settings.journal_retention_ms,
        heartbeat_timeout_ms=settings.heartbeat_timeout_ms,
        start_timeout_ms=settings.start_timeout_ms,
    )
    return Deployment(config, shard, settings.lease_store == "mongodb", settings.max_concurrency)


def liveness_endpoint(settings: Settings, liveness: LivenessServer) -> str:
    return f"{settings.advertise_host or settings.liveness_host}:{liveness.port}"


def policy_config(settings: Settings) -> PolicyConfig:
    """Return the policy of the settings, completed from the preset."""
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


def _event_exchange(settings: Settings) -> EventExchange | None:
    if not settings.events_exchange:
        return None
    return RabbitEventExchange(settings.amqp_url.get_secret_value(), settings.events_exchange, broker_tls(settings))


def broker_tls(settings: Settings) -> ssl.SSLContext | None:
    """Return the TLS to the broker; None if the URL alone is enough."""
    if not (settings.amqp_tls_ca_file or settings.amqp_tls_cert_file):
        return None
    return client_context(*pem_files(settings, "amqp_tls_ca_file", "amqp_tls_cert_file", "amqp_tls_key_file"))


def cluster_of(settings: Settings) -> "KubernetesApi | None":
    """Return the API server; None if leases are in MongoDB, because then it is not used."""
    if settings.lease_store == "mongodb":
        return None
    from hascheduler.kubernetes.api import KubernetesApi, in_cluster

    return KubernetesApi(in_cluster(os.environ, settings.service_account_dir, settings.lease_namespace))


def pem_files(settings: Settings, *fields: str) -> list[PemFile]:
    return [PemFile(PREFIX + field.upper(), getattr(settings, field)) for field in fields]
