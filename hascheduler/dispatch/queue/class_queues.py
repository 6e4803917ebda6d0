"""The queue of one lane, scheduling class and aging rate (and one priority, if priorities age), and its first job.

::

    LaneTier ─► ClassQueue ─► TenantQueue     one tenant's buckets, if the policy is fair
                               └─► FifoBucket one of its fairness keys, one priority

Each tenant queue has a heap with one entry per bucket, the class queue a heap with one entry per tenant queue, which
also holds the tenant's consumption. An entry may be too good for what it stands for (its first job has left, its tenant
or key has consumed more since), never too bad: so if the entry at the top equals what it should be now, it is the
first. A charge to a tenant changes the place of its tenant queue and nothing within it: no key is checked again.

`LockWaiters` keeps the waiting jobs that a lock holds back (a conflict group, a limit per key) off the hot path until
the lock is free. They are kept by the lock that stopped them, and by the bucket that they came from, oldest first. When
the lock is free, only the first of each bucket goes back: it goes before the others of its bucket in any case.
"""

import heapq
from bisect import insort
from collections.abc import Callable, Iterator

from hascheduler.dispatch.accounts import FairAccounts
from hascheduler.dispatch.capacity.admission_limits import SchedulingClass
from hascheduler.dispatch.capacity.locks import Lock
from hascheduler.dispatch.queue.criteria import AgingRate
from hascheduler.dispatch.queue.fifo_buckets import SWEEP_MIN, BucketKey, FifoBucket, arrival
from hascheduler.dispatch.queue.orders import CriteriaOrder
from hascheduler.model.job import JobRef

_FOUND_MAX = 64
HeapEntry = tuple[object, ...]
_Front = Callable[["ClassQueue", FifoBucket], JobRef | None]
_EntryOf = Callable[["ClassQueue", FifoBucket, JobRef], HeapEntry]
_Note = Callable[["TenantQueue", JobRef], None]


class TenantQueue:
    """One tenant's buckets in a class queue (all buckets, if the policy can't tell tenants apart).

    It competes with its first job: ``best`` is that job, or None if it is not known, and ``bucket_entry`` the entry of
    its bucket then. ``cost`` is what the job's key had consumed then, ``rank`` its `rank_key`, and ``since_ms`` when it
    was submitted. ``entry`` stands for the tenant queue in the heap of its class queue, with ``tenant_cost`` in it.
    """

    __slots__ = (
        "aging",
        "aging_rule",
        "best",
        "bucket_entry",
        "class_queue",
        "cost",
        "entry",
        "heap",
        "job_class",
        "rank",
        "since_ms",
        "tenant",
        "tenant_cost",
    )

    def __init__(self, class_queue: "ClassQueue", tenant: str | None) -> None:
        self.class_queue = class_queue
        self.tenant = tenant
        self.job_class = class_queue.job_class
        self.aging = class_queue.aging
        self.aging_rule = class_queue.aging_rule
        self.heap: list[HeapEntry] = []
        self.best: JobRef | None = None
        self.bucket_entry: HeapEntry = ()
        self.entry: HeapEntry = ()
        self.cost = 0
        self.tenant_cost = 0
        self.rank = 0
        self.since_ms = 0

    def __lt__(self, other: object) -> bool:
        return False  # compared if the rest of the tuple is equal: an old entry and its successor

    def forget_best(self) -> None:
        self.best = None
        self.class_queue.top = None


