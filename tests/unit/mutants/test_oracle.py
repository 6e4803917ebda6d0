"""The comparison with the oracle goes red on each planted bug of the dispatch core."""

from collections.abc import Callable
from typing import Any

import pytest

from hascheduler.dispatch.accounts import CompetingAccounts, FairAccounts
from hascheduler.dispatch.capacity import locks, slot_pool
from hascheduler.dispatch.capacity.admission_limits import AdmissionLimits
from hascheduler.dispatch.capacity.dominant_share import LaneShares
from hascheduler.dispatch.capacity.locks import LockTable
from hascheduler.dispatch.capacity.rate_limits import KeyRates
from hascheduler.dispatch.capacity.slot_pool import ProcessorProfile, SlotPool
from hascheduler.dispatch.explainer import Explainer
from hascheduler.dispatch.live_jobs.table import LiveJobs
from hascheduler.dispatch.queue import comparison, fifo_buckets, pending_queue
from hascheduler.dispatch.queue.class_queues import ClassQueue, LockWaiters, TenantQueue
from hascheduler.dispatch.queue.criteria import ByDeadline
from hascheduler.dispatch.queue.fifo_buckets import FifoBucket
from hascheduler.dispatch.queue.orders import CriteriaOrder
from hascheduler.dispatch.queue.pending_queue import PendingQueue
from hascheduler.model.job import JobState, ScheduleId
from hascheduler.model.policy import criteria
from hascheduler.model.resources import NO_RESOURCES
from tests.tiers import spread
from tests.unit.dispatch.core_vs_oracle import CoreVsOracle
from tests.unit.dispatch.core_vs_oracle_faults import CoreVsOracleFaults
from tests.unit.dispatch.test_against_oracle import check

SEEDS = 400
Plant = Callable[[pytest.MonkeyPatch], None]


def _notices(first: int, policy: str | None = None, rivals: type[CoreVsOracle] = CoreVsOracle) -> bool:
    try:
        for seed in range(first, first + SEEDS):
            check(seed, rivals(seed, None if policy is None else criteria(policy)))
    except (AssertionError, KeyError):
        return True
    return False


