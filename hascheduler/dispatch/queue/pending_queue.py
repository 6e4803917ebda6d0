"""The jobs that wait, and which of them goes next.

::

    Line ─► Node      one lane and one tier, as far as the policy begins with those
             └─► Group    one kind, one flow (and one priority, where priorities age)
                  └─► Tenancy  one tenant, where the policy is fair
                       └─► Cell     one fairness key, one priority: oldest first
    Parking: jobs that a lock holds back

A decision looks at the nodes, and in the best of them at the first job of each group that may run now. What a group
says of its first job may be too good, never too bad (see `class_queues`), so only the winner has to be looked at again:
when it is not what was said, its group says anew, and the choice is made again. Adding and removing a job cost the same
however many there are.
"""

import heapq
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from typing import Any, TypeVar, cast

from hascheduler.dispatch.accounts import FairAccounts
from hascheduler.dispatch.capacity.admission_limits import AdmissionLimits
from hascheduler.dispatch.capacity.dominant_share import LaneShares
from hascheduler.dispatch.capacity.locks import Lock, LockTable
from hascheduler.dispatch.capacity.scheduling_classes import SchedulingClass, SchedulingClasses
from hascheduler.dispatch.capacity.slot_pool import SlotPool
from hascheduler.dispatch.config import PolicyConfig
from hascheduler.dispatch.queue.class_queues import ClassQueue, HeapEntry, TenantQueue
from hascheduler.dispatch.queue.criteria import Measures
from hascheduler.dispatch.queue.fifo_buckets import BucketKey, FifoBucket, arrival
from hascheduler.dispatch.queue.lane_tiers import LaneTier
from hascheduler.dispatch.queue.lock_waiters import LockWaiters, Origin
from hascheduler.dispatch.queue.oldest_waits import OldestWaits
from hascheduler.dispatch.queue.orders import CriteriaOrder, own_criteria
from hascheduler.dispatch.queue.score import (
    GROWING,
    GROWN,
    ON_DEMAND,
    QUEUED,
    RARITY_POINTS,
    AgingRate,
    aged_priority,
    bonuses,
    deadline_ms,
    grown_after_ms,
    rank_key,
    rarity,
    submitted_by,
)
from hascheduler.dispatch.rules import Rules
from hascheduler.model.job import JobRef
from hascheduler.model.policy import Criterion

_ClassQueueKey = tuple[str | None, SchedulingClass, AgingRate, int | None]
_LaneTierKey = tuple[str | None, int | None]
_Item = TypeVar("_Item")
_CLASS_QUEUES_MAX = 4_096
_CLASSES_MAX = 1_024
"""Before those that are empty are looked for."""


