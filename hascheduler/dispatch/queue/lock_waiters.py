"""Waiting jobs that a lock holds back (a conflict group, a limit per key), off the hot path until the lock is free.

They are kept by the lock that stopped them, and by the bucket that they came from, oldest first. When the lock is free
only the first of each bucket goes back: it goes before the others of its bucket in any case.
"""

from bisect import insort
from collections.abc import Callable, Iterator

from hascheduler.dispatch.capacity.locks import Lock
from hascheduler.dispatch.queue.class_queues import ClassQueue
from hascheduler.dispatch.queue.fifo_buckets import SWEEP_MIN, BucketKey, arrival
from hascheduler.model.job import JobRef

Origin = tuple[ClassQueue, BucketKey]


class LockWaiters:
    """Owner of the jobs that wait for locks; a job that has left the queue is dropped when it would go back."""

    def __init__(self) -> None:
        self._waiting: dict[Lock, dict[Origin, list[JobRef]]] = {}
        self._full_at: dict[tuple[Lock, Origin | None], int] = {}

    def __contains__(self, lock: Lock) -> bool:
        return lock in self._waiting

    def jobs(self) -> Iterator[tuple[Origin, list[JobRef]]]:
        """All of them, by the bucket that they came from; some may have left the queue."""
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
        """Drop the buckets of which no job waits any more."""
        for origin, jobs in list(origins.items()):
            if not any(is_waiting(origin[0], job) for job in jobs):
                del origins[origin]
                self._full_at.pop((lock, origin), None)
        self._full_at[lock, None] = max(SWEEP_MIN, 2 * len(origins))

    def take_first(self, lock: Lock, is_waiting: Callable[[ClassQueue, JobRef], bool]) -> list[tuple[Origin, JobRef]]:
        """Remove and give the first job of each bucket that waits for this lock."""
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
        """Remove and give all jobs of that definition: other locks may stop them now."""
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
