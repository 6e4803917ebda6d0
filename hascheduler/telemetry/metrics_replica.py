"""Metrics that a replica counts while it leads, and its gauges.

Counters do not grow on replicas that do not lead; each of the daemon's loops moves its own, so this room has no loop.
Gauges of shared state are the same on all replicas: a dashboard takes the largest.
"""

from collections import Counter as Tally
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric

from hascheduler.check.finding import FindingKind
from hascheduler.dispatch.decisions import (
    Cancel,
    CountFailures,
    Decision,
    Dispatch,
    Fail,
    Fire,
    RecordVerdict,
    ReleaseHold,
    Requeue,
    ResetCursor,
    Settlement,
)
from hascheduler.model.job import JobState
from hascheduler.model.values.zone_data import ZONE_DATA_VERSION
from hascheduler.model.verdict import Verdict
from hascheduler.ports import Confirm, Gauges
from hascheduler.schema.failover import Cause, Failover
from hascheduler.schema.lane import DEFAULT_LANE
from hascheduler.telemetry.registry import (
    NAMESPACE,
    OTHER,
    VALUES_MAX,
    BoundedLabel,
    BoundedRows,
    GuardedCollector,
    MetricsOwner,
)

_KINDS = {
    Fire: "fire",
    RecordVerdict: "pass_over",
    Dispatch: "dispatch",
    Requeue: "requeue",
    Fail: "fail",
    Cancel: "cancel",
    CountFailures: "count_failures",
    ResetCursor: "reset_cursor",
    ReleaseHold: "release_hold",
}
SUSPICIONS = ("suspected", "right", "wrong")
"""A leader was suspected; when the old leader came back soon, the suspicion was judged right or wrong."""
OUTCOMES = ("succeeded", "failed", "cancelled", "lost", "given_back")
_SHORT_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)
_LATE_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900)
_WAITED_S = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 1_800, 3_600, 14_400)


