"""The comparison in trouble goes red on each bug that shows only when something is lost, or another mind takes over."""

from collections.abc import Callable
from typing import Any

import pytest

from hascheduler.dispatch.accounts import FairAccounts
from hascheduler.dispatch.capacity.slot_pool import SlotPool
from hascheduler.dispatch.explainer import Explainer
from hascheduler.dispatch.live_jobs.table import LiveJobs
from hascheduler.dispatch.queue.class_queues import LockWaiters
from hascheduler.model.job import JobState
from tests.unit.dispatch.core_vs_oracle_faults import CoreVsOracleFaults
from tests.unit.dispatch.test_against_oracle import check

SEEDS = range(200)
Plant = Callable[[pytest.MonkeyPatch], None]


def _notices() -> bool:
    try:
        for seed in SEEDS:
            check(seed, CoreVsOracleFaults(seed))
    except (AssertionError, KeyError):
        return True
    return False


def _attempt_that_is_charged_by_who_promises_it_alone(patch: pytest.MonkeyPatch) -> None:
    sound: Any = LiveJobs._charge

    def charge(jobs: LiveJobs, job: Any, attempt: int) -> None:
        if job.attempt != attempt:
            sound(jobs, job, attempt)

    patch.setattr(LiveJobs, "_charge", charge)


def _attempt_that_is_charged_anew_when_it_is_shown(patch: pytest.MonkeyPatch) -> None:
    sound: Any = LiveJobs._charge

    def charge(jobs: LiveJobs, job: Any, attempt: int) -> None:
        if job.state is JobState.DISPATCHED:
            jobs._charged.pop(job.id, None)
        sound(jobs, job, attempt)

    patch.setattr(LiveJobs, "_charge", charge)


def _accounts_that_die_with_their_mind(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FairAccounts, "restore", lambda accounts, restored: None)


def _attempt_in_the_restored_accounts_that_is_charged_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FairAccounts, "is_counted", lambda accounts, dispatched_at_ms: False)


def _slots_of_the_dead_that_still_count(patch: pytest.MonkeyPatch) -> None:
    def lost(pool: SlotPool, processor_id: str, beat: int) -> None:
        pool._lost[processor_id] = beat

    patch.setattr(SlotPool, "lost", lost)


def _parked_jobs_of_which_one_comes_back(patch: pytest.MonkeyPatch) -> None:
    sound: Any = LockWaiters.take_first
    patch.setattr(LockWaiters, "take_first", lambda parking, lock, is_waiting: sound(parking, lock, is_waiting)[:1])


def _doubt_that_never_ends(patch: pytest.MonkeyPatch) -> None:
    sound: Any = LiveJobs.doubt
    patch.setattr(LiveJobs, "doubt", lambda jobs, job_id, until_ms: sound(jobs, job_id, until_ms + 10**12))


def _rank_among_those_that_may_not_run_either(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Explainer, "_competitors", lambda explainer, now, is_admissible: explainer._queue.jobs())


@pytest.mark.parametrize(
    "plant",
    [
        _attempt_that_is_charged_by_who_promises_it_alone,
        _attempt_that_is_charged_anew_when_it_is_shown,
        _accounts_that_die_with_their_mind,
        _attempt_in_the_restored_accounts_that_is_charged_again,
        _slots_of_the_dead_that_still_count,
        _parked_jobs_of_which_one_comes_back,
        _doubt_that_never_ends,
        _rank_among_those_that_may_not_run_either,
    ],
)
def test_a_planted_bug_is_noticed(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert _notices()
