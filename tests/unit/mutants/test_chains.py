"""The world of the core's tests goes wrong when a conclusion may overtake one that was lost, or survive an edit."""

from collections.abc import Callable
from typing import Any

import pytest

from hascheduler.dispatch import chain as chains
from hascheduler.dispatch import siblings
from hascheduler.dispatch.chain import Chain, Link
from hascheduler.dispatch.decisions import Conclusion
from tests.unit.dispatch import database
from tests.unit.dispatch.test_machine import Seeded
from tests.unit.dispatch.world import World

SEEDS_MAX = 600
ACTS = 300


def with_links(changed: dict[Link, Link]) -> Callable[..., Chain]:
    def chain(schedule: Any, conclusions: list[Conclusion], written: list[Conclusion]) -> Chain:
        right = chains.chain(schedule, conclusions, written)
        return Chain(right.cursor_ms, [(conclusion, changed.get(link, link)) for conclusion, link in right.links])

    return chain


def edits_ignored(schedule: Any, conclusions: list[Conclusion], written: list[Conclusion]) -> Chain:
    """As it would be if a decision did not say which times it took to be in force."""
    if schedule is not None:
        basis = conclusions[0].basis
        schedule = {**schedule, "since_ms": basis.since_ms, "paused_at_ms": basis.paused_at_ms}
    return chains.chain(schedule, conclusions, written)


@pytest.mark.parametrize("bug", [with_links({Link.EARLY: Link.NEXT}), edits_ignored], ids=["overtaking", "edits"])
def test_the_world_notices(bug: Callable[..., Chain], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "chain", bug)
    with pytest.raises(AssertionError):
        live()


def test_the_world_notices_schedules_that_are_known_by_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(siblings, "_maker", lambda schedule: (schedule.name, ""))
    with pytest.raises(AssertionError, match="stranger"):
        live()


def live() -> None:
    for seed in range(SEEDS_MAX):
        world = World(Seeded(seed))
        for _ in range(ACTS):
            world.act()
        world.heal()
