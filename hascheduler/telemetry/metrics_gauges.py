"""What a replica shows of the moment. All show the same of the shared state: whoever asks takes the largest."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily, Metric

from hascheduler.check.finding import FindingKind
from hascheduler.model.job import JobState
from hascheduler.ports import Gauges
from hascheduler.telemetry.labels import OTHER, VALUES_MAX, BoundedRows
from hascheduler.telemetry.registry import NAMESPACE, GuardedCollector

_LIVE = (JobState.PENDING.value, JobState.DISPATCHED.value, JobState.RUNNING.value)
DEFAULT_LANE = "default"
"""Shown even where nobody has said anything of it."""


class ReplicaGauges(GuardedCollector):
    """Reads ``view`` at each scrape. Owner of which names are shown, as there may be more than there is room for."""

    def __init__(self, view: Callable[[], Gauges]) -> None:
        super().__init__("replica", lambda: self._families(view()))
        self._definitions = BoundedRows()
        self._lanes = BoundedRows()
        self._tenants = BoundedRows()

    def _families(self, now: Gauges) -> Iterator[Metric]:
        yield _one("leading", "1 on the replica that leads", now.leading)
        yield _one("ready", "1 while the mirror is complete and fresh", now.ready)
        yield _one("term", "The newest term that is known here", now.term)
        yield _one("stream_lag_seconds", "How far the change stream is behind", _seconds(now.stream_lag_ms))
        yield _one("loop_age_seconds", "Since the dispatch loop last came round", _seconds(now.loop_age_ms))
        yield _one("quarantined", "Documents that can't be read", now.quarantined)
        yield _one("broker_accepting", "1 while the broker takes messages from here", now.broker_accepting)
        yield _by("jobs", "Jobs that have not ended", "state", {state: now.jobs.get(state, 0) for state in _LIVE})
        yield _one(
            "jobs_unschedulable",
            "Pending jobs that no processor which lives could ever run; at most some thousands are counted",
            now.unschedulable,
        )
        for name, rows, table, known in (
            ("definition", self._definitions, now.jobs_of_definition, now.definitions),
            ("lane", self._lanes, now.jobs_of_lane, (DEFAULT_LANE, *now.lanes)),
            ("tenant", self._tenants, now.jobs_of_tenant, now.tenants),
        ):
            yield _table(name, rows.of(table, now.jobs, known))
        yield _by(
            "wait_oldest_seconds",
            "How long the oldest of the jobs that are due has waited",
            "lane",
            _longest({lane: waited_ms / 1_000 for lane, waited_ms in now.waited_ms.items()}, now.lanes),
        )
        if now.wait_bound_ms is not None:
            yield _one(
                "wait_bound_seconds",
                "A job that waits longer is overtaken by none of its lane, tier and key that comes after it",
                _seconds(now.wait_bound_ms),
            )
        yield _by("schedules", "Schedules", "state", now.schedules)
        yield _one("definitions", "Definitions", len(now.definitions))
        yield _by("processors", "Processors that are registered", "state", now.processors)
        yield _by("processor_slots", "Slots of processors", "state", now.slots)
        yield _one(
            "mirrors_differ", "Replicas whose mirrors differ from this one's, or did a moment ago", now.mirrors_differ
        )
        yield _by(
            "audit_findings",
            "What is broken in the database, as the leader's last look found it",
            "kind",
            {} if now.findings is None else {kind.value: now.findings.get(kind.value, 0) for kind in FindingKind},
        )


def _one(name: str, documentation: str, value: float | None) -> Metric:
    """No sample where there is nothing to tell."""
    family = GaugeMetricFamily(f"{NAMESPACE}_{name}", documentation)
    if value is not None:
        family.add_metric([], value)
    return family


def _by(name: str, documentation: str, label: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(f"{NAMESPACE}_{name}", documentation, labels=[label])
    for value, number in values.items():
        family.add_metric([value], number)
    return family


def _table(label: str, rows: Iterable[tuple[str, Mapping[str, int]]]) -> Metric:
    family = GaugeMetricFamily(
        f"{NAMESPACE}_{label}_jobs", f"Jobs that have not ended, by {label}", labels=[label, "state"]
    )
    for name, counts in rows:
        for state in _LIVE:
            family.add_metric([name, state], counts.get(state, 0))
    return family


def _longest(waits: Mapping[str, float], lanes: Iterable[str]) -> Mapping[str, float]:
    """By lane, zeros where nobody waits; of too many the worst, and what the worst of all others has, as `OTHER`."""
    shown = {**dict.fromkeys((DEFAULT_LANE, *lanes), 0.0), **waits}
    if len(shown) <= VALUES_MAX:
        return shown
    worst_first = sorted(shown.items(), key=lambda item: (-item[1], item[0]))
    return {**dict(worst_first[:VALUES_MAX]), OTHER: worst_first[VALUES_MAX][1]}


def _seconds(ms: int | None) -> float | None:
    return None if ms is None else ms / 1_000
