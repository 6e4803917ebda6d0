"""The contract suites go red on each planted bug. A check that lets one pass checks nothing."""

import pytest

from hascheduler.model.collection import Collection
from hascheduler.model.documents import fired_job
from hascheduler.model.payload import NOTHING
from hascheduler.ports import ChangeSource, ClaimStore, Journal, LeaseStore, WorkStore
from tests.contract.backends import Backend, on
from tests.contract.checks import (
    REFUSED,
    a_fire_whose_job_is_not_there_is_not_done,
    a_seq_is_written_once,
    an_old_attempt_can_not_finish,
    an_old_attempt_can_not_start,
    an_update_of_another_version_changes_nothing,
    applied,
    of_racing_inserts_at_one_seq_one_wins,
    of_racing_starts_one_moves_the_job,
    of_racing_updates_one_wins,
    too_large_when_filled,
)
from tests.contract.following import a_start_is_gap_free
from tests.factories import make_fire
from tests.mutants.bugs import (
    ClaimsThatTakeARefusalForSuccess,
    JournalThatOverwrites,
    LeaseUpdateThatComparesFirst,
    StartForAnyProcessor,
    WorkWithoutAttemptCheck,
)
from tests.mutants.everywhere import FindThenWatch, LeaseUpdateWithoutCompare

pytestmark = on("memory", "pymongo")


async def test_a_lease_update_without_its_compare_is_caught(backend: Backend) -> None:
    leases: LeaseStore = LeaseUpdateWithoutCompare(backend.leases)
    with pytest.raises(AssertionError):
        await an_update_of_another_version_changes_nothing(leases)


async def test_a_lease_update_that_compares_before_it_sets_is_caught_by_the_race(backend: Backend) -> None:
    leases: LeaseStore = LeaseUpdateThatComparesFirst(backend.leases)
    with pytest.raises(AssertionError):
        await of_racing_updates_one_wins(leases)


async def test_claims_that_take_a_refusal_for_success_are_caught(backend: Backend) -> None:
    claims: ClaimStore = ClaimsThatTakeARefusalForSuccess(backend.claims)
    with pytest.raises(AssertionError):
        await a_fire_whose_job_is_not_there_is_not_done(claims, backend.jobs, backend.behind)


async def test_a_fire_that_is_not_measured_before_it_is_filled_is_caught(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fired_job, "_size", lambda *_: NOTHING)
    await backend.behind.insert(Collection.SCHEDULES, too_large_when_filled())
    assert await applied(backend.claims, make_fire(1)) != [REFUSED]


async def test_a_journal_without_its_fence_is_caught(backend: Backend) -> None:
    journal: Journal = JournalThatOverwrites(backend.journal, backend.behind)
    with pytest.raises(AssertionError):
        await a_seq_is_written_once(journal)


async def test_a_journal_without_its_fence_is_caught_by_the_race(backend: Backend) -> None:
    journal: Journal = JournalThatOverwrites(backend.journal, backend.behind)
    with pytest.raises(AssertionError):
        await of_racing_inserts_at_one_seq_one_wins(journal)


async def test_a_start_without_its_attempt_is_caught(backend: Backend) -> None:
    work: WorkStore = WorkWithoutAttemptCheck(backend.work, backend.jobs)
    with pytest.raises(AssertionError):
        await an_old_attempt_can_not_start(work, backend.claims, backend.jobs)


async def test_a_finish_without_its_attempt_is_caught(backend: Backend) -> None:
    work: WorkStore = WorkWithoutAttemptCheck(backend.work, backend.jobs)
    with pytest.raises(AssertionError):
        await an_old_attempt_can_not_finish(work, backend.claims, backend.jobs)


async def test_a_start_for_any_processor_is_caught_by_the_race(backend: Backend) -> None:
    work: WorkStore = StartForAnyProcessor(backend.work, backend.jobs)
    with pytest.raises(AssertionError):
        await of_racing_starts_one_moves_the_job(work, backend.claims, backend.jobs)


async def test_a_stream_that_is_opened_after_its_snapshot_is_caught(backend: Backend) -> None:
    source: ChangeSource = FindThenWatch(backend.source)
    with pytest.raises(AssertionError):
        await a_start_is_gap_free(source, backend.jobs, backend.definitions)
