"""What admission estimates in memory: jobs not counted yet, how fast queues drain, which rate buckets are empty.

`UnseenJobs` are admitted here and not counted by the core yet: between the write and its event in the stream. Jobs that
never arrive (a write that failed, a job that existed already) are forgotten after a while, but not while the stream is
silent, as nothing arrives then. `DrainRate` gives Retry-After: the jobs that left a queue are those that arrived less
its growth; it observes a queue with each submit, so an unused queue costs nothing. `EmptyBuckets` spares the database
requests that come too early: other replicas only take from a bucket as well, so it can't be refilled sooner.
"""

from collections import OrderedDict, deque
from dataclasses import dataclass, field

from hascheduler.schema.definition import RateLimit

FORGOTTEN_AFTER_MS = 10_000
"""Longer than a write may take and its event usually needs."""
_TOGETHER_MS = 100
_ENTRIES_MAX = 200


@dataclass(slots=True)
class _Entry:
    at_ms: int
    jobs: int


class UnseenJobs:
    """Owner of the jobs that this replica has admitted and its core does not count yet.

    A key is a tenant, or None for all.
    """

    def __init__(self) -> None:
        self._entries: dict[str | None, deque[_Entry]] = {}

    def count(self, key: str | None, now_ms: int, *, forgetting: bool) -> int:
        entries = self._entries.get(key)
        if entries is None:
            return 0
        while forgetting and entries and now_ms - entries[0].at_ms >= FORGOTTEN_AFTER_MS:
            entries.popleft()
        if not entries:
            del self._entries[key]
        return sum(entry.jobs for entry in entries)

    def count_newer(self, key: str | None, than_ms: int) -> int:
        """Those that were admitted after ``than_ms``."""
        return sum(entry.jobs for entry in self._entries.get(key, ()) if entry.at_ms > than_ms)

    def add(self, key: str | None, jobs: int, now_ms: int) -> None:
        entries = self._entries.setdefault(key, deque())
        # Bounded, also while the stream is silent: entries beyond the bound are merged into the last one.
        if entries and (now_ms - entries[-1].at_ms < _TOGETHER_MS or len(entries) >= _ENTRIES_MAX):
            entries[-1].jobs += jobs
        else:
            entries.append(_Entry(now_ms, jobs))

    def remove(self, key: str | None, jobs: int) -> None:
        """These jobs were not written after all."""
        self._settle(key, jobs, newest_first=True)

    def seen(self, key: str | None, jobs: int = 1) -> None:
        """The core counts so many of them from now on."""
        self._settle(key, jobs, newest_first=False)

    def _settle(self, key: str | None, jobs: int, *, newest_first: bool) -> None:
        entries = self._entries.get(key)
        while entries and jobs:
            entry = entries[-1] if newest_first else entries[0]
            settled = min(jobs, entry.jobs)
            jobs -= settled
            entry.jobs -= settled
            if entry.jobs:
                continue
            if newest_first:
                entries.pop()
            else:
                entries.popleft()
        if not entries:
            self._entries.pop(key, None)


RETRY_MIN_S = 1
RETRY_MAX_S = 60
RETRY_UNKNOWN_S = 5
"""Where there are too few observations for an estimate."""
QUEUES_MAX = 1_000
_EVERY_MS = 500
_WINDOW_MS = 20_000
_ENOUGH_MS = 1_000


@dataclass(slots=True)
class _Queue:
    arrived: int = 0
    waiting: int = 0
    observed: deque[tuple[int, int]] = field(default_factory=deque)
    """(when, how many had left by then)"""


class DrainRate:
    """Owner of a few observations of each capped queue. A key is a tenant, or None for all."""

    def __init__(self) -> None:
        self._queues: OrderedDict[str | None, _Queue] = OrderedDict()

    def arrived(self, key: str | None) -> None:
        """The core counts one more job, of any replica."""
        queue = self._queues.get(key)
        if queue is not None:
            queue.arrived += 1

    def observe(self, key: str | None, waiting: int, now_ms: int) -> None:
        queue = self._queues.setdefault(key, _Queue())
        self._queues.move_to_end(key)
        if len(self._queues) > QUEUES_MAX:
            self._queues.popitem(last=False)
        queue.waiting = waiting
        if not queue.observed or now_ms - queue.observed[-1][0] >= _EVERY_MS:
            queue.observed.append((now_ms, queue.arrived - waiting))
        while now_ms - queue.observed[0][0] > _WINDOW_MS:
            queue.observed.popleft()

    def last_known(self, key: str | None) -> int:
        """How many jobs were pending when it was last observed."""
        queue = self._queues.get(key)
        return 0 if queue is None else queue.waiting

    def forget(self) -> None:
        """Drop the observations: the core may have started over, so its counts can't be compared with earlier ones."""
        for queue in self._queues.values():
            queue.observed.clear()

    def retry_after_s(self, key: str | None, jobs: int, now_ms: int) -> int:
        """In how many seconds so many jobs will have left, at the rate of the last seconds."""
        queue = self._queues.get(key)
        if queue is None or not queue.observed:
            return RETRY_UNKNOWN_S
        since_ms, left_before = queue.observed[0]
        span_ms = now_ms - since_ms
        if span_ms < _ENOUGH_MS:
            return RETRY_UNKNOWN_S
        left = queue.arrived - queue.waiting - left_before
        if left <= 0:
            return RETRY_MAX_S
        return min(max(-(-jobs * span_ms // (left * 1_000)), RETRY_MIN_S), RETRY_MAX_S)


BUCKETS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class _Empty:
    limit: RateLimit
    jobs: int
    until_ms: int


class EmptyBuckets:
    """Owner of the buckets that are known to be empty, and until when."""

    def __init__(self) -> None:
        self._of: OrderedDict[str, _Empty] = OrderedDict()

    def found(self, tenant: str, limit: RateLimit, jobs: int, until_ms: int) -> None:
        """The bucket does not hold so many tokens before ``until_ms``."""
        self._of[tenant] = _Empty(limit, jobs, until_ms)
        self._of.move_to_end(tenant)
        if len(self._of) > BUCKETS_MAX:
            self._of.popitem(last=False)

    def wait_ms(self, tenant: str, limit: RateLimit, jobs: int, now_ms: int) -> int:
        """How long the bucket surely holds fewer tokens; 0: unknown."""
        empty = self._of.get(tenant)
        if empty is None or empty.limit != limit or jobs < empty.jobs:
            return 0
        return max(0, empty.until_ms - now_ms)
