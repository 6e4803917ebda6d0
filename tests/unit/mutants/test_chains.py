"""The world of the core's tests goes wrong when a conclusion may overtake one that was lost, or survive an edit."""

from collections.abc import Callable
from typing import Any

import pytest

from hascheduler.dispatch.decisions import TimeOutcome
from hascheduler.dispatch.live_jobs import table
from hascheduler.dispatch.schedules import planner as chains
from hascheduler.dispatch.schedules.planner import CursorStep, CursorSteps
from tests.tiers import spread
from tests.unit.dispatch import database
from tests.unit.dispatch.chance import Seeded
from tests.unit.dispatch.world import World

SEEDS_MAX = 600
ACTS = 300


def with_links(changed: dict[CursorStep, CursorStep]) -> Callable[..., CursorSteps]:
    def chain(schedule: Any, conclusions: list[TimeOutcome], written: list[TimeOutcome]) -> CursorSteps:
        right = chains.cursor_steps(schedule, conclusions, written)
        return CursorSteps(
            right.cursor_ms, right.tally, [(conclusion, changed.get(link, link)) for conclusion, link in right.links]
        )

    return chain


def edits_ignored(schedule: Any, conclusions: list[TimeOutcome], written: list[TimeOutcome]) -> CursorSteps:
    """As it would be if a decision did not say which times it took to be in force."""
    if schedule is not None:
        basis = conclusions[0].basis
        schedule = {**schedule, "since_ms": basis.since_ms, "paused_at_ms": basis.paused_at_ms}
    return chains.cursor_steps(schedule, conclusions, written)


@pytest.mark.parametrize(
    "bug",
    spread(
        [
            pytest.param(with_links({CursorStep.EARLY: CursorStep.NEXT}), id="overtaking"),
            pytest.param(edits_ignored, id="edits"),
        ],
        check=1,
    ),
)
def test_the_world_notices(bug: Callable[..., CursorSteps], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "cursor_steps", bug)
    with pytest.raises(AssertionError):
        live()


def test_the_world_notices_schedules_that_are_known_by_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "_maker", lambda schedule: (schedule.name, ""))
    with pytest.raises(AssertionError, match="stranger"):
        live()


def live() -> None:
    for seed in range(SEEDS_MAX):
        World(Seeded(seed)).live(ACTS)
