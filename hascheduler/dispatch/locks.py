"""Which jobs exclude each other: those of one conflict group on one target, and the serial jobs of a schedule.

A *lock* is what at most one of them may hold. A job holds its locks while it holds a slot; a conflict group is the one
that the definition had when the job took it. A serial job waits for the lock that every job of its schedule holds, so
that it runs alone among them; several others of that schedule may hold it together.
"""

from collections.abc import Iterable

from hascheduler.dispatch.rules import Rules
from hascheduler.model.job import JobRef, schedule_of

Lock = tuple[str, str, str]
"""``("conflict", group, target)`` or ``("serial", schedule, "")``."""
Locks = tuple[Lock, ...]
_NONE: Locks = ()


class LockTable:
    """Owner of who holds what."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._holders: dict[Lock, dict[str, None]] = {}

    def wanted(self, job: JobRef) -> Locks:
        """The locks that must be free for the job to start."""
        return self.taken(job) if job.serial else self._conflict(job)

    def taken(self, job: JobRef) -> Locks:
        """The locks that it holds once it has started."""
        return (*self._conflict(job), *_serial(job))

    def take(self, job_id: str, locks: Iterable[Lock]) -> None:
        for lock in locks:
            self._holders.setdefault(lock, {})[job_id] = None

    def give_back(self, job_id: str, locks: Iterable[Lock]) -> list[Lock]:
        """Those of ``locks`` that nobody holds any more."""
        freed = []
        for lock in locks:
            holders = self._holders[lock]
            del holders[job_id]
            if not holders:
                del self._holders[lock]
                freed.append(lock)
        return freed

    def is_held(self, lock: Lock) -> bool:
        return lock in self._holders

    def holders(self, lock: Lock) -> list[str]:
        """The ids of the jobs that hold it, the first that took it first."""
        return list(self._holders.get(lock, ()))

    def held_of(self, job: JobRef) -> Lock | None:
        """The first of its locks that somebody holds."""
        for lock in self.wanted(job):
            if lock in self._holders:
                return lock
        return None

    def _conflict(self, job: JobRef) -> Locks:
        group = self._rules.definition(job.definition).conflict_group
        return _NONE if group is None else (("conflict", group, job.target),)


def _serial(job: JobRef) -> Locks:
    schedule = schedule_of(job.id)
    return _NONE if schedule is None else (("serial", schedule, ""),)
