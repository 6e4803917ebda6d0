"""What a replica counts while it leads; on the others all of it stays where it was.

Each of the daemon's loops moves its own, so there is no loop here.
"""

from collections import Counter as Tally
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from hascheduler.dispatch.decisions import (
    Cancel,
    CountFailures,
    Decision,
    Dispatch,
    Fail,
    Fire,
    RecordVerdict,
    Requeue,
    Settlement,
)
from hascheduler.model.failover import Cause, Failover
from hascheduler.model.verdict import Verdict
from hascheduler.ports import Confirm
from hascheduler.telemetry.labels import BoundedLabel
from hascheduler.telemetry.registry import NAMESPACE, new_registry

_KINDS = {
    Fire: "fire",
    RecordVerdict: "pass_over",
    Dispatch: "dispatch",
    Requeue: "requeue",
    Fail: "fail",
    Cancel: "cancel",
    CountFailures: "count_failures",
}
OUTCOMES = ("succeeded", "failed", "cancelled", "lost", "given_back")
_SHORT_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)
_LATE_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900)
_WAITED_S = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 1_800, 3_600, 14_400)


class ReplicaMetrics:
    """Counters and histograms of one replica, in ``registry``."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = new_registry() if registry is None else registry
        self._definitions = BoundedLabel()
        self._verdicts = self._counter("verdicts", "Nominal times that got each verdict", "verdict")
        self._fire_lag = self._histogram("fire_lag_seconds", "From a due time to its job being stored", _LATE_S)
        self._schedule_to_start = self._histogram(
            "schedule_to_start_seconds", "From when a job was due to its first start", _WAITED_S, "definition"
        )
        self._decisions = self._counter("decisions", "Decisions that are in the journal, by kind", "kind")
        self._claims_lost = self._counter("claims_lost", "Dispatches that somebody else had overtaken")
        self._attempts = self._counter("attempts", "Attempts that ended, by outcome", "definition", "outcome")
        self._attempts_lost = self._counter("attempts_lost", "Attempts that were taken from their processors")
        self.step_seconds = self._histogram("step_seconds", "One step of the core", _SHORT_S)
        self.journal_append_seconds = self._histogram(
            "journal_append_seconds", "One entry's way into the journal", _SHORT_S
        )
        self.journal_apply_seconds = self._histogram(
            "journal_apply_seconds", "Carrying one journal entry out", _SHORT_S
        )
        self._takeovers = self._counter("takeovers", "Terms that began here")
        self._takeover = Gauge(
            "takeover_seconds",
            "The last takeover here, from winning the lease to deciding",
            namespace=NAMESPACE,
            registry=self.registry,
        )
        self._failovers = self._counter("failovers", "Terms that began here, by how the lease became free", "cause")
        self._failover_phase = Gauge(
            "failover_seconds",
            "The last takeover here: how long it took to know that the lease is free, from there to deciding, and from"
            " there to the first decision",
            ["phase"],
            NAMESPACE,
            registry=self.registry,
        )
        self._failover_fires_late = Gauge(
            "failover_fires_late",
            "Fires that were due before the last takeover here could decide",
            namespace=NAMESPACE,
            registry=self.registry,
        )
        self._publishes = self._counter("publishes", "Messages to processors, by what became of each", "outcome")
        self.publish_confirm_seconds = self._histogram(
            "publish_confirm_seconds", "From sending a batch of messages to its last confirm", _SHORT_S
        )
        # From the start, so that a rate over them exists before the first one.
        for verdict in Verdict:
            self._verdicts.labels(verdict.value)
        for kind in _KINDS.values():
            self._decisions.labels(kind)
        for cause in Cause:
            self._failovers.labels(cause.value)
        for outcome in (*Confirm, "dropped"):
            self._publishes.labels(str(outcome))

    def journaled(self, decisions: Iterable[Decision]) -> None:
        """Those were written into the journal, for the first time."""
        for kind, count in Tally(map(type, decisions)).items():
            self._decisions.labels(_KINDS[kind]).inc(count)

    def concluded(self, verdict: Verdict, times: int) -> None:
        self._verdicts.labels(verdict.value).inc(times)

    def fired(self, lag_ms: int) -> None:
        self._fire_lag.observe(max(lag_ms, 0) / 1_000)

    def settled(self, pairs: Iterable[tuple[Decision, Settlement]]) -> None:
        """What became of decisions that were applied."""
        lost = sum(isinstance(decision, Dispatch) and end is Settlement.LOST for decision, end in pairs)
        if lost:
            self._claims_lost.inc(lost)

    def started(self, definition: str, waited_ms: int) -> None:
        """A job's first attempt began so long after it was due."""
        self._schedule_to_start.labels(self._definitions.of(definition)).observe(max(waited_ms, 0) / 1_000)

    def ended(self, definition: str, outcome: str) -> None:
        """An attempt ended as one of `OUTCOMES`."""
        self._attempts.labels(self._definitions.of(definition), outcome).inc()
        if outcome == "lost":
            self._attempts_lost.inc()

    def took_over(self, took_ms: int) -> None:
        self._takeovers.inc()
        self._takeover.set(took_ms / 1_000)

    def failed_over(self, failover: Failover) -> None:
        """The account of a takeover here is closed."""
        self._failovers.labels(failover.cause.value).inc()
        self._failover_fires_late.set(failover.backlog.fires_late)
        # What did not happen this time would show the time before: nothing is shown.
        self._failover_phase.clear()
        for phase, span_ms in (
            ("detection", failover.detection_ms),
            ("takeover", failover.takeover_ms),
            ("first_decision", failover.first_decision_ms),
        ):
            if span_ms is not None:
                self._failover_phase.labels(phase).set(span_ms / 1_000)

    def published(self, confirms: Iterable[Confirm]) -> None:
        for outcome, count in Tally(confirms).items():
            self._publishes.labels(outcome.value).inc(count)

    def dropped(self, messages: int) -> None:
        """There was no room for them in the queue."""
        self._publishes.labels("dropped").inc(messages)

    def _counter(self, name: str, documentation: str, *labels: str) -> Counter:
        return Counter(name, documentation, labels, NAMESPACE, registry=self.registry)

    def _histogram(self, name: str, documentation: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        return Histogram(name, documentation, labels, NAMESPACE, registry=self.registry, buckets=buckets)