class ClassQueue:
    """The waiting jobs of one scheduling class.

    ``top`` is the tenant queue that goes first, or None if it is not known. ``aging_rule`` is the lane and the
    priority, if priorities age: the jobs that one rule ages. ``lane_tier`` is where the class queue competes.
    """

    __slots__ = (
        "_accounts",
        "_buckets",
        "_full_at",
        "_heap",
        "_tenant_queues",
        "aging",
        "aging_rule",
        "is_active",
        "job_class",
        "lane",
        "lane_tier",
        "order",
        "top",
    )

    def __init__(
        self,
        lane: str | None,
        job_class: SchedulingClass,
        aging: AgingRate,
        aging_rule: tuple[str | None, int] | None,
        order: CriteriaOrder,
        *,
        accounts: FairAccounts,
    ) -> None:
        self.lane = lane
        self.job_class = job_class
        self.aging = aging
        self.aging_rule = aging_rule
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
                    self._offer(other, other.heap[0])  # it had no competitor before, and so no entry
            known = self._tenant_queues[tenant] = TenantQueue(self, tenant)
        return known

    @property
    def is_shared(self) -> bool:
        """Return True if several tenants may have jobs here that could go next."""
        return len(self._tenant_queues) > 1

    @property
    def is_full(self) -> bool:
        """Return True if it is time to `sweep`."""
        return len(self._buckets) >= self._full_at

    @property
    def is_empty(self) -> bool:
        return not self._buckets

    def sweep(self, is_waiting: Callable[[JobRef], bool]) -> None:
        """Drop the buckets in which no job waits any more."""
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
        """Enter a bucket that has a new first job."""
        bucket.entry = entry
        self._enter(bucket)

    def forget_bests(self) -> None:
        for tenant_queue in self._tenant_queues.values():
            tenant_queue.forget_best()

    def choose(self, front: _Front, entry: _EntryOf, note: _Note) -> TenantQueue | None:
        """Find the top; ``front`` returns a bucket's first job, or None if none of its jobs may go."""
        heap = self._heap
        while len(self._tenant_queues) > 1:
            top = heap[0]
            tenant_queue: TenantQueue = top[-1]  # type: ignore[assignment]  # every entry ends with its tenant queue
            if top is not tenant_queue.entry:
                heapq.heappop(heap)
                continue
            if tenant_queue.best is None and not self._refresh(tenant_queue, front, entry, note):
                continue
            tenant_queue.tenant_cost = self._accounts.tenant_cost(tenant_queue.tenant)
            entry_now = self._among_tenants(tenant_queue, tenant_queue.bucket_entry)
            if entry_now == top:
                self.top = tenant_queue
                return tenant_queue
            tenant_queue.entry = entry_now
            heapq.heapreplace(heap, entry_now)
        for only in list(self._tenant_queues.values()):
            if only.best is not None or self._refresh(only, front, entry, note):
                only.tenant_cost = self._accounts.tenant_cost(only.tenant)
                self.top = only
                return only
        self.top = None
        return None

    def drop(self, bucket: FifoBucket) -> None:
        """Drop a bucket without a job that may go."""
        del self._buckets[bucket.key]

    def _refresh(self, tenant_queue: TenantQueue, front: _Front, entry: _EntryOf, note: _Note) -> bool:
        """Find its first job again; drop the tenant queue if it has none."""
        heap = tenant_queue.heap
        while heap:
            top = heap[0]
            bucket: FifoBucket = top[-1]  # type: ignore[assignment]  # every entry ends with its bucket
            if top is not bucket.entry:
                heapq.heappop(heap)
                continue
            job = front(self, bucket)
            if job is None:
                heapq.heappop(heap)
                del self._buckets[bucket.key]
                continue
            entry_now = entry(self, bucket, job)
            if entry_now == top:
                tenant_queue.best = job
                tenant_queue.bucket_entry = entry_now
                note(tenant_queue, job)
                return True
            bucket.entry = entry_now
            heapq.heapreplace(heap, entry_now)
        tenant_queue.entry = ()
        del self._tenant_queues[tenant_queue.tenant]
        if not self.is_shared:
            self._heap.clear()
            for only in self._tenant_queues.values():
                only.entry = ()
        return False

    def _enter(self, bucket: FifoBucket) -> None:
        """Enter a bucket whose entry is new or has changed."""
        tenant_queue = self.tenant_queue_of(bucket)
        tenant_queue.forget_best()
        if self.order.is_fixed:
            heapq.heappush(tenant_queue.heap, bucket.entry)
            if self.is_shared:
                self._offer(tenant_queue, bucket.entry)

    def _offer(self, tenant_queue: TenantQueue, bucket_entry: HeapEntry) -> None:
        """Enter the tenant queue, whose first job is not after that entry."""
        tenant_queue.tenant_cost = self._accounts.tenant_cost(tenant_queue.tenant)
        entry = self._among_tenants(tenant_queue, bucket_entry)
        if not tenant_queue.entry or entry < tenant_queue.entry:
            tenant_queue.entry = entry
            heapq.heappush(self._heap, entry)

    def _among_tenants(self, tenant_queue: TenantQueue, bucket_entry: HeapEntry) -> HeapEntry:
        at = self.order.shares or 0
        return (*bucket_entry[:at], tenant_queue.tenant_cost, *bucket_entry[at:-1], tenant_queue)


