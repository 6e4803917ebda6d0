"""The state of the cluster, as replicas of either release tell it."""

from typing import Any

from rich.console import Console

from hascheduler.cli.cluster import _tables

OF_0_2_0: dict[str, Any] = {
    "leader": None,
    "journal_seq": 7,
    "counts": {"pending": 1},
    "replica_id": "replica-1.aa",
    "findings": {"at": "2030-01-01T00:00:00.000Z", "counts": {"overdue": 2}},
    "mirrors_differ": ["replica-2.bb"],
    "replicas": [],
    "processors": [],
    "quarantine": [],
    "schema": {"version": 1, "oldest_read": 1, "newest_read": 1},
    "ready": False,
    "unready_reason": "reading the collections",
}
HEALTH: dict[str, Any] = {
    "state": "critical",
    "title": "No replica leads",
    "text": "Scheduling stands still.",
    "checked": ["A replica leads"],
    "unchecked": [{"rule": "Failed jobs", "reason": "no answer in 2 s"}],
    "problems": [
        {"severity": "page", "text": "Nobody leads.", "evidence": "[red]", "since": "2030-01-01T00:00:00.000Z"}
    ],
}


def printed(answer: dict[str, Any]) -> list[str]:
    console = Console(width=100, markup=False)
    with console.capture() as capture:
        console.print(_tables(answer))
    return [line.rstrip() for line in capture.get().splitlines()]


def test_a_replica_of_an_older_release_tells_its_problems_without_a_verdict() -> None:
    lines = printed(OF_0_2_0)
    assert lines[0] == "nobody leads"
    assert "broken: overdue 2   run hascheduler check for details" in lines
    assert any("its mirror differs from replica-2" in line and "reading the collections" in line for line in lines)


def test_the_verdict_comes_first_and_nothing_is_said_twice() -> None:
    lines = printed({**OF_0_2_0, "health": HEALTH})
    assert lines[:6] == [
        "No replica leads",
        "Scheduling stands still.",
        "Act now      Nobody leads. Since 2030-01-01T00:00:00Z.",
        "             [red]",
        "Not checked  Failed jobs: no answer in 2 s",
        "rules checked: 1",
    ]
    assert not any("overdue" in line or "differs" in line for line in lines)
