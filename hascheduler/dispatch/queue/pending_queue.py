"""The choice of the job that goes next, among all that wait (`hascheduler.dispatch.queue` shows the structure).

A decision checks the lane tiers, and in the best of them the first job of each class queue that may run now. What a
class queue reports as its first job may be too good, never too bad (see `class_queues`), so only the winner has to be
checked: if it is not as reported, its class queue is searched again, and the choice is made again. Adding and removing
a job cost the same however many wait.
"""

import heapq
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import cast

from hascheduler.dispatch.accounts import FairAccounts
from hascheduler.dispatch.capacity.admission_limits import AdmissionLimits, SchedulingClass, SchedulingClasses
from hascheduler.dispatch.capacity.dominant_share import LaneShares
from hascheduler.dispatch.capacity.locks import Lock, LockTable
from hascheduler.dispatch.capacity.slot_pool import SlotPool
from hascheduler.dispatch.config import PolicyConfig
from hascheduler.dispatch.queue.class_queues import ClassQueue, LaneTier, LockWaiters, Origin, TenantQueue
from hascheduler.dispatch.queue.comparison import Comparison, best_of
from hascheduler.dispatch.queue.criteria import (
    GROWING,
    GROWN,
    ON_DEMAND,
    QUEUED,
    AgingRate,
    Measures,
    grown_after_ms,
)
from hascheduler.dispatch.queue.fifo_buckets import BucketKey, FifoBucket, OldestWaits
from hascheduler.dispatch.queue.orders import CriteriaOrder, own_criteria
from hascheduler.dispatch.rules import Rules
from hascheduler.model.job import JobRef
from hascheduler.model.policy import Criterion

_ClassQueueKey = tuple[str | None, SchedulingClass, AgingRate, int | None]
_LaneTierKey = tuple[str | None, int | None]
_CLASS_QUEUES_MAX = 4_096
_CLASSES_MAX = 1_024
"""Above this, empty class queues and unused scheduling classes are swept."""


