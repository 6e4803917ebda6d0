"""Assembles the stores and the queue of a processor, in its shard or in each shard that it serves."""

import ssl
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from hascheduler.daemon.leadership.liveness import LivenessServer
from hascheduler.errors import InvalidInput
from hascheduler.model.resources import Resources
from hascheduler.model.values.error_texts import quoted
from hascheduler.mongo.connection import Database
from hascheduler.mongo.fallback import FallbackDeliveries
from hascheduler.mongo.transport import MongoDeliveries
from hascheduler.mongo.work.store import MongoWorkStore, count_servers
from hascheduler.ports import Clock, Deliveries
from hascheduler.processor import Handlers, Processor, ProcessorConfig
from hascheduler.processor.attempts import ProcessSlots
from hascheduler.processor.handler_loop import HandlerLoop
from hascheduler.rabbitmq.deliveries import RabbitDeliveries
from hascheduler.settings import Settings
from hascheduler.shards.home import LayoutStore, stored_layout
from hascheduler.shards.layout import Layout
from hascheduler.shards.processors import ManyShardProcessor
from hascheduler.telemetry.metrics_processor import ProcessorMetrics
from hascheduler.telemetry.tracing import Tracer


@dataclass(frozen=True, slots=True)
class ProcessorParts:
    """The parts that a processor uses in every shard."""

    settings: Settings
    databases: Sequence[Database]
    """The databases of the shards, the home's first."""
    require_own: Callable[[int], Awaitable[None]]
    """Raises `StoreUnavailable` until the database of that shard is known to belong to it."""
    handlers: Handlers
    handler_loop: HandlerLoop
    clock: Clock
    broker_tls: ssl.SSLContext | None
    tracer: Tracer
    metrics: ProcessorMetrics

    async def layout(self) -> Layout | None:
        """Return the layout of a deployment of several shards; None for a single one.

        Raise `InvalidInput` if the home has another number of shards than the settings, or none by the name in the
        settings. Raise `StoreUnavailable` if it can't be read: only a home without a layout is the only shard.
        """
        layout = await stored_layout(LayoutStore(self.databases[0]), self.settings.shards)
        if layout is not None and self.settings.shard not in layout.shards:
            problem = f"the deployment has no shard {quoted(self.settings.shard)}"
            raise InvalidInput(("HASCHEDULER_SHARD",), problem, f"one of {', '.join(layout.shards)}")
        return layout

    def processor(
        self, config: ProcessorConfig, layout: Layout | None, liveness: LivenessServer
    ) -> Processor | ManyShardProcessor:
        """Return the processor of this process, with the health and gauges of the process.

        In a deployment of several shards it serves the one that the settings name, and all of them if they name the
        home.
        """
        index = 0 if layout is None else layout.shards.index(config.scheduler)
        if layout is None or index:
            processor: Processor | ManyShardProcessor = self._serving(config, index)
        else:
            processor = self._of_several(config, layout.shards, liveness)
        self.metrics.watch(processor.health.gauges)
        return processor

    def _of_several(
        self, config: ProcessorConfig, shards: Sequence[str], liveness: LivenessServer
    ) -> ManyShardProcessor:
        databases = self.databases
        definitions, dead_after_ms = self.handlers.definitions, self.settings.heartbeat_timeout_ms

        def begin(id: str, shard: int, offered: int, resources: Resources, slots: ProcessSlots) -> Processor:
            there = replace(config, id=id, scheduler=shards[shard], offered_first=offered, resources=resources)
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
