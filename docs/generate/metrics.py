"""Every metric of replicas and processors, from the registries that they are in."""

from collections.abc import Iterable, Iterator
from dataclasses import MISSING, fields

from prometheus_client import CollectorRegistry
from prometheus_client.samples import Sample

from docs.generate.markdown import code, head, table
from hascheduler.ports import Gauges
from hascheduler.telemetry.metrics_http import HttpMetrics
from hascheduler.telemetry.metrics_processor import ProcessorGauges, ProcessorMetrics
from hascheduler.telemetry.metrics_replica import ReplicaGauges, ReplicaMetrics
from hascheduler.telemetry.registry import NAMESPACE, new_registry

_INTRO = """\
`/metrics` on the health port (`HASCHEDULER_HEALTH_PORT`) needs no token; `/metrics` of the API needs one for all
tenants. Counters of decisions grow on the leader only. Gauges of shared state are the same on every replica, so take
the largest. Labels with names that callers choose have a limited number of values; the rest is `other`. The usual
`process_…` and `python_info` are there too. [Runbooks](../operations/runbooks.md) has the alerts.
"""


def page() -> str:
    replica, processor = new_registry(), new_registry()
    ReplicaMetrics(replica)
    HttpMetrics(replica)
    replica.register(ReplicaGauges(lambda: {"": _gauges()}))
    ProcessorMetrics(processor).watch(lambda: ProcessorGauges(0, 1, 0, fence_open=True, heartbeat_age_ms=0))
    parts = [head("Metrics", "hascheduler/telemetry", _INTRO)]
    for title, registry in (("Replicas", replica), ("Processors", processor)):
        parts += [f"## {title}\n", table(("metric", "type", "labels", "meaning"), sorted(_rows(registry)))]
    return "\n".join(parts)


def _gauges() -> Gauges:
    """Return one of everything, so that each gauge shows its labels."""
    values = {
        "jobs_of_definition": {"d": {}},
        "jobs_of_lane": {"l": {}},
        "jobs_of_tenant": {"t": {}},
        "waited_ms": {"l": 0},
        "schedules": {"active": 0},
        "processors": {"live": 0},
        "unable": {"resting": 0},
        "slots": {"free": 0},
        "jobs": {},
        "definitions": (),
        "lanes": (),
        "tenants": (),
        "findings": {},
    }
    numbers = {each.name: 0 for each in fields(Gauges) if each.name not in values and each.default is MISSING}
    return Gauges(**{**numbers, **values})  # type: ignore[arg-type]  # zeros do for every number and flag


def _rows(registry: CollectorRegistry) -> Iterator[tuple[str, str, str, str]]:
    labels = {}
    for collector in list(registry._collector_to_names):  # no other way to the labels of a metric that has no sample
        for metric in collector.collect():
            names = tuple(getattr(collector, "_labelnames", ())) or _labels_of(metric.samples)
            labels[metric.name] = metric, names
    for name, (metric, names) in labels.items():
        if name.startswith(f"{NAMESPACE}_"):
            shown = f"{name}_total" if metric.type == "counter" else name
            yield code(shown), metric.type, ", ".join(code(each) for each in names), metric.documentation


def _labels_of(samples: Iterable[Sample]) -> tuple[str, ...]:
    found = dict.fromkeys(name for sample in samples for name in sample.labels)
    return tuple(name for name in found if name != "le")