class PendingQueue:
    """Owner of the waiting jobs. It reads the rest: rules, slots, gates, locks, costs and shares."""

    def __init__(
        self,
        policy: PolicyConfig,
        *,
        rules: Rules,
        pool: SlotPool,
        classes: SchedulingClasses,
        limits: AdmissionLimits,
        locks: LockTable,
        accounts: FairAccounts,
        shares: LaneShares,
        measures: Measures,
    ) -> None:
        self._rules = rules
        self._pool = pool
        self._classes = classes
        self._limits = limits
        self._locks = locks
        self._accounts = accounts
        self._shares = shares
        self._measures = measures
        self._order = CriteriaOrder(policy.criteria)
        self._own_orders: dict[str, CriteriaOrder] = {}
        self._bonus_max = policy.on_demand_bonus_max
        self._grown_after_ms = grown_after_ms(policy)
        self._grown_through_ms = -(2**63)
        self._growing: list[tuple[int, str]] = []
        self._queued: dict[str, JobRef] = {}
        self.waits = OldestWaits()
        self._class_queues: dict[_ClassQueueKey, ClassQueue] = {}
        self._lane_tiers: dict[_LaneTierKey, LaneTier] = {}
        self._parking = LockWaiters()
        self._freed: dict[Lock, None] = {}
        self._tenant: str | None = None
        self._has_tenants = False
        self._class_queues_max = _CLASS_QUEUES_MAX
        self._classes_max = _CLASSES_MAX
        self._unfit = 0
        self._unfit_since: tuple[int, int] | None = None

    def __len__(self) -> int:
        return len(self._queued)

    def __contains__(self, job_id: str) -> bool:
        return job_id in self._queued

    def jobs(self) -> Iterable[JobRef]:
        """All that wait, in no order that matters."""
        return self._queued.values()

    def jobs_of(self, classes: Collection[SchedulingClass]) -> Iterator[JobRef]:
        """Those of these kinds that wait; one may come twice."""
        for class_queue in self._class_queues.values():
            if class_queue.job_class in classes:
                for bucket in class_queue.buckets():
                    yield from (job for job in bucket.jobs() if self._is_waiting_in(class_queue, job))
        for (class_queue, _), jobs in self._parking.jobs():
            if class_queue.job_class in classes:
                yield from (job for job in jobs if self._is_waiting_in(class_queue, job))

    # What comes and goes

    def add(self, job: JobRef) -> None:
        """Have the job wait, or move it if its place has changed."""
        known = self._queued.get(job.id)
        if known is not None:
            if known is job or _place(known) == _place(job):
                return
            self.remove(job.id)
        if len(self._class_queues) > self._class_queues_max or len(self._classes) > self._classes_max:
            self._tidy()
        self._queued[job.id] = job
        self.waits.began(job)
        self._put(self._class_queue_for(job, self._classes.of(job)), job)

    def remove(self, job_id: str) -> None:
        job = self._queued.pop(job_id, None)
        if job is None:
            return
        self.waits.ended(job)
        self.freed(self._locks.wanted(job))  # it may have been the one that the others let go first

    def freed(self, locks: Iterable[Lock]) -> None:
        """Nobody holds these any more, or who went first among those that wait for them does so no longer."""
        for lock in locks:
            if lock in self._parking:
                self._freed[lock] = None

    def redefined(self, name: str) -> None:
        """The definition is another now: its tier and its conflict group may be."""
        classes = set(self._classes.redefined(name))
        for class_queue in self._class_queues.values():
            if class_queue.job_class in classes:
                self._regroup(class_queue)
        for (class_queue, key), job in self._parking.take_of_definition(name):
            if self._is_waiting(job):
                self._to_bucket(class_queue, key, job)

    def lane_changed(self, name: str) -> None:
        before = self._own_orders.pop(name, None)
        own = own_criteria(self._order.criteria, self._rules.lane(name))
        if own is not None:
            self._own_orders[name] = CriteriaOrder(own)
        if own != (before.criteria if before else None):
            for key, class_queue in list(self._class_queues.items()):
                if class_queue.lane == name:
                    self._rest(class_queue)
                    del self._class_queues[key]
            self.replant(lambda job: job.lane == name)

    def replant(self, which: Callable[[JobRef], bool]) -> None:
        """Other rules say where those jobs belong."""
        for job in [job for job in self._queued.values() if which(job)]:
            self.remove(job.id)
            # As another object, so that it is not taken for the one that is still in its old cell.
            self.add(replace(job))

    # What is next

    def first(self, now: int) -> tuple[JobRef, str] | None:
        """The job that goes next and the processor that should take it, or None; it stays in the line."""
        self._advance(now)
        while True:
            self._unpark()
            best = self._best(self._ready(now), now)
            if self._freed:
                continue  # on the way a job was parked that others had waited behind
            if best is None:
                return None
            job = _best_of(best)
            if not self._is_current(best, job):
                best.forget_best()
                continue
            processor_id = self._pool.choose(best.job_class.definition.name, best.job_class.needs)
            if processor_id is not None:
                best.forget_best()  # most likely it goes now
                return job, processor_id
            self._unfit |= 1 << best.job_class.bit

    def order_of(self, lane: str) -> CriteriaOrder:
        """How the jobs of that lane are ordered among each other."""
        return self._own_orders.get(lane, self._order) if self._own_orders else self._order

    def has_own_orders(self) -> bool:
        return bool(self._own_orders)

    def _ready(self, now: int) -> int:
        since = (self._pool.relieved, self._classes.changes)
        if since != self._unfit_since:
            self._unfit_since, self._unfit = since, 0
        return self._limits.open(now) & ~self._unfit

    def _best(self, ready: int, now: int) -> TenantQueue | None:
        """The one whose first job goes first, if that is what it says."""
        while lane_tiers := [lane_tier for lane_tier in self._lane_tiers.values() if lane_tier.mask & ready]:
            order, lane_tiers = self._best_lane_tiers(lane_tiers)
            class_queues = (
                lane_tiers[0].of(ready)
                if len(lane_tiers) == 1
                else [class_queue for lane_tier in lane_tiers for class_queue in lane_tier.of(ready)]
            )
            firsts = self._firsts(class_queues) if order.is_fixed else self._scanned(class_queues, now)
            for criterion in order.rest:
                if len(firsts) < 2:
                    break
                if criterion is Criterion.FAIRNESS and self._has_tenants:
                    firsts = self._of_least_tenants(firsts)
                firsts = _least(firsts, self._values(criterion, firsts, now))
            if firsts:
                return firsts[0] if len(firsts) == 1 else min(firsts, key=lambda first: arrival(_best_of(first)))
        return None

    def _firsts(self, class_queues: list[ClassQueue]) -> list[TenantQueue]:
        """The top of each group, worked out where it is not known."""
        if self._has_tenants:
            cost = self._accounts.tenant_cost
            # A tenant that was charged may have another one before it now.
            tops = [
                top
                if (top := class_queue.top) is not None and top.tenant_cost == cost(top.tenant)
                else self._choose(class_queue)
                for class_queue in class_queues
            ]
        else:
            tops = [class_queue.top or self._choose(class_queue) for class_queue in class_queues]
        return [top for top in tops if top is not None] if None in tops else cast(list[TenantQueue], tops)

    def _scanned(self, class_queues: list[ClassQueue], now: int) -> list[TenantQueue]:
        return [first for class_queue in class_queues if (first := self._scan(class_queue, now)) is not None]

    def _of_least_tenants(self, firsts: list[TenantQueue]) -> list[TenantQueue]:
        """Those of the tenants that have consumed least by now."""
        tenants = [_best_of(first).tenant for first in firsts]
        costs = {tenant: self._accounts.tenant_cost(tenant) for tenant in set(tenants)}
        return _least(firsts, [costs[tenant] for tenant in tenants]) if len(costs) > 1 else firsts

    def _best_lane_tiers(self, lane_tiers: list[LaneTier]) -> tuple[CriteriaOrder, list[LaneTier]]:
        """Those that may hold the next job, and the order that finds it among them."""
        order = self._order
        if self._own_orders:
            # Lanes with orders of their own can't be compared job by job.
            lane = min(self._shares.least({lane_tier.lane or "" for lane_tier in lane_tiers}))
            lane_tiers = [lane_tier for lane_tier in lane_tiers if lane_tier.lane == lane]
            order = self.order_of(lane)
        for criterion in order.splitting:
            if len(lane_tiers) < 2:
                break
            if criterion is Criterion.TIER:
                lane_tiers = _least(lane_tiers, [lane_tier.rank for lane_tier in lane_tiers])
            else:
                lanes = self._shares.least({lane_tier.lane or "" for lane_tier in lane_tiers})
                lane_tiers = [lane_tier for lane_tier in lane_tiers if lane_tier.lane in lanes]
        return order, lane_tiers

    def _values(self, criterion: Criterion, firsts: list[TenantQueue], now: int) -> list[Any]:
        """What the criterion makes of what each says of its first job."""
        if criterion is Criterion.FAIRNESS:
            return [first.cost for first in firsts]  # of the key, as it was then: not more than it is now
        if criterion is Criterion.SCORE:
            return self._scores(firsts, now)
        if criterion is Criterion.AGED_PRIORITY:
            return self._aged(firsts, now)
        measure = self._measures[criterion]
        return [measure.value(_best_of(first), now) for first in firsts]

    def _scores(self, firsts: list[TenantQueue], now: int) -> list[int]:
        """Smaller goes first. Rarity, which is dear to work out, is left out where it can't make one the first."""
        less = bonuses(now, self._bonus_max)
        values = [first.rank - less[first.aging] for first in firsts]
        within_reach = min(values) + RARITY_POINTS
        for n, value in enumerate(values):
            if value <= within_reach:
                values[n] = value - rarity(self._pool.free(firsts[n].job_class.definition.name))
        return values

    def _aged(self, firsts: list[TenantQueue], now: int) -> list[int]:
        """0 for those of the highest aged priority, 1 for the others.

        Of the jobs that one rule ages the oldest has the highest; and how old another must be for the same is one
        number for each rule.
        """
        oldest: dict[tuple[str | None, int] | None, TenantQueue] = {}
        for first in firsts:
            known = oldest.get(first.step)
            if known is None or first.since_ms < known.since_ms:
                oldest[first.step] = first
        steps = [(step, _best_of(first)) for step, first in oldest.items()]
        lanes = [self._rules.lane(job.lane) for _, job in steps]
        highest = max(aged_priority(job, now, lane) for (_, job), lane in zip(steps, lanes, strict=True))
        old_enough = {
            step: submitted_by(job.priority, highest, now, lane) for (step, job), lane in zip(steps, lanes, strict=True)
        }
        return [0 if first.since_ms <= old_enough[first.step] else 1 for first in firsts]

    # Groups

    def _class_queue_for(self, job: JobRef, job_class: SchedulingClass) -> ClassQueue:
        if job.tenant != self._tenant:
            # Once there were several, what groups say may be of one that has no jobs any more.
            self._has_tenants = self._tenant is not None
            self._tenant = job.tenant
        order = self.order_of(job.lane)
        lane = job.lane if order.has_lane or order.ages else None
        key = (lane, job_class, self._aging_of(job, order), job.priority if order.ages else None)
        known = self._class_queues.get(key)
        if known is None:
            step = (lane, job.priority) if order.ages else None
            known = self._class_queues[key] = ClassQueue(lane, job_class, key[2], step, order, accounts=self._accounts)
        return known

    def _aging_of(self, job: JobRef, order: CriteriaOrder) -> AgingRate:
        if job.mode != ON_DEMAND or not order.has_score:
            return QUEUED
        if self._grown_after_ms is None:
            return GROWING
        if job.submitted_at_ms <= self._grown_through_ms:
            return GROWN
        heapq.heappush(self._growing, (job.submitted_at_ms, job.id))
        return GROWING

    def _put(self, class_queue: ClassQueue, job: JobRef) -> None:
        account = (job.tenant, job.fairness_key) if class_queue.order.has_fairness else (None, None)
        key = (*account, job.priority, job.expires_at_ms if class_queue.order.has_deadline else None)
        lock = self._locks.held_of(job)
        if lock is not None:
            self._park(lock, (class_queue, key), job)
        else:
            self._to_bucket(class_queue, key, job)

    def _to_bucket(self, class_queue: ClassQueue, key: BucketKey, job: JobRef) -> None:
        if class_queue.is_full:
            class_queue.sweep(self._is_waiting)
        bucket = class_queue.bucket_for(key)
        if bucket.is_full:
            bucket.sweep(self._is_waiting)
        # An entry that stands for a tombstone may be from another life of its key, when that had consumed more.
        while (first := bucket.first) is not None and not self._is_waiting_in(class_queue, first):
            bucket.drop()
        if bucket.put(job):
            class_queue.push(bucket, self._entry(class_queue, bucket, job))
            if not class_queue.is_active:
                self._lane_tier_for(class_queue).activate(class_queue)

    def _lane_tier_for(self, class_queue: ClassQueue) -> LaneTier:
        order = class_queue.order
        lane = class_queue.lane if Criterion.LANE in order.splitting else None
        key = (lane, class_queue.job_class.definition.tier if order.has_tier else None)
        if class_queue.lane_tier is None or (class_queue.lane_tier.lane, class_queue.lane_tier.tier) != key:
            class_queue.lane_tier = self._lane_tiers.get(key) or self._lane_tiers.setdefault(key, LaneTier(*key))
        return class_queue.lane_tier

    def _rest(self, class_queue: ClassQueue) -> None:
        """It has nothing to offer."""
        if class_queue.is_active and class_queue.lane_tier is not None:
            class_queue.lane_tier.deactivate(class_queue)

    def _regroup(self, class_queue: ClassQueue) -> None:
        was_active = class_queue.is_active
        self._rest(class_queue)
        class_queue.forget_bests()
        if was_active:
            self._lane_tier_for(class_queue).activate(class_queue)

    def _entry(self, class_queue: ClassQueue, bucket: FifoBucket, job: JobRef) -> HeapEntry:
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
            case fixed:  # with the deadline among them
                return (*(self._fixed_value(each, job, class_queue.aging) for each in fixed), *tail)

    def _fixed_value(self, criterion: Criterion, job: JobRef, aging: AgingRate) -> int:
        match criterion:
            case Criterion.FAIRNESS:
                return self._accounts.cost(job.tenant, job.fairness_key)
            case Criterion.DEADLINE:
                return deadline_ms(job)
            case _:
                return rank_key(job, aging)

    def _is_current(self, first: TenantQueue, job: JobRef) -> bool:
        """Whether what it says of its first job is still so."""
        class_queue = first.class_queue
        if class_queue.order.has_fairness and self._accounts.cost(job.tenant, job.fairness_key) != first.cost:
            return False
        has_locks = job.serial or class_queue.job_class.definition.conflict_group is not None
        return self._is_waiting_in(class_queue, job) and not (has_locks and self._locks.held_of(job) is not None)

    def _choose(self, class_queue: ClassQueue) -> TenantQueue | None:
        top = class_queue.choose(self._front, self._entry, self._appraise)
        if top is None:
            self._rest(class_queue)
        return top

    def _scan(self, class_queue: ClassQueue, now: int) -> TenantQueue | None:
        """Compare the first jobs of all cells."""
        criteria = [
            each for each in class_queue.order.rest if each is not Criterion.LANE and each is not Criterion.TIER
        ]
        best: tuple[object, ...] | None = None
        first: TenantQueue | None = None
        for bucket in list(class_queue.buckets()):
            job = self._front(class_queue, bucket)
            if job is None:
                class_queue.drop(bucket)
                continue
            worth = (*(self._measures[each].value(job, now) for each in criteria), arrival(job))
            if best is None or worth < best:
                best = worth
                first = class_queue.tenant_queue_of(bucket)
                first.best = job
        if first is None:
            self._rest(class_queue)
        else:
            self._appraise(first, _best_of(first))
        return first

    def _appraise(self, first: TenantQueue, job: JobRef) -> None:
        first.cost = self._accounts.cost(job.tenant, job.fairness_key)
        first.rank = rank_key(job, first.aging)
        first.since_ms = job.submitted_at_ms

    def _front(self, class_queue: ClassQueue, bucket: FifoBucket) -> JobRef | None:
        """The first of the cell that waits and that no lock holds back; those before it are dropped, or parked."""
        queued, is_growing = self._queued, class_queue.aging == GROWING
        has_locks = class_queue.job_class.definition.conflict_group is not None
        while (job := bucket.first) is not None:
            if queued.get(job.id) is not job or (is_growing and job.submitted_at_ms <= self._grown_through_ms):
                bucket.drop()
                continue
            lock = self._locks.held_of(job) if has_locks or job.serial else None
            if lock is None:
                return job
            bucket.drop()
            self._park(lock, (class_queue, bucket.key), job)
        return None

    def _is_waiting(self, job: JobRef) -> bool:
        return self._queued.get(job.id) is job

    def _is_waiting_in(self, class_queue: ClassQueue, job: JobRef) -> bool:
        return self._is_waiting(job) and not self._has_grown(class_queue, job)

    def _has_grown(self, class_queue: ClassQueue, job: JobRef) -> bool:
        return class_queue.aging == GROWING and job.submitted_at_ms <= self._grown_through_ms

    # Locks and time

    def _park(self, lock: Lock, origin: Origin, job: JobRef) -> None:
        self._parking.park(lock, origin, job, self._is_waiting_in)
        # Those behind it that wait for another of its locks need not wait for it.
        self.freed(other for other in self._locks.wanted(job) if other != lock)

    def _unpark(self) -> None:
        while self._freed:
            lock, _ = self._freed.popitem()
            if self._locks.is_held(lock):
                continue
            for (class_queue, key), job in self._parking.take_first(lock, self._is_waiting_in):
                self._to_bucket(class_queue, key, job)

    def _advance(self, now: int) -> None:
        """On-demand jobs whose bonus has reached its maximum age like queued ones from then on."""
        if self._grown_after_ms is None:
            return
        self._grown_through_ms = max(self._grown_through_ms, now - self._grown_after_ms)
        while self._growing and self._growing[0][0] <= self._grown_through_ms:
            submitted_at_ms, job_id = heapq.heappop(self._growing)
            job = self._queued.get(job_id)
            if job is not None and job.submitted_at_ms == submitted_at_ms and job.mode == ON_DEMAND:
                self._put(self._class_queue_for(job, self._classes.of(job)), job)
                self.freed(self._locks.wanted(job))  # others of its old cell may have waited for it to go first

    def _tidy(self) -> None:
        """Forget the groups that nobody is in any more, and now and then the kinds."""
        if len(self._classes) > self._classes_max and len(self._queued) <= _CLASS_QUEUES_MAX:
            self._rebuild_all()
        parked = {class_queue for (class_queue, _), _ in self._parking.jobs()}
        for key, class_queue in list(self._class_queues.items()):
            class_queue.sweep(self._is_waiting)
            if class_queue.is_empty and class_queue not in parked:
                self._rest(class_queue)
                del self._class_queues[key]
        used = {class_queue.lane_tier for class_queue in self._class_queues.values()}
        self._lane_tiers = {key: lane_tier for key, lane_tier in self._lane_tiers.items() if lane_tier in used}
        self._class_queues_max = max(_CLASS_QUEUES_MAX, 2 * len(self._class_queues))
        self._classes_max = max(_CLASSES_MAX, 2 * len(self._classes))

    def _rebuild_all(self) -> None:
        """Kinds are bits in masks, which can only be given out again all together."""
        jobs = list(self._queued.values())
        for job in jobs:
            self.waits.ended(job)
        for table in (self._queued, self._class_queues, self._lane_tiers, self._growing, self._freed):
            table.clear()
        self._parking.clear()
        self._tenant, self._has_tenants = None, False
        self._classes.forget()
        for job in jobs:
            self.add(job)


def _place(job: JobRef) -> tuple[object, ...]:
    """All that says where a job belongs."""
    return (
        job.definition, job.target, job.tenant, job.lane, job.fairness_key, job.priority, job.mode, job.submitted_at_ms,
        job.sequence, job.serial, job.resources, job.schedule_created_at_ms, job.expires_at_ms,
    )  # fmt: skip


def _least(items: list[_Item], values: list[Any]) -> list[_Item]:
    least = min(values)
    return [item for item, value in zip(items, values, strict=True) if value == least]


def _best_of(first: TenantQueue) -> JobRef:
    assert first.best is not None
    return first.best
