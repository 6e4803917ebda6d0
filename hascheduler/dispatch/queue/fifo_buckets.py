"""Waiting jobs that differ by age alone: first in, first out, whatever the policy. Only the first one competes.

A job that leaves the queue stays in its place as a tombstone, which is dropped at the front, or swept out before the
tombstones outnumber the jobs that wait.
"""

from bisect import insort
from collections.abc import Callable

from hascheduler.model.job import JobRef

Arrival = tuple[int, int, str]
BucketKey = tuple[str | None, str | None, int, int | None]
SWEEP_MIN = 64


def arrival(job: JobRef) -> Arrival:
    return (job.submitted_at_ms, job.sequence, job.id)


class FifoBucket:
    """``key``: tenant, fairness key, priority and deadline; None for what the policy does not compare.

    ``entry`` stands for it in the heap of its tenant queue: at or before the place of its first job.
    """

    __slots__ = ("_full_at", "_jobs", "_start", "entry", "key")

    def __init__(self, key: BucketKey) -> None:
        self.key = key
        self.entry: tuple[object, ...] = ()
        self._jobs: list[JobRef] = []
        self._start = 0
        self._full_at = SWEEP_MIN

    def __lt__(self, other: object) -> bool:
        return False  # the end of a tuple whose parts before it are the same: an old entry and its successor

    def put(self, job: JobRef) -> bool:
        """Add the job; whether it is the first now."""
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
        """The job at the front, a tombstone or not."""
        return self._jobs[self._start] if self._start < len(self._jobs) else None

    def drop(self) -> None:
        """Remove the first."""
        self._start += 1
        if self._start > 32 and self._start * 2 > len(self._jobs):
            del self._jobs[: self._start]
            self._start = 0

    @property
    def is_full(self) -> bool:
        """Whether it is time to `sweep`."""
        return len(self._jobs) >= self._full_at

    def sweep(self, is_waiting: Callable[[JobRef], bool]) -> int:
        """Drop the tombstones; the number of jobs left."""
        self._jobs[:] = [job for job in self._jobs[self._start :] if is_waiting(job)]
        self._start = 0
        self._full_at = max(SWEEP_MIN, 2 * len(self._jobs))
        return len(self._jobs)

    def jobs(self) -> list[JobRef]:
        """All of them, the oldest first, tombstones included."""
        return self._jobs[self._start :]
