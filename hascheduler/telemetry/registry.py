"""One process's metrics, and their text for Prometheus."""

from collections.abc import Callable, Iterable, Iterator

import structlog
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Gauge,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from hascheduler import __version__

log = structlog.get_logger(__name__)

CONTENT_TYPE = CONTENT_TYPE_LATEST
NAMESPACE = "hascheduler"


def new_registry() -> CollectorRegistry:
    """With what every process tells: its version, and its use of the machine."""
    # When each counter began is a second series for each, and nobody asks for it.
    disable_created_metrics()  # type: ignore[no-untyped-call]
    registry = CollectorRegistry(auto_describe=False)
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    Gauge("build_info", "1, with the version that runs", ["version"], NAMESPACE, registry=registry).labels(
        __version__
    ).set(1)
    return registry


def text_of(registry: CollectorRegistry) -> bytes:
    """All metrics, in the text format of Prometheus."""
    return generate_latest(registry)


class GuardedCollector(Collector):
    """The gauges that ``read`` gives. Whatever it raises is logged and counted, and only those gauges are missing."""

    def __init__(self, name: str, read: Callable[[], Iterable[Metric]]) -> None:
        self._name = name
        self._read = read
        self._failures = 0

    def describe(self) -> Iterator[Metric]:
        """Nothing, so that registering does not read."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        try:
            yield from list(self._read())
        except Exception:  # a figure must not cost the others, nor the process
            self._failures += 1
            log.exception("gauges_unreadable", gauges=self._name)
        yield CounterMetricFamily(
            f"{NAMESPACE}_scrape_failures", "Scrapes in which the gauges could not be read", value=self._failures
        )
