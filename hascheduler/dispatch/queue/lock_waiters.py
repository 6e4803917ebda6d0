"""Waiting jobs that somebody's lock holds back, off the hot path until it is free.

They are kept by the lock that stopped them, and by the cell that they came from, oldest first. When the lock is free
only the first of each cell goes back: it is the one that goes before the others of its cell in any case.
"""

from bisect import insort
from collections.abc import Callable, Iterator

from hascheduler.dispatch.capacity.locks import Lock
from hascheduler.dispatch.queue.class_queues import ClassQueue
from hascheduler.dispatch.queue.fifo_buckets import SWEEP_MIN, BucketKey, arrival
from hascheduler.model.job import JobRef

Origin = tuple[ClassQueue, BucketKey]


class LockWaiters:
    """Owner of the parked jobs; those that have left the line are dropped when they would go back."""

    def __init__(self) -> None:
        self._parked: dict[Lock, dict[Origin, list[JobRef]]] = {}
        self._full_at: dict[tuple[Lock, Origin | None], int] = {}

    def __contains__(self, lock: Lock) -> bool:
        return lock in self._parked

    def jobs(self) -> Iterator[tuple[Origin, list[JobRef]]]:
        """All that are parked, by where they came from; some may have left the line."""
        return (each for origins in self._parked.values() for each in origins.items())

    def park(self, lock: Lock, origin: Origin, job: JobRef, is_waiting: Callable[[ClassQueue, JobRef], bool]) -> None:
        origins = self._parked.setdefault(lock, {})
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
        """Drop the cells of which nobody waits any more."""
        for origin, jobs in list(origins.items()):
            if not any(is_waiting(origin[0], job) for job in jobs):
                del origins[origin]
                self._full_at.pop((lock, origin), None)
        self._full_at[lock, None] = max(SWEEP_MIN, 2 * len(origins))

    def take_first(self, lock: Lock, is_waiting: Callable[[ClassQueue, JobRef], bool]) -> list[tuple[Origin, JobRef]]:
        """The first of each cell that waits for this lock."""
        origins = self._parked.pop(lock, {})
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
            self._parked[lock] = origins
        return found

    def take_of_definition(self, name: str) -> list[tuple[Origin, JobRef]]:
        """All jobs of that definition: other locks may stop them now."""
        found = []
        for lock, origins in list(self._parked.items()):
            for origin in [origin for origin in origins if origin[0].job_class.definition.name == name]:
                found += [(origin, job) for job in origins.pop(origin)]
                self._full_at.pop((lock, origin), None)
            if not origins:
                del self._parked[lock]
        return found

    def clear(self) -> None:
        self._parked.clear()
        self._full_at.clear()