class ReplicaMetrics(MetricsOwner):
    """Counters and histograms of one replica."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        super().__init__(registry)
        self._gauge("zone_data_info", "Version of the time-zone data; always 1", "version").labels(
            ZONE_DATA_VERSION
        ).set(1)
        self._definitions = BoundedLabel()
        self.verdicts = self._counter("verdicts", "Nominal times by verdict", "verdict", values=Verdict)
        self.fire_lag = self._histogram("fire_lag_seconds", "Time from a due time to its stored job", _LATE_S)
        self._schedule_to_start = self._histogram(
            "schedule_to_start_seconds", "Time from a job's due time to its first start", _WAITED_S, "definition"
        )
        self._decisions = self._counter(
            "decisions", "Decisions written to the journal, by kind", "kind", values=_KINDS.values()
        )
        self._claims_lost = self._counter("dispatch_conflicts", "Dispatches overtaken by another change of the job")
        self._attempts = self._counter("attempts", "Attempts that ended, by outcome", "definition", "outcome")
        self._failed = self._counter("jobs_failed", "Jobs that failed for good, by definition", "definition")
        self._failed_definitions = BoundedLabel()
        self._attempts_lost = self._counter("attempts_lost", "Attempts lost with their processor")
        self.step_seconds = self._histogram("core_step_seconds", "Duration of one step of the core", _SHORT_S)
        self.journal_append_seconds = self._histogram(
            "journal_append_seconds", "Time to append one entry to the journal", _SHORT_S
        )
        self.journal_apply_seconds = self._histogram(
            "journal_apply_seconds", "Time to apply one journal entry", _SHORT_S
        )
        self.takeover = self._gauge(
            "takeover_seconds", "Duration of this replica's last takeover, from winning the lease to deciding"
        )
        self._failovers = self._counter("failovers", "Takeovers by this replica, by cause", "cause", values=Cause)
        self._failover = self._gauge(
            "failover_seconds",
            "Duration of this replica's last takeover, from the old leader's last sign to deciding",
        )
        self.suspicions = self._counter(
            "leader_suspicions",
            "Suspicions of a stalled leader by this replica, by outcome",
            "outcome",
            values=SUSPICIONS,
        )
        self.publishes = self._counter(
            "publishes", "Messages to processors, by outcome", "outcome", values=(*Confirm, "dropped")
        )
        self.publish_confirm_seconds = self._histogram(
            "publish_confirm_seconds", "Time from sending a batch of messages to its last confirmation", _SHORT_S
        )

    def journaled(self, decisions: Iterable[Decision]) -> None:
        """Count ``decisions`` that the leader has just written into the journal for the first time."""
        for kind, count in Tally(map(type, decisions)).items():
            self._decisions.labels(_KINDS[kind]).inc(count)

    def settled(self, pairs: Iterable[tuple[Decision, Settlement]]) -> None:
        """Count the settlements of decisions that were applied."""
        lost = sum(isinstance(decision, Dispatch) and end is Settlement.LOST for decision, end in pairs)
        if lost:
            self._claims_lost.inc(lost)

    def started(self, definition: str, waited_ms: int) -> None:
        """Record how long after its due time a job's first attempt began."""
        self._schedule_to_start.labels(self._definitions.of(definition)).observe(max(waited_ms, 0) / 1_000)

    def ended(self, definition: str, outcome: str) -> None:
        """Count an attempt that ended as one of `OUTCOMES`."""
        self._attempts.labels(self._definitions.of(definition), outcome).inc()
        if outcome == "lost":
            self._attempts_lost.inc()

    def failed_for_good(self, definition: str) -> None:
        self._failed.labels(self._failed_definitions.of(definition)).inc()

    def may_fail(self, definitions: Collection[str]) -> None:
        """Show zeros for these definitions if they are few: an increase from no value to one is not seen as one."""
        for name in definitions if len(definitions) <= VALUES_MAX else ():
            self._failed.labels(self._failed_definitions.of(name))

    def failed_over(self, failover: Failover) -> None:
        """Record that this replica took over."""
        self._failovers.labels(failover.cause.value).inc()
        self._failover.set((failover.gap_ms or 0) / 1_000)

    def published(self, confirms: Iterable[Confirm]) -> None:
        for outcome, count in Tally(confirms).items():
            self.publishes.labels(outcome.value).inc(count)


_LIVE = (JobState.PENDING.value, JobState.DISPATCHED.value, JobState.RUNNING.value)


class ReplicaGauges(GuardedCollector):
    """Reads ``views``, those of the shards hosted here by name, at each scrape.

    ``count`` is how many shards there are; if there are several, each gauge has the label ``shard``.
    """

    def __init__(self, views: Callable[[], Mapping[str, Gauges]], count: int = 1) -> None:
        super().__init__("replica", lambda: self._all(views()))
        self._count = count
        self._shown: dict[str, _Shown] = {}

    def _all(self, now: Mapping[str, Gauges]) -> Iterator[Metric]:
        led = sum(each.leading for each in now.values())
        yield _one("shards", "Shards of the deployment", self._count)
        yield _one("shards_led", "Shards led by this replica", led)
        yield _one("shards_hosted", "Shards hosted by this replica", len(now))
        self._shown = {shard: self._shown.get(shard) or _Shown() for shard in now}
        whole: dict[str, Metric] = {}
        for shard, gauges in now.items():
            label = {"shard": shard} if self._count > 1 else {}
            for family in self._shown[shard].families(gauges):
                merged = whole.setdefault(family.name, Metric(family.name, family.documentation, family.type))
                merged.samples += [each._replace(labels={**label, **each.labels}) for each in family.samples]
        yield from whole.values()


