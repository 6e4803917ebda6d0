"""The estimates of admission, in memory: jobs not counted yet, how fast queues drain.

`UnseenJobs` are admitted here and not counted by the core yet: between the write and its event in the stream. Jobs that
never arrive (a failed write, a job that existed already) are forgotten after a while, but not while the stream is
silent, as nothing arrives then. `DrainRate` gives Retry-After: the jobs that left a queue are the arrivals less the
queue's growth; it observes a queue with each submit, so an unused queue costs nothing.
"""

from collections import OrderedDict, deque
from collections.abc import Sequence
from math import ceil

FORGOTTEN_AFTER_MS = 10_000
"""Longer than a write may take and its event usually needs."""
_TOGETHER_MS = 100
_ENTRIES_MAX = 200


class UnseenJobs:
    """Owner of the jobs that this replica has admitted and its core does not count yet.

    A key is a tenant, or None for all.
    """

    def __init__(self) -> None:
        self._entries: dict[str | None, deque[list[int]]] = {}
        """The pairs (when, how many) of each key, oldest first."""

    def count(self, key: str | None, now_ms: int, *, forgetting: bool) -> int:
        entries = self._entries.get(key, deque())
        while forgetting and entries and now_ms - entries[0][0] >= FORGOTTEN_AFTER_MS:
            entries.popleft()
        if not entries:
            self._entries.pop(key, None)
        return sum(jobs for _, jobs in entries)

    def count_newer(self, key: str | None, than_ms: int) -> int:
        """Return how many were admitted after ``than_ms``."""
        return sum(jobs for at_ms, jobs in self._entries.get(key, ()) if at_ms > than_ms)

    def add(self, key: str | None, jobs: int, now_ms: int) -> None:
        entries = self._entries.setdefault(key, deque())
        # Bounded even while the stream is silent: entries beyond the bound are merged into the last one.
        if entries and (now_ms - entries[-1][0] < _TOGETHER_MS or len(entries) >= _ENTRIES_MAX):
            entries[-1][1] += jobs
        else:
            entries.append([now_ms, jobs])

    def settle(self, key: str | None, jobs: int = 1, *, newest: bool = False) -> None:
        """Remove jobs that the core now counts or, if ``newest``, jobs that were not written after all."""
        entries = self._entries.get(key)
        while entries and jobs:
            entry = entries[-1 if newest else 0]
            settled = min(jobs, entry[1])
            jobs -= settled
            entry[1] -= settled
            if not entry[1]:
                del entries[-1 if newest else 0]
        if not entries:
            self._entries.pop(key, None)


_EVERY_MS = 500
_ENOUGH_MS = 1_000


class Observed:
    """Counters as sampled twice a second over the last ``window_ms``."""

    def __init__(self, window_ms: int) -> None:
        self._window_ms = window_ms
        self._seen: deque[tuple[int, Sequence[int]]] = deque()

    def add(self, now_ms: int, counts: Sequence[int]) -> int | None:
        """Return the time since the previous sample, 0 for the first; None if that is too recent for another one."""
        elapsed_ms = now_ms - self._seen[-1][0] if self._seen else None
        if elapsed_ms is not None and elapsed_ms < _EVERY_MS:
            return None
        self._seen.append((now_ms, counts))
        while now_ms - self._seen[0][0] > self._window_ms:
            self._seen.popleft()
        return elapsed_ms or 0

    def per_s(self, count: int, lately_ms: int | None = None) -> float | None:
        """Return how fast one counter grows, over the window or a shorter one; None before a second of samples."""
        if not self._seen:
            return None
        now_ms, counts = self._seen[-1]
        since = self._seen[0]
        if lately_ms is not None:
            since = next((each for each in reversed(self._seen) if now_ms - each[0] >= lately_ms), since)
        span_ms = now_ms - since[0]
        return None if span_ms < _ENOUGH_MS else (counts[count] - since[1][count]) * 1_000 / span_ms

    def clear(self) -> None:
        self._seen.clear()


RETRY_MIN_S = 1
RETRY_MAX_S = 60
RETRY_UNKNOWN_S = 5
"""Retry-After if there are too few observations for an estimate."""
QUEUES_MAX = 1_000
_WINDOW_MS = 20_000


class _Queue:
    def __init__(self) -> None:
        self.arrived = 0
        self.waiting = 0
        self.left = Observed(_WINDOW_MS)


class DrainRate:
    """Owner of a few observations of each capped queue. A key is a tenant, or None for all."""

    def __init__(self) -> None:
        self._queues: OrderedDict[str | None, _Queue] = OrderedDict()

    def arrived(self, key: str | None) -> None:
        """Count one more job of the core, admitted by any replica."""
        queue = self._queues.get(key)
        if queue is not None:
            queue.arrived += 1

    def observe(self, key: str | None, waiting: int, now_ms: int) -> None:
        queue = self._queues.setdefault(key, _Queue())
        self._queues.move_to_end(key)
        if len(self._queues) > QUEUES_MAX:
            self._queues.popitem(last=False)
        queue.waiting = waiting
        queue.left.add(now_ms, (queue.arrived - waiting,))

    def last_known(self, key: str | None) -> int:
        """Return how many jobs were pending at the last observation."""
        queue = self._queues.get(key)
        return 0 if queue is None else queue.waiting

    def forget(self) -> None:
        """Drop the observations: the core may have started over, so its counts can't be compared with earlier ones."""
        for queue in self._queues.values():
            queue.left.clear()

    def retry_after_s(self, key: str | None, jobs: int) -> int:
        """Return in how many seconds that many jobs will have left, at the rate of the last seconds."""
        queue = self._queues.get(key)
        left_per_s = None if queue is None else queue.left.per_s(0)
        if left_per_s is None:
            return RETRY_UNKNOWN_S
        if left_per_s * RETRY_MAX_S <= jobs:
            return RETRY_MAX_S
        return max(ceil(jobs / left_per_s), RETRY_MIN_S)