def _score_without_rarity(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(comparison, "rarity", lambda free: 0)


def _bonus_that_never_stops(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(pending_queue, "grown_after_ms", lambda policy: None)


def _priority_that_does_not_age(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(comparison, "aged_priority", lambda job, now, lane: job.priority)


def _cost_that_is_not_charged(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FairAccounts, "charge", lambda accounts, tenant, key, definition, target: None)


def _account_that_is_the_key_alone(patch: pytest.MonkeyPatch) -> None:
    for name in ("arrive", "leave", "charge", "cost"):
        patch.setattr(FairAccounts, name, _of_one_tenant(getattr(FairAccounts, name)))
    patch.setattr(FairAccounts, "tenant_cost", lambda accounts, tenant: 0)


def _of_one_tenant(sound: Any) -> Any:
    return lambda accounts, tenant, *rest: sound(accounts, "", *rest)


def _tenant_that_pays_for_its_keys_alone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FairAccounts, "tenant_cost", lambda accounts, tenant: 0)


def _tenant_that_keeps_its_place_when_it_was_charged(patch: pytest.MonkeyPatch) -> None:
    sound: Any = TenantQueue.__init__

    def make(tenancy: TenantQueue, group: ClassQueue, tenant: str | None) -> None:
        sound(tenancy, group, tenant)
        group._accounts = _Unchanged()  # type: ignore[assignment]

    patch.setattr(TenantQueue, "__init__", make)


class _Unchanged:
    """To each group all tenants are alike."""

    def tenant_cost(self, tenant: str | None) -> int:
        return 0


def _idle_key_that_starts_at_zero(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CompetingAccounts, "_lowest_active", lambda rivals: None)


def _conflict_that_is_not_released(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PendingQueue, "freed", lambda queue, locks: None)


def _conflict_that_nobody_holds(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LockTable, "taken", lambda locks, job: ())


def _key_limit_off_by_one(patch: pytest.MonkeyPatch) -> None:
    sound: Any = LockTable.is_full

    def lenient(locks: LockTable, group: Any) -> bool:
        limit: Any = locks._rules.definition(group[1]).key_limit(group[3])
        return bool(sound(locks, group) and len(locks.holders(group)) > limit.max_concurrency)

    patch.setattr(LockTable, "is_full", lenient)


def _key_rate_that_is_never_dry(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(KeyRates, "dry_until", lambda rates, group: None)


def _key_rate_that_never_lifts(patch: pytest.MonkeyPatch) -> None:
    sound: Any = KeyRates.advance
    patch.setattr(KeyRates, "advance", lambda rates, now: sound(rates, now) and [])


def _tier_cap_off_by_one(patch: pytest.MonkeyPatch) -> None:
    sound: Any = AdmissionLimits._is_full

    def lenient(gates: AdmissionLimits, rule: Any, cause: Any) -> bool:
        return sound(gates, rule, cause + 1 if isinstance(cause, int) else cause) or False

    patch.setattr(AdmissionLimits, "_is_full", lenient)


def _share_of_slots_alone(patch: pytest.MonkeyPatch) -> None:
    sound: Any = LaneShares.take
    patch.setattr(LaneShares, "take", lambda shares, lane, needs: sound(shares, lane, NO_RESOURCES))
    back: Any = LaneShares.give_back
    patch.setattr(LaneShares, "give_back", lambda shares, lane, needs: back(shares, lane, NO_RESOURCES))


def _tombstone_that_is_taken_for_a_job(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PendingQueue, "_is_waiting", lambda queue, job: job.id in queue._queued)


def _late_comer_that_goes_to_the_end(patch: pytest.MonkeyPatch) -> None:
    def append(cell: FifoBucket, job: Any) -> bool:
        cell._jobs.append(job)
        return len(cell._jobs) - cell._start == 1

    patch.setattr(FifoBucket, "put", append)


def _tie_that_the_id_breaks(patch: pytest.MonkeyPatch) -> None:
    for room in (fifo_buckets, comparison):
        patch.setattr(room, "arrival", lambda job: (job.id,))


def _bucket_that_mixes_deadlines(patch: pytest.MonkeyPatch) -> None:
    sound: Any = ClassQueue.bucket_for
    patch.setattr(ClassQueue, "bucket_for", lambda queue, key: sound(queue, (*key[:3], None)))


def _deadline_that_is_compared_once_among_growing_priorities(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CriteriaOrder, "_deciding_ages", lambda order: None)


def _no_deadline_before_all_others(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ByDeadline, "value", lambda measure, job, now: job.expires_at_ms or 0)


def _generalist_first(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ProcessorProfile, "supports", _supports_and_is_broad)


def _supports_and_is_broad(profile: ProcessorProfile, definition: str) -> bool:
    profile.breadth = -abs(profile.breadth)
    return definition in profile.definitions or "*" in profile.definitions


def _resources_that_nobody_takes(patch: pytest.MonkeyPatch) -> None:
    sound: Any = SlotPool.occupy
    patch.setattr(
        SlotPool, "occupy", lambda pool, job_id, processor_id, needs: sound(pool, job_id, processor_id, NO_RESOURCES)
    )


def _schedules_that_are_known_by_their_names(patch: pytest.MonkeyPatch) -> None:
    def by_name(schedule: ScheduleId | None) -> tuple[tuple[str, str, str], ...]:
        return () if schedule is None else (("serial", schedule.name, ""),)

    patch.setattr(locks, "_waited_for", by_name)
    patch.setattr(locks, "_held_by_jobs_of", by_name)


def _processor_that_never_rests(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SlotPool, "missed", lambda pool, processor_id: None)


def _rest_that_never_ends(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SlotPool, "took_up", lambda pool, processor_id: None)


def _rest_that_is_too_short(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(slot_pool, "RESTS_MS", (1_000,))


def _processor_that_gets_all_it_asks_for_after_its_rest(patch: pytest.MonkeyPatch) -> None:
    sound: Any = SlotPool.advance

    def advance(pool: SlotPool, now: Any) -> None:
        sound(pool, now)
        for id in [id for id, rest in pool.rests.items() if rest.until_ms <= now]:
            pool.took_up(id)

    patch.setattr(SlotPool, "advance", advance)


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


IN_TROUBLE: list[Plant] = [
    _processor_that_never_rests,
    _rest_that_never_ends,
    _rest_that_is_too_short,
    _processor_that_gets_all_it_asks_for_after_its_rest,
    _attempt_that_is_charged_by_who_promises_it_alone,
    _attempt_that_is_charged_anew_when_it_is_shown,
    _accounts_that_die_with_their_mind,
    _attempt_in_the_restored_accounts_that_is_charged_again,
    _slots_of_the_dead_that_still_count,
    _parked_jobs_of_which_one_comes_back,
    _doubt_that_never_ends,
    _rank_among_those_that_may_not_run_either,
]
"""These show only when something is lost, or another mind takes over."""
EARLY: list[Plant] = [
    _bonus_that_never_stops,
    _priority_that_does_not_age,
    _cost_that_is_not_charged,
    _account_that_is_the_key_alone,
    _tenant_that_pays_for_its_keys_alone,
    _tenant_that_keeps_its_place_when_it_was_charged,
    _idle_key_that_starts_at_zero,
    _conflict_that_is_not_released,
    _conflict_that_nobody_holds,
    _key_limit_off_by_one,
    _tier_cap_off_by_one,
    _share_of_slots_alone,
    _tombstone_that_is_taken_for_a_job,
    _late_comer_that_goes_to_the_end,
    _tie_that_the_id_breaks,
    _bucket_that_mixes_deadlines,
    _no_deadline_before_all_others,
    _generalist_first,
    _resources_that_nobody_takes,
    _schedules_that_are_known_by_their_names,
]
LATE: list[tuple[Plant, int, str]] = [
    (_score_without_rarity, 20, "score"),
    (_key_rate_that_is_never_dry, 484, "arrival"),
    (_key_rate_that_never_lifts, 484, "arrival"),
    (_deadline_that_is_compared_once_among_growing_priorities, 10, "aged_priority,deadline"),
]
"""Noticed under this policy by this seed, which a new criterion leaves as it is; the search goes on from there."""


@pytest.mark.parametrize(("plant", "first", "policy"), [*((each, 0, None) for each in spread(EARLY, check=6)), *LATE])
def test_a_planted_bug_is_noticed(
    plant: Plant, first: int, policy: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    assert _notices(first, policy)


@pytest.mark.parametrize("plant", spread(IN_TROUBLE, check=4))
def test_a_planted_bug_is_noticed_in_trouble(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert _notices(0, rivals=CoreVsOracleFaults)
