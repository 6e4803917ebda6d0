"""Metrics that a processor counts while it works, and its gauges."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from hascheduler.telemetry.registry import NAMESPACE, BoundedLabel, GuardedCollector, MetricsOwner

OUTCOMES = ("succeeded", "failed", "cancelled", "given_back", "lost_race", "late", "revoked", "unreadable")
"""How an attempt ended here.

``lost_race``: another attempt was first; ``late``: the processor no longer held the attempt at its end; ``revoked``:
the processor learned so earlier; ``unreadable``: the job could not be read.
"""
NOT_KNOWN = "unknown"
"""The definition of an attempt that ended before the job was read."""
_BUCKETS_S = (0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3_600, 14_400)


@dataclass(frozen=True, slots=True)
class ProcessorGauges:
    """The state of a processor. ``heartbeat_age_ms``: since the last written heartbeat began; None before the first."""

    running: int
    slots: int
    parked: int
    fence_open: bool
    heartbeat_age_ms: int | None


class ProcessorMetrics(MetricsOwner):
    """Counters and histograms of one processor."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        super().__init__(registry)
        self._definitions = BoundedLabel()
        self._attempts = self._counter(
            "processor_attempts", "Attempts received by this processor, by outcome", "definition", "outcome"
        )
        self._handler = self._histogram("handler_duration_seconds", "Run time of handlers", _BUCKETS_S, "definition")

    def ended(self, definition: str, outcome: str) -> None:
        """Count an attempt that ended as one of `OUTCOMES`."""
        self._attempts.labels(self._definitions.of(definition or NOT_KNOWN), outcome).inc()

    def handling(self, definition: str) -> AbstractContextManager[Any]:
        """Measure the block as the work of a handler."""
        return self._handler.labels(self._definitions.of(definition)).time()

    def watch(self, read: Callable[[], ProcessorGauges]) -> None:
        """Show the processor's gauges with every scrape from now on."""
        self.registry.register(GuardedCollector("processor", lambda: _gauges(read())))


def _gauges(now: ProcessorGauges) -> Iterator[Metric]:
    yield GaugeMetricFamily(f"{NAMESPACE}_processor_running", "Running handlers", value=now.running)
    yield GaugeMetricFamily(f"{NAMESPACE}_processor_slots_max", "Slots of this processor", value=now.slots)
    yield GaugeMetricFamily(
        f"{NAMESPACE}_processor_fence_open",
        "1 while the fence is open, so this processor may run jobs",
        value=now.fence_open,
    )
    age = GaugeMetricFamily(f"{NAMESPACE}_processor_heartbeat_age_seconds", "Age of the last written heartbeat")
    if now.heartbeat_age_ms is not None:
        age.add_metric([], now.heartbeat_age_ms / 1_000)
    yield age
    yield CounterMetricFamily(
        f"{NAMESPACE}_processor_messages_parked", "Unreadable messages that were parked", value=now.parked
    )