class LaneTier:
    """The class queues of one lane and one tier, as far as the policy begins with those; otherwise one holds all.

    Owner of which of them are active, that is, have a job that no lock holds back, as far as is known. ``mask`` has the
    bits of their scheduling classes, ``rank`` is smaller the higher the tier.
    """

    __slots__ = ("_active", "_found", "lane", "mask", "rank", "tier")

    def __init__(self, lane: str | None, tier: int | None) -> None:
        self.lane = lane
        self.tier = tier
        self.rank = -(tier or 0)
        self.mask = 0
        self._active: dict[int, list[ClassQueue]] = {}
        self._found: dict[int, list[ClassQueue]] = {}

    def activate(self, class_queue: ClassQueue) -> None:
        class_queue.is_active = True
        bit = 1 << class_queue.job_class.bit
        self._active.setdefault(bit, []).append(class_queue)
        self.mask |= bit
        self._found.clear()

    def deactivate(self, class_queue: ClassQueue) -> None:
        class_queue.is_active = False
        bit = 1 << class_queue.job_class.bit
        of_class = self._active[bit]
        of_class.remove(class_queue)
        if not of_class:
            del self._active[bit]
            self.mask &= ~bit
        self._found.clear()

    def of(self, ready: int) -> list[ClassQueue]:
        """Return the active class queues of those scheduling classes."""
        wanted = self.mask & ready
        found = self._found.get(wanted)
        if found is None:
            found = [class_queue for bit, of_class in self._active.items() if wanted & bit for class_queue in of_class]
            if len(self._found) >= _FOUND_MAX:
                self._found.clear()
            self._found[wanted] = found
        return found


Origin = tuple[ClassQueue, BucketKey]


class LockWaiters:
    """Owner of the jobs that wait for locks; a job that has left the queue is dropped when it would go back."""

    def __init__(self) -> None:
        self._waiting: dict[Lock, dict[Origin, list[JobRef]]] = {}
        self._full_at: dict[tuple[Lock, Origin | None], int] = {}

    def __contains__(self, lock: Lock) -> bool:
        return lock in self._waiting

    def jobs(self) -> Iterator[tuple[Origin, list[JobRef]]]:
        """Yield all of them, by the bucket that they came from; some may have left the queue."""
        for origins in self._waiting.values():
            yield from origins.items()

    def add(self, lock: Lock, origin: Origin, job: JobRef, is_waiting: Callable[[ClassQueue, JobRef], bool]) -> None:
        origins = self._waiting.setdefault(lock, {})
        if len(origins) >= self._full_at.get((lock, None), SWEEP_MIN):
            self._sweep(lock, origins, is_waiting)
        jobs = origins.setdefault(origin, [])
        if len(jobs) >= self._full_at.get((lock, origin), SWEEP_MIN):
            jobs[:] = [known for known in jobs if is_waiting(origin[0], known)]
            self._full_at[lock, origin] = max(SWEEP_MIN, 2 * len(jobs))
        insort(jobs, job, key=arrival)

    def _sweep(
        self, lock: Lock, origins: dict[Origin, list[JobRef]], is_waiting: Callable[[ClassQueue, JobRef], bool]
    ) -> None:
        """Drop the buckets in which no job waits any more."""
        for origin, jobs in list(origins.items()):
            if not any(is_waiting(origin[0], job) for job in jobs):
                del origins[origin]
                self._full_at.pop((lock, origin), None)
        self._full_at[lock, None] = max(SWEEP_MIN, 2 * len(origins))

    def take_first(self, lock: Lock, is_waiting: Callable[[ClassQueue, JobRef], bool]) -> list[tuple[Origin, JobRef]]:
        """Remove and return the first job of each bucket that waits for this lock."""
        origins = self._waiting.pop(lock, {})
        self._full_at.pop((lock, None), None)
        found: list[tuple[Origin, JobRef]] = []
        for origin, jobs in list(origins.items()):
            waiting = next((n for n, job in enumerate(jobs) if is_waiting(origin[0], job)), None)
            if waiting is not None:
                found.append((origin, jobs[waiting]))
            del jobs[: len(jobs) if waiting is None else waiting + 1]
            if not jobs:
                del origins[origin]
                self._full_at.pop((lock, origin), None)
        if origins:
            self._waiting[lock] = origins
        return found

    def take_of_definition(self, name: str) -> list[tuple[Origin, JobRef]]:
        """Remove and return all jobs of that definition: other locks may stop them now."""
        found = []
        for lock, origins in list(self._waiting.items()):
            for origin in [origin for origin in origins if origin[0].job_class.definition.name == name]:
                found += [(origin, job) for job in origins.pop(origin)]
                self._full_at.pop((lock, origin), None)
            if not origins:
                del self._waiting[lock]
        return found

    def clear(self) -> None:
        self._waiting.clear()
        self._full_at.clear()