class PendingQueue:
    """Owner of the waiting jobs. It reads the rest: rules, slots, limits, locks, costs and shares."""

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
        self._measures = measures
        self._apart = tuple([each for each in measures.values() if each.tells_apart])
        self._order = CriteriaOrder(policy.criteria, measures)
        self._own_orders: dict[str, CriteriaOrder] = {}
        self._comparison = Comparison(
            rules=rules,
            pool=pool,
            accounts=accounts,
            shares=shares,
            measures=measures,
            bonus_max=policy.on_demand_bonus_max,
        )
        self._grown_after_ms = grown_after_ms(policy)
        self._grown_through_ms = -(2**63)
        self._growing: list[tuple[int, str]] = []
        self._queued: dict[str, JobRef] = {}
        self._of_definition: dict[str, int] = {}
        self.waits = OldestWaits()
        self._class_queues: dict[_ClassQueueKey, ClassQueue] = {}
        self._lane_tiers: dict[_LaneTierKey, LaneTier] = {}
        self._lock_waiters = LockWaiters()
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
        """Return all waiting jobs, in no particular order."""
        return self._queued.values()

    def counts(self) -> Mapping[str, int]:
        """Return how many jobs of each definition wait; read only."""
        return self._of_definition

    def jobs_of(self, classes: Collection[SchedulingClass]) -> Iterator[JobRef]:
        """Yield the waiting jobs of these scheduling classes; a job may come twice."""
        for class_queue in self._class_queues.values():
            if class_queue.job_class in classes:
                for bucket in class_queue.buckets():
                    for job in bucket.jobs():
                        if self._is_waiting_in(class_queue, job):
                            yield job
        for (class_queue, _), jobs in self._lock_waiters.jobs():
            if class_queue.job_class in classes:
                for job in jobs:
                    if self._is_waiting_in(class_queue, job):
                        yield job

    def waiting_classes(self) -> set[SchedulingClass]:
        """Return the scheduling classes with a waiting job that no lock holds back."""
        return {
            class_queue.job_class
            for class_queue in self._class_queues.values()
            if any(self._is_waiting_in(class_queue, job) for bucket in class_queue.buckets() for job in bucket.jobs())
        }

    # Adding and removing

    def add(self, job: JobRef) -> None:
        """Add the job, or move it if its place has changed."""
        known = self._queued.get(job.id)
        if known is not None:
            if known is job or self._place(known) == self._place(job):
                return
            self.remove(job.id)
        if len(self._class_queues) > self._class_queues_max or len(self._classes) > self._classes_max:
            self._sweep()
        self._queued[job.id] = job
        self._of_definition[job.definition] = self._of_definition.get(job.definition, 0) + 1
        self.waits.began(job)
        self._put(self._class_queue_for(job, self._classes.of(job)), job)

    def _place(self, job: JobRef) -> tuple[object, ...]:
        """Return all that determines where a job belongs, and the attempt, from which the next dispatch counts on.

        If the stream was read ahead, a job may go from one wait to the next without having left.
        """
        return (
            job.definition, job.target, job.tenant, job.lane, job.fairness_key, job.priority, job.mode,
            job.submitted_at_ms, job.sequence, job.serial, job.resources, job.schedule_created_at_ms, job.limit_keys,
            job.attempt, *[each.apart(job) for each in self._apart],
        )  # fmt: skip

    def remove(self, job_id: str) -> None:
        job = self._queued.pop(job_id, None)
        if job is None:
            return
        self._uncount(job)
        self.freed(self._locks.wanted(job))  # other jobs may have waited behind it for the same lock

    def _uncount(self, job: JobRef) -> None:
        self.waits.ended(job)
        left = self._of_definition[job.definition] - 1
        if left:
            self._of_definition[job.definition] = left
        else:
            del self._of_definition[job.definition]

    def freed(self, locks: Iterable[Lock]) -> None:
        """Note that no job holds these locks any more, or that the first of those that wait for them has left."""
        for lock in locks:
            if lock in self._lock_waiters:
                self._freed[lock] = None

    def redefined(self, name: str) -> None:
        """Apply a changed definition, whose tier and conflict group may differ."""
        classes = set(self._classes.redefined(name))
        for class_queue in self._class_queues.values():
            if class_queue.job_class in classes:
                self._reactivate(class_queue)
        for (class_queue, key), job in self._lock_waiters.take_of_definition(name):
            if self._is_waiting(job):
                self._to_bucket(class_queue, key, job)

    def lane_changed(self, name: str) -> None:
        before = self._own_orders.pop(name, None)
        own = own_criteria(self._order.criteria, self._rules.lane(name))
        if own is not None:
            self._own_orders[name] = CriteriaOrder(own, self._measures)
        if own != (before.criteria if before else None):
            for key, class_queue in list(self._class_queues.items()):
                if class_queue.lane == name:
                    self._deactivate(class_queue)
                    del self._class_queues[key]
            self.replant(lambda job: job.lane == name)

    def replant(self, which: Callable[[JobRef], bool]) -> None:
        """Move those jobs to where changed rules place them."""
        for job in [job for job in self._queued.values() if which(job)]:
            self.remove(job.id)
            # As another object, so that it is not mistaken for the one that is still in its old bucket.
            self.add(replace(job))

    # Choosing

    def first(self, now: int) -> tuple[JobRef, str] | None:
        """Return the job that goes next and the processor that should take it, or None; the job stays in the queue."""
        self._advance(now)
        while True:
            self._take_freed()
            best = self._best(self._ready(now), now)
            if self._freed:
                continue  # a job that others had waited behind was moved behind a lock meanwhile
            if best is None:
                return None
            job = best_of(best)
            if not self._is_current(best, job):
                best.forget_best()
                continue
            processor_id = self._pool.choose(best.job_class.definition.name, best.job_class.needs)
            if processor_id is not None:
                best.forget_best()  # most likely it is dispatched now
                return job, processor_id
            self._unfit |= 1 << best.job_class.bit

    def order_of(self, lane: str) -> CriteriaOrder:
        """Return the order among that lane's jobs."""
        return self._own_orders.get(lane, self._order) if self._own_orders else self._order

    def has_own_orders(self) -> bool:
        return bool(self._own_orders)

    def _ready(self, now: int) -> int:
        since = (self._pool.relieved, self._classes.changes)
        if since != self._unfit_since:
            self._unfit_since, self._unfit = since, 0
        return self._limits.open(now) & ~self._unfit

    def _best(self, ready: int, now: int) -> TenantQueue | None:
        """Return the tenant queue whose first job goes first, if its first job is as noted."""
        while lane_tiers := [lane_tier for lane_tier in self._lane_tiers.values() if lane_tier.mask & ready]:
            order = self._order
            if self._own_orders:
                # Jobs of lanes with orders of their own can't be compared with each other.
                lane = min(self._comparison.least_lanes(lane_tiers))
                lane_tiers = [lane_tier for lane_tier in lane_tiers if lane_tier.lane == lane]
                order = self.order_of(lane)
            lane_tiers = self._comparison.best_lane_tiers(lane_tiers, order)
            class_queues = (
                lane_tiers[0].of(ready)
                if len(lane_tiers) == 1
                else [class_queue for lane_tier in lane_tiers for class_queue in lane_tier.of(ready)]
            )
            firsts = self._firsts(class_queues) if order.is_fixed else self._scanned(class_queues, now)
            best = self._comparison.best(firsts, order, now, has_tenants=self._has_tenants)
            if best is not None:
                return best
        return None

    def _firsts(self, class_queues: list[ClassQueue]) -> list[TenantQueue]:
        """Return the top of each class queue, searched if it is not known."""
        if self._has_tenants:
            cost = self._accounts.tenant_cost
            # Another tenant may be before one that was charged meanwhile.
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

    # Class queues and buckets

    def _class_queue_for(self, job: JobRef, job_class: SchedulingClass) -> ClassQueue:
        if job.tenant != self._tenant:
            # If there have been several tenants, a noted first job may belong to one without jobs.
            self._has_tenants = self._tenant is not None
            self._tenant = job.tenant
        order = self.order_of(job.lane)
        lane = job.lane if order.has_lane or order.ages else None
        key = (lane, job_class, self._aging_of(job, order), job.priority if order.ages else None)
        known = self._class_queues.get(key)
        if known is None:
            aging_rule = (lane, job.priority) if order.ages else None
            known = self._class_queues[key] = ClassQueue(
                lane, job_class, key[2], aging_rule, order, accounts=self._accounts
            )
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
        key = class_queue.order.bucket_key(job)
        lock = self._locks.held_of(job)
        if lock is not None:
            self._move_behind(lock, (class_queue, key), job)
        else:
            self._to_bucket(class_queue, key, job)

    def _to_bucket(self, class_queue: ClassQueue, key: BucketKey, job: JobRef) -> None:
        if class_queue.is_full:
            class_queue.sweep(self._is_waiting)
        bucket = class_queue.bucket_for(key)
        if bucket.is_full:
            bucket.sweep(self._is_waiting)
        # A tombstone's entry may date from an earlier life of its key, which had consumed more then.
        while (first := bucket.first) is not None and not self._is_waiting_in(class_queue, first):
            bucket.drop()
        if bucket.put(job):
            class_queue.push(bucket, self._comparison.entry(class_queue, bucket, job))
            if not class_queue.is_active:
                self._lane_tier_for(class_queue).activate(class_queue)

    def _lane_tier_for(self, class_queue: ClassQueue) -> LaneTier:
        order = class_queue.order
        lane = class_queue.lane if Criterion.LANE in order.splitting else None
        key = (lane, class_queue.job_class.definition.tier if order.has_tier else None)
        if class_queue.lane_tier is None or (class_queue.lane_tier.lane, class_queue.lane_tier.tier) != key:
            class_queue.lane_tier = self._lane_tiers.get(key) or self._lane_tiers.setdefault(key, LaneTier(*key))
        return class_queue.lane_tier

    def _deactivate(self, class_queue: ClassQueue) -> None:
        """Deactivate a class queue without a job that may go."""
        if class_queue.is_active and class_queue.lane_tier is not None:
            class_queue.lane_tier.deactivate(class_queue)

    def _reactivate(self, class_queue: ClassQueue) -> None:
        was_active = class_queue.is_active
        self._deactivate(class_queue)
        class_queue.forget_bests()
        if was_active:
            self._lane_tier_for(class_queue).activate(class_queue)

    def _is_current(self, first: TenantQueue, job: JobRef) -> bool:
        """Return True if its first job is still as noted."""
        class_queue = first.class_queue
        if class_queue.order.has_fairness and self._accounts.cost(job.tenant, job.fairness_key) != first.cost:
            return False
        has_locks = job.serial or class_queue.job_class.definition.may_exclude
        return self._is_waiting_in(class_queue, job) and not (has_locks and self._locks.held_of(job) is not None)

    def _choose(self, class_queue: ClassQueue) -> TenantQueue | None:
        top = class_queue.choose(self._front, self._comparison.entry, self._comparison.note)
        if top is None:
            self._deactivate(class_queue)
        return top

    def _scan(self, class_queue: ClassQueue, now: int) -> TenantQueue | None:
        """Compare the first jobs of all buckets."""
        best: tuple[object, ...] | None = None
        first: TenantQueue | None = None
        for bucket in list(class_queue.buckets()):
            job = self._front(class_queue, bucket)
            if job is None:
                class_queue.drop(bucket)
                continue
            bucket_entry = self._comparison.scanned(job, class_queue.order, now)
            if best is None or bucket_entry < best:
                best = bucket_entry
                first = class_queue.tenant_queue_of(bucket)
                first.best = job
        if first is None:
            self._deactivate(class_queue)
        else:
            self._comparison.note(first, best_of(first))
        return first

    def _front(self, class_queue: ClassQueue, bucket: FifoBucket) -> JobRef | None:
        """Return the first waiting job of the bucket that no lock holds back.

        The jobs before it are dropped, or moved behind their locks.
        """
        queued, is_growing = self._queued, class_queue.aging == GROWING
        has_locks = class_queue.job_class.definition.may_exclude
        while (job := bucket.first) is not None:
            if queued.get(job.id) is not job or (is_growing and job.submitted_at_ms <= self._grown_through_ms):
                bucket.drop()
                continue
            lock = self._locks.held_of(job) if has_locks or job.serial else None
            if lock is None:
                return job
            bucket.drop()
            self._move_behind(lock, (class_queue, bucket.key), job)
        return None

    def _is_waiting(self, job: JobRef) -> bool:
        return self._queued.get(job.id) is job

    def _is_waiting_in(self, class_queue: ClassQueue, job: JobRef) -> bool:
        has_grown = class_queue.aging == GROWING and job.submitted_at_ms <= self._grown_through_ms
        return self._is_waiting(job) and not has_grown

    # Locks and time

    def _move_behind(self, lock: Lock, origin: Origin, job: JobRef) -> None:
        self._lock_waiters.add(lock, origin, job, self._is_waiting_in)
        # Jobs that waited behind it for another of its locks need not wait any more.
        self.freed(other for other in self._locks.wanted(job) if other != lock)

    def _take_freed(self) -> None:
        while self._freed:
            lock, _ = self._freed.popitem()
            if self._locks.is_held(lock):
                continue
            for (class_queue, key), job in self._lock_waiters.take_first(lock, self._is_waiting_in):
                self._to_bucket(class_queue, key, job)

    def _advance(self, now: int) -> None:
        """Let on-demand jobs whose bonus has reached its maximum age like queued ones from now on."""
        if self._grown_after_ms is None:
            return
        self._grown_through_ms = max(self._grown_through_ms, now - self._grown_after_ms)
        while self._growing and self._growing[0][0] <= self._grown_through_ms:
            submitted_at_ms, job_id = heapq.heappop(self._growing)
            job = self._queued.get(job_id)
            if job is not None and job.submitted_at_ms == submitted_at_ms and job.mode == ON_DEMAND:
                self._put(self._class_queue_for(job, self._classes.of(job)), job)
                self.freed(self._locks.wanted(job))  # other jobs of its old bucket may have waited behind it

    def _sweep(self) -> None:
        """Forget the class queues without jobs, and now and then the scheduling classes."""
        if len(self._classes) > self._classes_max and len(self._queued) <= _CLASS_QUEUES_MAX:
            self._rebuild_all()
        with_waiters = {class_queue for (class_queue, _), _ in self._lock_waiters.jobs()}
        for key, class_queue in list(self._class_queues.items()):
            class_queue.sweep(self._is_waiting)
            if class_queue.is_empty and class_queue not in with_waiters:
                self._deactivate(class_queue)
                del self._class_queues[key]
        used = {class_queue.lane_tier for class_queue in self._class_queues.values()}
        self._lane_tiers = {key: lane_tier for key, lane_tier in self._lane_tiers.items() if lane_tier in used}
        self._class_queues_max = max(_CLASS_QUEUES_MAX, 2 * len(self._class_queues))
        self._classes_max = max(_CLASSES_MAX, 2 * len(self._classes))

    def _rebuild_all(self) -> None:
        """Rebuild the queue: scheduling classes are bits in masks, which can only be assigned anew all together."""
        jobs = list(self._queued.values())
        for job in jobs:
            self._uncount(job)
        for table in (self._queued, self._class_queues, self._lane_tiers, self._growing, self._freed):
            table.clear()
        self._lock_waiters.clear()
        self._tenant, self._has_tenants = None, False
        self._classes.forget()
        for job in jobs:
            self.add(job)