class _Shown:
    """Owner of the names of one shard that are shown; their number is bounded."""

    def __init__(self) -> None:
        self._definitions = BoundedRows()
        self._lanes = BoundedRows()
        self._tenants = BoundedRows()

    def families(self, now: Gauges) -> Iterator[Metric]:
        yield _one("is_leader", "1 on the leader", now.leading)
        yield _one("ready", "1 while the mirror is complete and fresh", now.ready)
        yield _one("term", "The newest term known to this replica", now.term)
        yield _one("stream_lag_seconds", "Lag of the change stream", _seconds(now.stream_lag_ms))
        yield _one("dispatch_loop_age_seconds", "Time since the dispatch loop last ran", _seconds(now.loop_age_ms))
        yield _one(
            "decision_lag_seconds",
            "Time from a decision to its effect, on the leader",
            _seconds(now.decision_lag_ms),
        )
        yield _one("quarantined_documents", "Unreadable documents in quarantine", now.quarantined)
        yield _one("broker_accepting", "1 while the broker accepts messages from this replica", now.broker_accepting)
        yield _by(
            "paused",
            "1 while everything is paused, for schedules and for dispatches",
            "what",
            {
                "schedules": now.pause is not None,
                "dispatches": now.pause is not None and not now.pause.schedules_only,
            },
        )
        yield _by("jobs", "Live jobs by state", "state", {state: now.jobs.get(state, 0) for state in _LIVE})
        yield _one(
            "unschedulable_jobs",
            "Pending jobs that no live processor could ever run, at most 10,000",
            now.unschedulable,
        )
        yield _one("job_dependencies", "Jobs and batches that waiting jobs depend on", now.dependencies)
        for name, rows, table, known in (
            ("definition", self._definitions, now.jobs_of_definition, now.definitions),
            # The default lane exists, defined or not.
            ("lane", self._lanes, now.jobs_of_lane, (DEFAULT_LANE, *now.lanes)),
            ("tenant", self._tenants, now.jobs_of_tenant, now.tenants),
        ):
            yield _table(name, rows.of(table, now.jobs, known))
        yield _by(
            "oldest_wait_seconds",
            "How long the oldest due job has waited, by lane",
            "lane",
            _longest({lane: waited_ms / 1_000 for lane, waited_ms in now.waited_ms.items()}, now.lanes),
        )
        if now.wait_bound_ms is not None:
            yield _one(
                "wait_bound_seconds",
                "Wait after which no later job of the same lane, tier and key overtakes a job",
                _seconds(now.wait_bound_ms),
            )
        yield _by("schedules", "Schedules by state", "state", now.schedules)
        yield _one("definitions", "Number of definitions", len(now.definitions))
        yield _by("processors", "Registered processors by state", "state", now.processors)
        yield _by(
            "unavailable_processors",
            "Live processors that get few or no jobs, because they do not consume or did not start their last jobs",
            "reason",
            now.unable,
        )
        yield _by("processor_slots", "Slots of live processors, occupied or free", "state", now.slots)
        yield _one(
            "mirror_mismatches",
            "Replicas whose mirrors differ from this one's, now or within the last minute",
            now.mirrors_differ,
        )
        yield _by(
            "check_findings",
            "Findings of the leader's last check of the database",
            "kind",
            {} if now.findings is None else {kind.value: now.findings.get(kind.value, 0) for kind in FindingKind},
        )


def _one(name: str, documentation: str, value: float | None) -> Metric:
    """Return the gauge, without a sample if there is no value."""
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
    family = GaugeMetricFamily(f"{NAMESPACE}_{label}_jobs", f"Live jobs by {label} and state", labels=[label, "state"])
    for name, counts in rows:
        for state in _LIVE:
            family.add_metric([name, state], counts.get(state, 0))
    return family


def _longest(waits: Mapping[str, float], lanes: Iterable[str]) -> Mapping[str, float]:
    """Return the waits by lane, 0 if no job waits; beyond the bound the worst, and the others' worst as `OTHER`."""
    shown = {**dict.fromkeys((DEFAULT_LANE, *lanes), 0.0), **waits}
    if len(shown) <= VALUES_MAX:
        return shown
    worst_first = sorted(shown.items(), key=lambda item: (-item[1], item[0]))
    return {**dict(worst_first[:VALUES_MAX]), OTHER: worst_first[VALUES_MAX][1]}


def _seconds(ms: int | None) -> float | None:
    return None if ms is None else ms / 1_000
