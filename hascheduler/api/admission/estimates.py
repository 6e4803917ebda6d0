"""What this replica has let in and its core does not count yet: between the write and its echo in the stream.

Owner of that account, in all and for each tenant that has a cap. What never comes back (a write that failed, a job
that was there already) is forgotten after a while; only not while the stream is silent, as nothing comes back then.
"""

from collections import OrderedDict, deque
from dataclasses import dataclass, field

from hascheduler.model.definition import RateLimit

FORGOTTEN_AFTER_MS = 10_000
"""Longer than a write may take and its echo usually does."""
_TOGETHER_MS = 100
_ENTRIES_MAX = 200


@dataclass(slots=True)
class _Entry:
    at_ms: int
    jobs: int


class UnseenJobs:
    """Everything goes by key: a tenant, or None for all of the shard."""

    def __init__(self) -> None:
        self._entries: dict[str | None, deque[_Entry]] = {}

    def unseen(self, key: str | None, now_ms: int, *, forgetting: bool) -> int:
        entries = self._entries.get(key)
        if entries is None:
            return 0
        while forgetting and entries and now_ms - entries[0].at_ms >= FORGOTTEN_AFTER_MS:
            entries.popleft()
        if not entries:
            del self._entries[key]
        return sum(entry.jobs for entry in entries)

    def let_in(self, key: str | None, jobs: int, now_ms: int) -> None:
        entries = self._entries.setdefault(key, deque())
        # A silent stream must not make this grow: what comes beyond the bound is forgotten with the last.
        if entries and (now_ms - entries[-1].at_ms < _TOGETHER_MS or len(entries) >= _ENTRIES_MAX):
            entries[-1].jobs += jobs
        else:
            entries.append(_Entry(now_ms, jobs))

    def take_back(self, key: str | None, jobs: int) -> None:
        """They were not written after all."""
        self._settle(key, jobs, newest_first=True)

    def came_back(self, key: str | None) -> None:
        """The core counts one of them now."""
        self._settle(key, 1, newest_first=False)

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
"""Where nothing has been observed for long enough to tell."""
QUEUES_MAX = 1_000
_EVERY_MS = 500
_WINDOW_MS = 20_000
_ENOUGH_MS = 1_000


@dataclass(slots=True)
class _Queue:
    came: int = 0
    waiting: int = 0
    observed: deque[tuple[int, int]] = field(default_factory=deque)
    """(when, how many had left by then)"""


class DrainRate:
    """Everything goes by key: a tenant, or None for all of the shard."""

    def __init__(self) -> None:
        self._queues: OrderedDict[str | None, _Queue] = OrderedDict()

    def came(self, key: str | None) -> None:
        """The core counts one more, from whichever replica."""
        queue = self._queues.get(key)
        if queue is not None:
            queue.came += 1

    def observe(self, key: str | None, waiting: int, now_ms: int) -> None:
        queue = self._queues.setdefault(key, _Queue())
        self._queues.move_to_end(key)
        if len(self._queues) > QUEUES_MAX:
            self._queues.popitem(last=False)
        queue.waiting = waiting
        if not queue.observed or now_ms - queue.observed[-1][0] >= _EVERY_MS:
            queue.observed.append((now_ms, queue.came - waiting))
        while now_ms - queue.observed[0][0] > _WINDOW_MS:
            queue.observed.popleft()

    def last_known(self, key: str | None) -> int:
        """How many waited when it was last observed."""
        queue = self._queues.get(key)
        return 0 if queue is None else queue.waiting

    def forget(self) -> None:
        """What the core counts can't be compared with what it counted: it may have begun anew."""
        for queue in self._queues.values():
            queue.observed.clear()

    def retry_after_s(self, key: str | None, jobs: int, now_ms: int) -> int:
        """When so many will have left, if they go on leaving as in the last seconds."""
        queue = self._queues.get(key)
        if queue is None or not queue.observed:
            return RETRY_UNKNOWN_S
        since_ms, left_before = queue.observed[0]
        span_ms = now_ms - since_ms
        if span_ms < _ENOUGH_MS:
            return RETRY_UNKNOWN_S
        left = queue.came - queue.waiting - left_before
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
    def __init__(self) -> None:
        self._of: OrderedDict[str, _Empty] = OrderedDict()

    def found(self, tenant: str, limit: RateLimit, jobs: int, until_ms: int) -> None:
        """It does not hold so many before then."""
        self._of[tenant] = _Empty(limit, jobs, until_ms)
        self._of.move_to_end(tenant)
        if len(self._of) > BUCKETS_MAX:
            self._of.popitem(last=False)

    def wait_ms(self, tenant: str, limit: RateLimit, jobs: int, now_ms: int) -> int:
        """How long it surely holds less than so many; 0: who knows."""
        empty = self._of.get(tenant)
        if empty is None or empty.limit != limit or jobs < empty.jobs:
            return 0
        return max(0, empty.until_ms - now_ms)
