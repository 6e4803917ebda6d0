"""What is wrong, in words: each has the runbook of an alert that there is."""

import json
from collections.abc import Iterator
from dataclasses import replace
from importlib.resources import files
from typing import Any

import pytest

from hascheduler.api.ui.alerts import Alert, Severity, alerts
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import Cluster, Gauges
from hascheduler.schema.pause import EVERYTHING, StandingPause
from tests.unit.api.doubles import NOW, StandingView

RUNBOOKS = json.loads((files("hascheduler.api.ui") / "static" / "runbooks.json").read_text(encoding="utf-8"))
PAUSE = StandingPause(id=EVERYTHING, rev=0, since_ms=WallMs(NOW), by="ops", because="a move")


def sound() -> tuple[Cluster, Gauges]:
    view = StandingView()
    cluster = replace(view.cluster(), quarantine=[], quarantined=0, last_check=None, differing=[])
    return cluster, replace(view.gauges(), quarantined=0, findings=None, mirrors_differ=0)


def test_a_sound_cluster_has_nothing_wrong() -> None:
    assert alerts(*sound(), "") == []


ROWS: list[tuple[dict[str, Any], dict[str, Any], str, str, str]] = [
    ({"lease": None}, {}, "", "HaschedulerNobodyLeads", "No replica leads"),
    ({"silent": frozenset({"replica-1.aa"})}, {}, "", "HaschedulerUnreachable", "replica-1 is silent"),
    ({}, {}, "reading the collections", "HaschedulerReplicaNotReady", "reading the collections"),
    ({}, {"stream_lag_ms": 61_000}, "", "HaschedulerStreamLagging", "1m1s behind"),
    ({}, {"loop_age_ms": 60_000}, "", "HaschedulerLoopWedged", "1m"),
    ({}, {"broker_accepting": False}, "", "HaschedulerBrokerNotAccepting", "no job starts"),
    ({}, {"processors": {"live": 0}}, "", "HaschedulerNoProcessors", "3 jobs wait, and no processor lives"),
    ({}, {"unschedulable": 1}, "", "HaschedulerUnschedulable", "1 job can run on no processor"),
    ({}, {"pause": PAUSE}, "", "HaschedulerPaused", "ops has paused everything (a move)"),
    ({}, {"pause": PAUSE.model_copy(update={"schedules_only": True})}, "", "HaschedulerPaused", "No schedule fires"),
    ({}, {"waited_ms": {"slow": 7_200_000}}, "", "HaschedulerWaitsBeyondBound", "lane slow has waited for 2h"),
    ({"differing": ["replica-2.bb"]}, {}, "", "HaschedulerMirrorsDiffer", "replica-2.bb"),
    ({"quarantined": 2}, {}, "", "HaschedulerQuarantined", "2 documents can't be read"),
]


@pytest.mark.parametrize(("cluster", "gauges", "unready", "runbook", "words"), ROWS, ids=[row[3] for row in ROWS])
def test_each_trouble_is_told_with_its_runbook(
    cluster: dict[str, Any], gauges: dict[str, Any], unready: str, runbook: str, words: str
) -> None:
    of_cluster, of_gauges = sound()
    found = alerts(replace(of_cluster, **cluster), replace(of_gauges, **gauges), unready)
    assert [alert.runbook for alert in found] == [runbook]
    assert words in found[0].text
    assert RUNBOOKS[runbook]


def test_the_most_urgent_comes_first() -> None:
    cluster, gauges = sound()
    found = alerts(replace(cluster, lease=None, quarantined=1), replace(gauges, pause=PAUSE), "")
    assert [alert.severity for alert in found] == [Severity.PAGE, Severity.TICKET, Severity.TICKET]


def test_what_the_check_of_the_database_found_is_told_by_kind() -> None:
    cluster, gauges = StandingView().cluster(), sound()[1]
    assert "finds 2 overdue" in " ".join(_texts(alerts(cluster, gauges, "")))


def _texts(found: list[Alert]) -> Iterator[str]:
    return (alert.text for alert in found)
