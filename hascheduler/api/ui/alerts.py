"""Current problems in words, each with the runbook of the alert that Prometheus would raise for it.

They are derived from the newest picture only: Prometheus handles what needs a rate or a time span (late fires, lost
attempts). The runbooks themselves are in ``static/runbooks.json``, written from ``k8s/monitoring/rules.yaml``.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from hascheduler.check.finding import FindingKind
from hascheduler.model.values.instants import format_duration
from hascheduler.ports import Cluster, Gauges

_STREAM_LAG_MS_MAX = 5_000
_LOOP_AGE_MS_MAX = 10_000


class Severity(StrEnum):
    PAGE = "page"
    """Act now."""
    TICKET = "ticket"
    """It can wait until the morning."""


@dataclass(frozen=True, slots=True)
class Alert:
    severity: Severity
    runbook: str
    text: str

    def shown(self) -> dict[str, Any]:
        return {"severity": self.severity.value, "runbook": self.runbook, "text": self.text}


def alerts(cluster: Cluster, gauges: Gauges, unready_reason: str) -> list[Alert]:
    """Return the alerts, the most urgent first."""
    found = [*_of_leadership(cluster), *_of_this_replica(gauges, unready_reason), *_of_work(gauges), *_of_data(cluster)]
    return sorted(found, key=lambda alert: alert.severity is not Severity.PAGE)


def _of_leadership(cluster: Cluster) -> Iterator[Alert]:
    if cluster.lease is None or not cluster.lease.holder:
        yield Alert(Severity.PAGE, "HaschedulerNobodyLeads", "No replica leads: nothing fires and nothing starts.")
    for replica in cluster.replicas:
        if replica.id in cluster.silent:
            yield Alert(Severity.TICKET, "HaschedulerUnreachable", f"Replica {replica.name} is silent.")
        elif not replica.ready:
            yield Alert(Severity.TICKET, "HaschedulerReplicaNotReady", f"Replica {replica.name} is not ready.")


def _of_this_replica(gauges: Gauges, unready_reason: str) -> Iterator[Alert]:
    if unready_reason:
        text = f"This replica is not ready: {unready_reason}. Its data may be old."
        yield Alert(Severity.TICKET, "HaschedulerReplicaNotReady", text)
    if gauges.stream_lag_ms is not None and gauges.stream_lag_ms > _STREAM_LAG_MS_MAX:
        text = f"The change stream is {format_duration(gauges.stream_lag_ms)} behind."
        yield Alert(Severity.TICKET, "HaschedulerStreamLagging", text)
    if gauges.loop_age_ms > _LOOP_AGE_MS_MAX:
        text = f"The dispatch loop has not run for {format_duration(gauges.loop_age_ms)}."
        yield Alert(Severity.TICKET, "HaschedulerLoopWedged", text)
    if gauges.leading and not gauges.broker_accepting:
        text = "RabbitMQ accepts no messages from the leader: no job starts."
        yield Alert(Severity.PAGE, "HaschedulerBrokerNotAccepting", text)


def _of_work(gauges: Gauges) -> Iterator[Alert]:
    pending = gauges.jobs.get("pending", 0)
    if pending and not gauges.processors.get("live", 0):
        text = f"{_count(pending, 'job')} wait, and no processor is alive."
        yield Alert(Severity.PAGE, "HaschedulerNoProcessors", text)
    if gauges.unschedulable:
        text = f"{_count(gauges.unschedulable, 'job')} can't run on any live processor."
        yield Alert(Severity.TICKET, "HaschedulerUnschedulable", text)
    if gauges.pause is not None:
        effect = "no schedule fires" if gauges.pause.schedules_only else "nothing fires and nothing is dispatched"
        because = f" ({gauges.pause.because})" if gauges.pause.because else ""
        text = f"{gauges.pause.by} paused everything{because}: {effect}."
        yield Alert(Severity.TICKET, "HaschedulerPaused", text)
    bound_ms = gauges.wait_bound_ms
    for lane, waited_ms in sorted(gauges.waited_ms.items()):
        if bound_ms is not None and waited_ms > bound_ms and gauges.slots.get("free", 0):
            text = f"A job of lane {lane} has waited for {format_duration(waited_ms)} although slots are free."
            yield Alert(Severity.TICKET, "HaschedulerWaitsBeyondBound", text)


def _of_data(cluster: Cluster) -> Iterator[Alert]:
    if cluster.differing:
        text = f"The mirrors of {', '.join(sorted(cluster.differing))} differ from this replica's."
        yield Alert(Severity.TICKET, "HaschedulerMirrorsDiffer", text)
    if cluster.quarantined:
        text = f"{_count(cluster.quarantined, 'document')} can't be read and were set aside."
        yield Alert(Severity.TICKET, "HaschedulerQuarantined", text)
    for kind, count in sorted((cluster.last_check.counts if cluster.last_check else {}).items()):
        if count and kind == FindingKind.CURSOR_AHEAD:
            verb = "is" if count == 1 else "are"
            text = f"{_count(count, 'schedule')} fired ahead of time because a clock was wrong, and {verb} silent now."
            yield Alert(Severity.PAGE, "HaschedulerSchedulesAhead", text)
        elif count:
            text = f"The leader's check of the database found {count} {kind.replace('_', ' ')}."
            yield Alert(Severity.TICKET, "HaschedulerCheckFindings", text)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
