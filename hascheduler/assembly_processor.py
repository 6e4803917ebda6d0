"""Puts together what a processor works with: its stores and its queue, in its shard or in each that it serves."""

import ssl
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from hascheduler.daemon.leadership.liveness import LivenessServer
from hascheduler.model.resources import Resources
from hascheduler.model.routing import Routing
from hascheduler.mongo.connection import Database
from hascheduler.mongo.fallback import FallbackDeliveries
from hascheduler.mongo.routing import MongoRoutingStore
from hascheduler.mongo.transport import MongoDeliveries
from hascheduler.mongo.work.servers import count_servers
from hascheduler.mongo.work.store import MongoWorkStore
from hascheduler.ports import Clock, Deliveries
from hascheduler.processor import Handlers, Processor, ProcessorConfig
from hascheduler.processor.handler_loop import HandlerLoop
from hascheduler.processor.slots import ProcessSlots
from hascheduler.rabbitmq.deliveries import RabbitDeliveries
from hascheduler.settings import Settings
from hascheduler.sharding.home import pinned_shard, stored_routing
from hascheduler.shards.processors import ManyShardProcessor
from hascheduler.telemetry.metrics_processor import ProcessorMetrics
from hascheduler.telemetry.tracing import Tracer


@dataclass(frozen=True, slots=True)
class ProcessorParts:
    """What a processor uses in every shard."""

    settings: Settings
    databases: Sequence[Database]
    """Of the shards, the home's first."""
    require_own: Callable[[int], Awaitable[None]]
    """Raises `StoreUnavailable` until the database of that shard is known to be its own."""
    handlers: Handlers
    handler_loop: HandlerLoop
    clock: Clock
    broker_tls: ssl.SSLContext | None
    tracer: Tracer
    metrics: ProcessorMetrics

    async def routing(self) -> Routing | None:
        """The routing of a deployment of several shards; None for a single one.

        `InvalidInput` where the home has another number of shards than the settings, or none by the name that the
        settings have; `StoreUnavailable` while it does not say: only one that has no routing is the only shard.
        """
        shards, home = self.settings.shards, self.settings.database
        routing = await stored_routing(MongoRoutingStore(self.databases[0]), shards, home)
        if shards == 1 or routing is None:
            return None
        pinned_shard(routing, self.settings.shard)
        return routing

    def processor(
        self, config: ProcessorConfig, routing: Routing | None, liveness: LivenessServer
    ) -> Processor | ManyShardProcessor:
        """The processor of this process: its health and gauges are the process's."""
        processor = self._serving(config, 0) if routing is None else self._of_several(config, routing, liveness)
        self.metrics.watch(processor.health)
        return processor

    def _of_several(
        self, config: ProcessorConfig, routing: Routing, liveness: LivenessServer
    ) -> Processor | ManyShardProcessor:
        pinned = pinned_shard(routing, self.settings.shard)
        if pinned is not None:
            return self._serving(config, pinned)
        databases, shards = self.databases, routing.shards
        definitions, dead_after_ms = self.handlers.definitions, self.settings.heartbeat_timeout_ms

        def begin(id: str, shard: int, offered: int, resources: Resources, slots: ProcessSlots) -> Processor:
            there = replace(config, id=id, shard=shards[shard], offered_first=offered, resources=resources)
            return self._serving(there, shard, slots)

        return ManyShardProcessor(
            id=config.id,
            shards=shards,
            slots=config.slots,
            resources=config.resources,
            begin=begin,
            servers=lambda shard: count_servers(databases[shard], definitions, dead_after_ms),
            clock=self.clock,
            greet=lambda ids: liveness.greet_as(*ids),
        )

    def _serving(self, config: ProcessorConfig, shard: int, slots: ProcessSlots | None = None) -> Processor:
        database = self.databases[shard]
        return Processor(
            self.handlers,
            MongoWorkStore(database, self.settings.job_retention_ms, lambda: self.require_own(shard)),
            self._deliveries(config, database),
            self.clock,
            config,
            slots=slots,
            handler_loop=self.handler_loop,
            tracer=self.tracer,
            metrics=self.metrics,
        )

    def _deliveries(self, config: ProcessorConfig, database: Database) -> Deliveries:
        if self.settings.transport == "mongo":
            return MongoDeliveries(database, config.id)
        url = self.settings.amqp_url.get_secret_value()
        broker = RabbitDeliveries(url, config.id, config.slots, self.broker_tls)
        if self.settings.transport_fallback == "mongo":
            return FallbackDeliveries(broker, MongoDeliveries(database, config.id))
        return broker
