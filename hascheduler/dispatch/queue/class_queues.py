"""One lane, one kind, one flow (and one priority, where priorities age): its cells, and the one that goes first.

::

    Group ─► Tenancy     one tenant's cells, where the policy is fair
              └─► Cell   one of its fairness keys, one priority

Each tenancy has a heap with one entry per cell, the group one with an entry per tenancy, which says what the tenant has
consumed, too. An entry may be too good for what it stands for (its first job has left, its tenant or key has consumed
more since), never too bad: so when the entry at the top is what that is worth now, it is the first. That a tenant
is charged changes the place of its tenancy, and nothing within that: no key is looked at again.
"""

import heapq
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from hascheduler.dispatch.accounts import FairAccounts
from hascheduler.dispatch.capacity.scheduling_classes import SchedulingClass
from hascheduler.dispatch.queue.fifo_buckets import SWEEP_MIN, BucketKey, FifoBucket
from hascheduler.dispatch.queue.orders import CriteriaOrder
from hascheduler.dispatch.queue.score import AgingRate
from hascheduler.model.job import JobRef

if TYPE_CHECKING:
    from hascheduler.dispatch.queue.lane_tiers import LaneTier

HeapEntry = tuple[object, ...]
_Front = Callable[["ClassQueue", FifoBucket], JobRef | None]
_Worth = Callable[["ClassQueue", FifoBucket, JobRef], HeapEntry]
_Appraise = Callable[["TenantQueue", JobRef], None]


class TenantQueue:
    """What competes: the first job of one tenant (of all, where the policy can't tell them apart) in its group.

    ``best`` is that job, or None where it is not known, and ``worth`` the entry that it had. ``cost`` is what its key
    had consumed then, ``rank`` what its score makes of it among jobs of its flow, and ``since_ms`` when it was
    submitted. ``entry`` stands for it in the heap of its group, with ``tenant_cost`` in it.
    """

    __slots__ = (
        "aging",
        "best",
        "class_queue",
        "cost",
        "entry",
        "heap",
        "job_class",
        "rank",
        "since_ms",
        "step",
        "tenant",
        "tenant_cost",
        "worth",
    )

    def __init__(self, class_queue: "ClassQueue", tenant: str | None) -> None:
        self.class_queue = class_queue
        self.tenant = tenant
        self.job_class = class_queue.job_class
        self.aging = class_queue.aging
        self.step = class_queue.step
        self.heap: list[HeapEntry] = []
        self.best: JobRef | None = None
        self.worth: HeapEntry = ()
        self.entry: HeapEntry = ()
        self.cost = 0
        self.tenant_cost = 0
        self.rank = 0
        self.since_ms = 0

    def __lt__(self, other: object) -> bool:
        return False  # the end of a tuple whose parts before it are the same: an old entry and its successor

    def forget_best(self) -> None:
        self.best = None
        self.class_queue.top = None


