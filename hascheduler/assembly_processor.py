"""Puts together what a processor works with: its stores and its queue, in its shard or in one shard after another."""

import ssl
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from hascheduler.daemon.leadership.liveness import LivenessServer
from hascheduler.model.routing import Routing
from hascheduler.mongo.connection import Database
from hascheduler.mongo.demand import MongoShardDemand
from hascheduler.mongo.fallback import FallbackDeliveries
from hascheduler.mongo.routing import MongoRoutingStore
from hascheduler.mongo.transport import MongoDeliveries
from hascheduler.mongo.work.store import MongoWorkStore
from hascheduler.ports import Clock, Deliveries
from hascheduler.ports.demand import BeatLimits
from hascheduler.processor import Handlers, Processor, ProcessorConfig
from hascheduler.processor.handler_loop import HandlerLoop
from hascheduler.processor.roaming import RoamingProcessor
from hascheduler.rabbitmq.deliveries import RabbitDeliveries
from hascheduler.settings import Settings
from hascheduler.sharding.home import pinned_shard, stored_routing
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
    ) -> Processor | RoamingProcessor:
        """The processor of this process. ``config`` is for its first shard; its health and gauges are the process's."""
        processor = self._serving(config, 0) if routing is None else self._of_several(config, routing, liveness)
        self.metrics.watch(processor.health)
        return processor

    def _of_several(
        self, config: ProcessorConfig, routing: Routing, liveness: LivenessServer
    ) -> Processor | RoamingProcessor:
        pinned = pinned_shard(routing, self.settings.shard)
        if pinned is not None:
            return self._serving(config, pinned)
        shards: Sequence[str] = routing.shards
        limits = BeatLimits.of(self.settings.heartbeat_interval_ms, self.settings.heartbeat_timeout_ms)

        def begin(id: str, shard: int, slots: int) -> Processor:
            of_tenure = replace(config, id=id, shard=shards[shard], offered_first=slots)
            return self._serving(of_tenure, shard)

        return RoamingProcessor(
            id=config.id,
            shards=shards,
            slots=config.slots,
            definitions=self.handlers.definitions,
            begin=begin,
            demand=MongoShardDemand(self.databases, self.clock, limits),
            clock=self.clock,
            greet=lambda ids: liveness.greet_as(*ids),
            first_look_ms=limits.unproven_ms,
        )

    def _serving(self, config: ProcessorConfig, shard: int) -> Processor:
        database = self.databases[shard]
        return Processor(
            self.handlers,
            MongoWorkStore(database, self.settings.job_retention_ms, lambda: self.require_own(shard)),
            self._deliveries(config, database),
            self.clock,
            config,
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
