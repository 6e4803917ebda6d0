"""Waiting jobs that differ only by age: first in, first out, whatever the policy. Only the first one competes.

A job that leaves the queue stays in its place as a tombstone, which is dropped at the front, or swept out before the
tombstones outnumber the jobs that wait.

`OldestWaits` keeps since when the waiting jobs of each lane could have run: to the second, so that a million jobs cost
little. A job is due from its submission, its ``not_before`` or the end of its backoff, whichever comes last; a job that
depended on others is due from the end of the last of those, as this replica saw it.
"""

import heapq
from bisect import insort
from collections.abc import Callable, Mapping

from hascheduler.model.job import JobRef

Arrival = tuple[int, int, str]
BucketKey = tuple[str | None, str | None, int, tuple[object, ...] | None]
SWEEP_MIN = 64


def arrival(job: JobRef) -> Arrival:
    return (job.submitted_at_ms, job.sequence, job.id)


class FifoBucket:
    """The jobs of one ``key``: tenant, fairness key, priority, and what else the policy tells jobs apart by.

    Parts that the policy does not use are None. ``entry`` stands for it in the heap of its tenant queue: at or before
    the place of its first job.
    """

    __slots__ = ("_full_at", "_jobs", "_start", "entry", "key")

    def __init__(self, key: BucketKey) -> None:
        self.key = key
        self.entry: tuple[object, ...] = ()
        self._jobs: list[JobRef] = []
        self._start = 0
        self._full_at = SWEEP_MIN

    def __lt__(self, other: object) -> bool:
        return False  # compared if the rest of the tuple is equal: an old entry and its successor

    def put(self, job: JobRef) -> bool:
        """Add the job; return True if it is the first now."""
        jobs = self._jobs
        if not jobs or self._start == len(jobs):
            jobs[:] = [job]
            self._start = 0
            return True
        if arrival(jobs[-1]) <= arrival(job):
            jobs.append(job)
            return False
        if self._start and arrival(job) < arrival(jobs[self._start]):
            self._start -= 1
            jobs[self._start] = job
            return True
        insort(jobs, job, lo=self._start, key=arrival)
        return jobs[self._start] is job

    @property
    def first(self) -> JobRef | None:
        """Return the job at the front, even if it is a tombstone; None if the bucket is empty."""
        return self._jobs[self._start] if self._start < len(self._jobs) else None

    def drop(self) -> None:
        """Remove the first job."""
        self._start += 1
        if self._start > 32 and self._start * 2 > len(self._jobs):
            del self._jobs[: self._start]
            self._start = 0

    @property
    def is_full(self) -> bool:
        """Return True if it is time to `sweep`."""
        return len(self._jobs) >= self._full_at

    def sweep(self, is_waiting: Callable[[JobRef], bool]) -> int:
        """Drop the tombstones; return the number of jobs left."""
        self._jobs[:] = [job for job in self._jobs[self._start :] if is_waiting(job)]
        self._start = 0
        self._full_at = max(SWEEP_MIN, 2 * len(self._jobs))
        return len(self._jobs)

    def jobs(self) -> list[JobRef]:
        """Return all jobs, the oldest first, tombstones included."""
        return self._jobs[self._start :]


class OldestWaits:
    """Owner of how many jobs of each lane are due since each second."""

    def __init__(self) -> None:
        self._lanes: dict[str, _Seconds] = {}
        self._freed: dict[str, int] = {}

    def freed(self, job_id: str, now: int) -> None:
        """Record that the job's dependencies have ended; call it before the job `began` to wait for its turn."""
        self._freed[job_id] = now

    def forget(self, job_id: str) -> None:
        """Forget a job that is gone and has `ended` its wait."""
        self._freed.pop(job_id, None)

    def began(self, job: JobRef) -> None:
        lane = self._lanes.get(job.lane)
        if lane is None:
            lane = self._lanes[job.lane] = _Seconds()
        lane.add(self._since(job) // 1_000)

    def ended(self, job: JobRef) -> None:
        """Remove a job that left the queue, given as it was when it `began`."""
        lane = self._lanes[job.lane]
        lane.remove(self._since(job) // 1_000)
        if not lane.counts:
            del self._lanes[job.lane]

    def oldest(self) -> Mapping[str, int]:
        """Return, by lane, the instant since which its oldest job waits, in ms, rounded down to a second."""
        return {name: lane.first() * 1_000 for name, lane in self._lanes.items()}

    def _since(self, job: JobRef) -> int:
        return max(job.submitted_at_ms, job.not_before_ms or 0, job.retry_at_ms or 0, self._freed.get(job.id, 0))


class _Seconds:
    """A multiset of seconds that knows its least: a heap whose outdated entries are skipped, and swept out."""

    __slots__ = ("_heap", "counts")

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        self._heap: list[int] = []

    def add(self, second: int) -> None:
        known = self.counts.get(second, 0)
        self.counts[second] = known + 1
        if not known:
            heapq.heappush(self._heap, second)
            if len(self._heap) > SWEEP_MIN and len(self._heap) > 2 * len(self.counts):
                self._heap = sorted(self.counts)

    def remove(self, second: int) -> None:
        left = self.counts[second] - 1
        if left:
            self.counts[second] = left
        else:
            del self.counts[second]

    def first(self) -> int:
        while self._heap[0] not in self.counts:
            heapq.heappop(self._heap)
        return self._heap[0]