class ClassQueue:
    """``top`` is the tenancy that goes first, or None where that is not known.

    ``step`` is the lane and the priority, where priorities age: what one rule ages. ``lane_tier`` is where the group
    competes.
    """

    __slots__ = (
        "_accounts",
        "_buckets",
        "_full_at",
        "_heap",
        "_tenant_queues",
        "aging",
        "is_active",
        "job_class",
        "lane",
        "lane_tier",
        "order",
        "step",
        "top",
    )

    def __init__(
        self,
        lane: str | None,
        job_class: SchedulingClass,
        aging: AgingRate,
        step: tuple[str | None, int] | None,
        order: CriteriaOrder,
        *,
        accounts: FairAccounts,
    ) -> None:
        self.lane = lane
        self.job_class = job_class
        self.aging = aging
        self.step = step
        self.order = order
        self._accounts = accounts
        self._buckets: dict[BucketKey, FifoBucket] = {}
        self._tenant_queues: dict[str | None, TenantQueue] = {}
        self._heap: list[HeapEntry] = []
        self._full_at = SWEEP_MIN
        self.top: TenantQueue | None = None
        self.is_active = False
        self.lane_tier: LaneTier | None = None

    def buckets(self) -> Iterator[FifoBucket]:
        return iter(self._buckets.values())

    def bucket_for(self, key: BucketKey) -> FifoBucket:
        known = self._buckets.get(key)
        if known is None:
            known = self._buckets[key] = FifoBucket(key)
        return known

    def tenant_queue_of(self, bucket: FifoBucket) -> TenantQueue:
        tenant = None if self.order.shares is None else bucket.key[0]
        known = self._tenant_queues.get(tenant)
        if known is None:
            if len(self._tenant_queues) == 1:
                for other in self._tenant_queues.values():
                    self._offer(other, other.heap[0])  # it had no rival before, and so no entry
            known = self._tenant_queues[tenant] = TenantQueue(self, tenant)
        return known

    @property
    def is_shared(self) -> bool:
        """Whether several tenants may have jobs here that could go."""
        return len(self._tenant_queues) > 1

    @property
    def is_full(self) -> bool:
        """Whether it is time to `sweep`."""
        return len(self._buckets) >= self._full_at

    @property
    def is_empty(self) -> bool:
        return not self._buckets

    def sweep(self, is_waiting: Callable[[JobRef], bool]) -> None:
        """Drop the cells in which nobody waits any more."""
        for bucket in list(self._buckets.values()):
            if not bucket.sweep(is_waiting):
                del self._buckets[bucket.key]
        self._tenant_queues.clear()
        self._heap.clear()
        self.top = None
        for bucket in self._buckets.values():
            if bucket.entry:
                self._enter(bucket)
        self._full_at = max(SWEEP_MIN, 2 * len(self._buckets))

    def push(self, bucket: FifoBucket, entry: HeapEntry) -> None:
        """The cell has a new first job."""
        bucket.entry = entry
        self._enter(bucket)

    def forget_bests(self) -> None:
        for tenant_queue in self._tenant_queues.values():
            tenant_queue.forget_best()

    def choose(self, front: _Front, entry: _Worth, appraise: _Appraise) -> TenantQueue | None:
        """Work out the top; ``front`` gives a cell's first job, None where it has none that may go."""
        heap = self._heap
        while len(self._tenant_queues) > 1:
            top = heap[0]
            tenant_queue: TenantQueue = top[-1]  # type: ignore[assignment]  # every entry ends in its tenancy
            if top is not tenant_queue.entry:
                heapq.heappop(heap)
                continue
            if tenant_queue.best is None and not self._refresh(tenant_queue, front, entry, appraise):
                continue
            tenant_queue.tenant_cost = self._accounts.tenant_cost(tenant_queue.tenant)
            now_worth = self._among_tenants(tenant_queue, tenant_queue.worth)
            if now_worth == top:
                self.top = tenant_queue
                return tenant_queue
            tenant_queue.entry = now_worth
            heapq.heapreplace(heap, now_worth)
        for only in list(self._tenant_queues.values()):
            if only.best is not None or self._refresh(only, front, entry, appraise):
                only.tenant_cost = self._accounts.tenant_cost(only.tenant)
                self.top = only
                return only
        self.top = None
        return None

    def drop(self, bucket: FifoBucket) -> None:
        """It has no job that may go."""
        del self._buckets[bucket.key]

    def _refresh(self, tenant_queue: TenantQueue, front: _Front, entry: _Worth, appraise: _Appraise) -> bool:
        """Work out its first job anew; one that has none is gone."""
        heap = tenant_queue.heap
        while heap:
            top = heap[0]
            bucket: FifoBucket = top[-1]  # type: ignore[assignment]  # every entry ends in its cell
            if top is not bucket.entry:
                heapq.heappop(heap)
                continue
            job = front(self, bucket)
            if job is None:
                heapq.heappop(heap)
                del self._buckets[bucket.key]
                continue
            now_worth = entry(self, bucket, job)
            if now_worth == top:
                tenant_queue.best = job
                tenant_queue.worth = now_worth
                appraise(tenant_queue, job)
                return True
            bucket.entry = now_worth
            heapq.heapreplace(heap, now_worth)
        tenant_queue.entry = ()
        del self._tenant_queues[tenant_queue.tenant]
        if not self.is_shared:
            self._heap.clear()
            for only in self._tenant_queues.values():
                only.entry = ()
        return False

    def _enter(self, bucket: FifoBucket) -> None:
        """What stands for the cell has changed, or is new."""
        tenant_queue = self.tenant_queue_of(bucket)
        tenant_queue.forget_best()
        if self.order.is_fixed:
            heapq.heappush(tenant_queue.heap, bucket.entry)
            if self.is_shared:
                self._offer(tenant_queue, bucket.entry)

    def _offer(self, tenant_queue: TenantQueue, worth: HeapEntry) -> None:
        """It is worth no less than that."""
        tenant_queue.tenant_cost = self._accounts.tenant_cost(tenant_queue.tenant)
        entry = self._among_tenants(tenant_queue, worth)
        if not tenant_queue.entry or entry < tenant_queue.entry:
            tenant_queue.entry = entry
            heapq.heappush(self._heap, entry)

    def _among_tenants(self, tenant_queue: TenantQueue, worth: HeapEntry) -> HeapEntry:
        at = self.order.shares or 0
        return (*worth[:at], tenant_queue.tenant_cost, *worth[at:-1], tenant_queue)
