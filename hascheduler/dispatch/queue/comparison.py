"""The comparison of jobs by the criteria of a policy: lane tiers with each other, then the first jobs of tenant queues.

It owns nothing. The values that it compares are noted on the tenant queue when the job becomes its first (`note`), so
that no formula is computed again for an unchanged job.
"""

from collections.abc import Collection
from typing import Any, TypeVar

from hascheduler.dispatch.accounts import FairAccounts
from hascheduler.dispatch.capacity.dominant_share import LaneShares
from hascheduler.dispatch.capacity.slot_pool import SlotPool
from hascheduler.dispatch.queue.class_queues import ClassQueue, HeapEntry, LaneTier, TenantQueue
from hascheduler.dispatch.queue.criteria import (
    RARITY_POINTS,
    AgingRate,
    Measures,
    aged_priority,
    bonuses,
    rank_key,
    rarity,
    submitted_by,
)
from hascheduler.dispatch.queue.fifo_buckets import FifoBucket, arrival
from hascheduler.dispatch.queue.orders import SPLITTING, CriteriaOrder
from hascheduler.dispatch.rules import Rules
from hascheduler.model.job import JobRef
from hascheduler.model.policy import Criterion

_Item = TypeVar("_Item")


class Comparison:
    """A reader of the rules, free slots, consumed costs and shares as they are at the moment of a decision."""

    def __init__(
        self,
        *,
        rules: Rules,
        pool: SlotPool,
        accounts: FairAccounts,
        shares: LaneShares,
        measures: Measures,
        bonus_max: int | None,
    ) -> None:
        self._rules = rules
        self._pool = pool
        self._accounts = accounts
        self._shares = shares
        self._measures = measures
        self._bonus_max = bonus_max

    def best_lane_tiers(self, lane_tiers: list[LaneTier], order: CriteriaOrder) -> list[LaneTier]:
        """Return the lane tiers that may hold the next job, by the criteria that the order begins with."""
        for criterion in order.splitting:
            if len(lane_tiers) < 2:
                break
            if criterion is Criterion.TIER:
                lane_tiers = _least(lane_tiers, [lane_tier.rank for lane_tier in lane_tiers])
            else:
                lanes = self.least_lanes(lane_tiers)
                lane_tiers = [lane_tier for lane_tier in lane_tiers if lane_tier.lane in lanes]
        return lane_tiers

    def least_lanes(self, lane_tiers: list[LaneTier]) -> Collection[str]:
        """Return the lanes of the lane tiers that are furthest below their shares."""
        return self._shares.least({lane_tier.lane or "" for lane_tier in lane_tiers})

    def best(
        self, firsts: list[TenantQueue], order: CriteriaOrder, now: int, *, has_tenants: bool
    ) -> TenantQueue | None:
        """Return the tenant queue whose first job, as noted, goes before all others; None if there are none."""
        for criterion in order.rest:
            if len(firsts) < 2:
                break
            if criterion is Criterion.FAIRNESS and has_tenants:
                firsts = self._of_least_tenants(firsts)
            firsts = _least(firsts, self._values(criterion, firsts, now))
        if len(firsts) < 2:
            return firsts[0] if firsts else None
        return min(firsts, key=lambda first: arrival(best_of(first)))

    def scanned(self, job: JobRef, order: CriteriaOrder, now: int) -> tuple[object, ...]:
        """Return the job's place in its class queue if the order changes with time; the smallest goes first."""
        return (
            *(self._measures[each].value(job, now) for each in order.rest if each not in SPLITTING),
            arrival(job),
        )

    def entry(self, class_queue: ClassQueue, bucket: FifoBucket, job: JobRef) -> HeapEntry:
        tail = (job.submitted_at_ms, job.sequence, job.id, bucket)
        match class_queue.order.fixed:
            case (Criterion.FAIRNESS, Criterion.SCORE):
                return (self._accounts.cost(job.tenant, job.fairness_key), rank_key(job, class_queue.aging), *tail)
            case (Criterion.SCORE, Criterion.FAIRNESS):
                return (rank_key(job, class_queue.aging), self._accounts.cost(job.tenant, job.fairness_key), *tail)
            case (Criterion.FAIRNESS,):
                return (self._accounts.cost(job.tenant, job.fairness_key), *tail)
            case (Criterion.SCORE,):
                return (rank_key(job, class_queue.aging), *tail)
            case ():
                return tail
            case fixed:  # another criterion among them
                return (*(self._fixed_value(each, job, class_queue.aging) for each in fixed), *tail)

    def _fixed_value(self, criterion: Criterion, job: JobRef, aging: AgingRate) -> Any:
        match criterion:
            case Criterion.FAIRNESS:
                return self._accounts.cost(job.tenant, job.fairness_key)
            case Criterion.SCORE:
                return rank_key(job, aging)
            case _:
                return self._measures[criterion].value(job, 0)

    def note(self, first: TenantQueue, job: JobRef) -> None:
        first.cost = self._accounts.cost(job.tenant, job.fairness_key)
        first.rank = rank_key(job, first.aging)
        first.since_ms = job.submitted_at_ms

    def _of_least_tenants(self, firsts: list[TenantQueue]) -> list[TenantQueue]:
        """Return the queues of the tenants that have consumed least by now."""
        tenants = [best_of(first).tenant for first in firsts]
        costs = {tenant: self._accounts.tenant_cost(tenant) for tenant in set(tenants)}
        return _least(firsts, [costs[tenant] for tenant in tenants]) if len(costs) > 1 else firsts

    def _values(self, criterion: Criterion, firsts: list[TenantQueue], now: int) -> list[Any]:
        """Return the value of each first job, as noted, under the criterion."""
        if criterion is Criterion.FAIRNESS:
            return [first.cost for first in firsts]  # the key's, as noted: at most what it is now
        if criterion is Criterion.SCORE:
            return self._scores(firsts, now)
        if criterion is Criterion.AGED_PRIORITY:
            return self._aged(firsts, now)
        measure = self._measures[criterion]
        return [measure.value(best_of(first), now) for first in firsts]

    def _scores(self, firsts: list[TenantQueue], now: int) -> list[int]:
        """Return the scores; the smallest goes first. Costly rarity is left out if it can't change the first."""
        less = bonuses(now, self._bonus_max)
        values = [first.rank - less[first.aging] for first in firsts]
        within_reach = min(values) + RARITY_POINTS
        for n, value in enumerate(values):
            if value <= within_reach:
                values[n] = value - rarity(self._pool.free(firsts[n].job_class.definition.name))
        return values

    def _aged(self, firsts: list[TenantQueue], now: int) -> list[int]:
        """Return 0 for the jobs of the highest aged priority, 1 for the others.

        Among the jobs that one rule ages, the oldest has the highest; how old another must be to have the same is one
        number per rule.
        """
        oldest: dict[tuple[str | None, int] | None, TenantQueue] = {}
        for first in firsts:
            known = oldest.get(first.aging_rule)
            if known is None or first.since_ms < known.since_ms:
                oldest[first.aging_rule] = first
        eldest = [(aging_rule, best_of(first)) for aging_rule, first in oldest.items()]
        lanes = [self._rules.lane(job.lane) for _, job in eldest]
        highest = max(aged_priority(job, now, lane) for (_, job), lane in zip(eldest, lanes, strict=True))
        old_enough = {
            aging_rule: submitted_by(job.priority, highest, now, lane)
            for (aging_rule, job), lane in zip(eldest, lanes, strict=True)
        }
        return [0 if first.since_ms <= old_enough[first.aging_rule] else 1 for first in firsts]


def best_of(first: TenantQueue) -> JobRef:
    """Return the first job of a tenant queue that is known to have one."""
    assert first.best is not None
    return first.best


def _least(items: list[_Item], values: list[Any]) -> list[_Item]:
    least = min(values)
    return [item for item, value in zip(items, values, strict=True) if value == least]
