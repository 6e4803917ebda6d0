"""One process's metrics, and their text for Prometheus.

Names that callers choose are bounded as labels, so that no metric grows with the number of callers.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import chain

import structlog
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
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
    """Return a registry with what every process shows: its version, and its use of the machine."""
    # The creation time of each counter would be a second series of no use.
    disable_created_metrics()  # type: ignore[no-untyped-call]
    registry = CollectorRegistry(auto_describe=False)
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    Gauge("build_info", "Running version; always 1", ["version"], NAMESPACE, registry=registry).labels(__version__).set(
        1
    )
    return registry


class MetricsOwner:
    """Counters and histograms of one part of a process, in ``registry``."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = new_registry() if registry is None else registry

    def _counter(self, name: str, documentation: str, *labels: str, values: Iterable[str] = ()) -> Counter:
        """Return a counter; ``values`` of its one label exist from the start, so that their rates do."""
        counter = Counter(name, documentation, labels, NAMESPACE, registry=self.registry)
        for value in values:
            counter.labels(value)
        return counter

    def _histogram(self, name: str, documentation: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        return Histogram(name, documentation, labels, NAMESPACE, registry=self.registry, buckets=buckets)

    def _gauge(self, name: str, documentation: str, *labels: str) -> Gauge:
        return Gauge(name, documentation, labels, NAMESPACE, registry=self.registry)


def text_of(registry: CollectorRegistry) -> bytes:
    """Return all metrics in the text format of Prometheus."""
    return generate_latest(registry)


class GuardedCollector(Collector):
    """Collects the gauges that ``read`` yields. An error is logged and counted, and only those gauges are missing."""

    def __init__(self, name: str, read: Callable[[], Iterable[Metric]]) -> None:
        self._name = name
        self._read = read
        self._failures = 0

    def describe(self) -> Iterator[Metric]:
        """Return nothing, so that registering does not read."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        try:
            yield from list(self._read())
        except Exception:  # one gauge must not cost the others, nor the process
            self._failures += 1
            log.exception("gauges_read_failed", gauges=self._name)
        yield CounterMetricFamily(
            f"{NAMESPACE}_scrape_failures", "Scrapes in which the gauges could not be read", value=self._failures
        )


VALUES_MAX = 100
OTHER = "other"
"""All names beyond the bound, together."""


class BoundedLabel:
    """A label of counters, which can't forget: the first `VALUES_MAX` names are shown, later ones become `OTHER`."""

    def __init__(self, values_max: int = VALUES_MAX) -> None:
        self._values_max = values_max
        self._known: set[str] = set()

    def of(self, name: str) -> str:
        if name in self._known:
            return name
        if len(self._known) >= self._values_max:
            return OTHER
        self._known.add(name)
        return name


class BoundedRows:
    """The rows of gauges that are shown now: names with a value first, then names shown before."""

    def __init__(self, values_max: int = VALUES_MAX) -> None:
        self._values_max = values_max
        self._shown: dict[str, None] = {}

    def of(
        self, table: Mapping[str, Mapping[str, int]], totals: Mapping[str, int], idle: Collection[str] = ()
    ) -> list[tuple[str, Mapping[str, int]]]:
        """Return the rows of ``table`` within the bound, then zeros for ``idle`` names.

        The rest of ``totals`` comes last, as `OTHER`. It reads no more than twice as many names as the bound,
        however many there are.
        """
        names: dict[str, None] = {}
        busy, quiet = (name for name in self._shown if name in table), (name for name in self._shown if name in idle)
        for name in chain(busy, table, quiet, idle):
            if len(names) >= self._values_max:
                break
            names[name] = None
        self._shown = names
        rows = [(name, table.get(name, {})) for name in names]
        rest = {key: count - sum(row.get(key, 0) for _, row in rows) for key, count in totals.items()}
        if any(rest.values()):
            rows.append((OTHER, rest))
        return rows
