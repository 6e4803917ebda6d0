"""The world goes red on each bug in how jobs wait for each other and end by themselves."""

from collections.abc import Callable
from typing import Any

import pytest

from hascheduler.dispatch.live_jobs.dependencies import Dependencies
from hascheduler.model.job import JobState
from tests.tiers import examples
from tests.unit.dispatch.test_machine import Seeded
from tests.unit.dispatch.world import World

SEEDS_MAX = 60
ACTS = 200
Plant = Callable[[pytest.MonkeyPatch], None]


def live(seeds: int = SEEDS_MAX) -> None:
    for seed in range(seeds):
        world = World(Seeded(seed))
        for _ in range(ACTS):
            world.act()
        world.heal()


def _failures_that_count_as_successes(patch: pytest.MonkeyPatch) -> None:
    sound: Any = Dependencies.gone
    patch.setattr(Dependencies, "gone", lambda self, job_id, state: sound(self, job_id, JobState.SUCCEEDED))


def _jobs_that_do_not_wait(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Dependencies, "holds", lambda self, job_id: False)


def _one_that_is_enough(patch: pytest.MonkeyPatch) -> None:
    sound: Any = Dependencies.seen

    def seen(self: Dependencies, job: Any) -> None:
        sound(self, job)
        unmet = self._unmet.get(job.id)
        while unmet is not None and len(unmet) > 1:
            unmet.popitem()

    patch.setattr(Dependencies, "seen", seen)


def _unknown_ones_that_nobody_reads(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Dependencies, "take_unknown", lambda self, is_live: [])


def _unknown_ones_that_count_as_met(patch: pytest.MonkeyPatch) -> None:
    sound: Any = Dependencies.seen

    def seen(self: Dependencies, job: Any) -> None:
        sound(self, job)
        for id in list(self._unread):
            self.gone(id, None)

    patch.setattr(Dependencies, "seen", seen)


def _doomed_jobs_that_nobody_fails(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Dependencies, "dependency_failed", lambda self: [])


@pytest.mark.parametrize(
    "plant",
    [
        _failures_that_count_as_successes,
        _jobs_that_do_not_wait,
        _one_that_is_enough,
        _unknown_ones_that_nobody_reads,
        _unknown_ones_that_count_as_met,
        _doomed_jobs_that_nobody_fails,
    ],
)
def test_the_world_notices(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        live()


def test_without_a_bug_it_is_content() -> None:
    live(examples(SEEDS_MAX))
