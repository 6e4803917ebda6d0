"""The world goes red on each bug in how jobs wait for each other and end by themselves."""

from collections.abc import Callable
from typing import Any

import pytest

from hascheduler.dispatch.live_jobs.dependencies import Dependencies
from hascheduler.mirror.changes import BatchSeen
from hascheduler.model.job import JobState
from tests.tiers import examples
from tests.unit.dispatch.chance import Seeded
from tests.unit.dispatch.world import World

SEEDS_MAX = 60
ACTS = 200
Plant = Callable[[pytest.MonkeyPatch], None]


def live(seeds: int = SEEDS_MAX) -> None:
    for seed in range(seeds):
        World(Seeded(seed)).live(ACTS)


def _failures_that_count_as_successes(patch: pytest.MonkeyPatch) -> None:
    sound: Any = Dependencies.gone
    patch.setattr(Dependencies, "gone", lambda self, job_id, state, job: sound(self, job_id, JobState.SUCCEEDED, job))


def _jobs_that_do_not_wait(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Dependencies, "holds", lambda self, job_id: False)


def _one_that_is_enough(patch: pytest.MonkeyPatch) -> None:
    sound: Any = Dependencies.seen

    def seen(self: Dependencies, job: Any) -> None:
        sound(self, job)
        if self._unmet.get(job.id, 0) > 1:
            self._unmet[job.id] = 1

    patch.setattr(Dependencies, "seen", seen)


def _unknown_ones_that_nobody_reads(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Dependencies, "take_unread", lambda self, is_live: [])


def _unknown_ones_that_count_as_met(patch: pytest.MonkeyPatch) -> None:
    sound: Any = Dependencies.seen

    def seen(self: Dependencies, job: Any) -> None:
        sound(self, job)
        for id in list(self._unread):
            self.gone(id, None, job)

    patch.setattr(Dependencies, "seen", seen)


def _batches_that_are_over_when_no_job_is_live(patch: pytest.MonkeyPatch) -> None:
    """Whatever the database says of those that ended before."""
    sound: Any = Dependencies.batch_seen
    patch.setattr(Dependencies, "batch_seen", lambda self, seen: sound(self, BatchSeen(seen.batch, is_live=False)))


def _batches_that_are_over_when_the_database_said_so_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Dependencies, "joined", lambda self, batch: None)
    patch.setattr(Dependencies, "left", lambda self, batch: None)


def _batches_that_are_read_when_first_seen_alone(patch: pytest.MonkeyPatch) -> None:
    sound: Any = Dependencies.left

    def left(self: Dependencies, batch: str) -> None:
        unread = dict(self._unread_over)
        sound(self, batch)
        self._unread_over = unread

    patch.setattr(Dependencies, "left", left)


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
        _batches_that_are_over_when_no_job_is_live,
        _batches_that_are_over_when_the_database_said_so_once,
        _batches_that_are_read_when_first_seen_alone,
        _doomed_jobs_that_nobody_fails,
    ],
)
def test_the_world_notices(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        live()


def test_without_a_bug_it_is_content() -> None:
    live(examples(SEEDS_MAX))
