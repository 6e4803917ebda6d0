"""What a follower of events got is held beside what was committed."""

from typing import Any

import pytest

from hascheduler.model.collection import Collection
from tests.checkers.events_are_history import events_are_history
from tests.checkers.evidence import Commit, Evidence, SeenEvent


def at(id: str, state: str, **more: Any) -> dict[str, Any]:
    return {"_id": id, "state": state, "attempt": 0, "priority": 5, **more}


def lives() -> list[Commit]:
    a, b = at("a", "pending"), at("b", "dispatched", attempt=1)
    versions: list[tuple[dict[str, Any] | None, dict[str, Any] | None]] = [
        (None, a),
        (None, b),
        (a, at("a", "pending", priority=9)),
        (at("a", "pending", priority=9), at("a", "dispatched", priority=9, attempt=1)),
        (b, at("b", "running", attempt=1)),
        (at("b", "running", attempt=1), at("b", "running", attempt=1, cancel_requested_at_ms=3)),
        (at("b", "running", attempt=1), at("b", "failed", attempt=1)),
        (at("b", "failed", attempt=1), at("b", "pending", attempt=2)),
        (at("b", "pending", attempt=2), None),
    ]
    return [Commit(1.0, Collection.JOBS, before, after) for before, after in versions]


ALL = [
    "a submitted",
    "b submitted",
    "b dispatched",
    "a reprioritized",
    "a dispatched",
    "b started",
    "b cancel_requested",
    "b failed",
    "b revived",
]


def found(events: list[str]) -> list[str]:
    run = [SeenEvent(*event.split()) for event in events]
    return events_are_history(Evidence(commits=lives(), events=[run, []]))


@pytest.mark.parametrize("events", [ALL, ALL[3:], ALL[:4], ALL[2:5], []])
def test_a_run_is_a_part_of_the_history_without_a_gap(events: list[str]) -> None:
    assert found(events) == []


@pytest.mark.parametrize(
    "events",
    [ALL[:1] + ALL[2:], ALL[:-2] + ALL[-1:], ALL[1::-1], [*ALL, "b started"], ["c submitted"], [*ALL[:3], *ALL[2:]]],
)
def test_what_is_missing_doubled_made_up_or_out_of_order_is_found(events: list[str]) -> None:
    assert len(found(events)) == 1
