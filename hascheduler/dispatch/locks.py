"""Which jobs exclude each other: those of one conflict group on one target, and the serial jobs of a schedule.

A conflict group is each tenant's own where its definitions say so. One group may have definitions of both scopes: what
is shared excludes, and is excluded by, the jobs of all tenants.

A *lock* is what at most one of them may hold. A job holds its locks while it holds a slot; a conflict group is the one
that the definition had when the job took it. A serial job waits for the lock that every job of its schedule holds, so
that it runs alone among them; several others of that schedule may hold it together.
"""

from collections.abc import Iterable

from hascheduler.dispatch.rules import Rules
from hascheduler.model.definition import ConflictScope
from hascheduler.model.job import JobRef, schedule_of

Lock = tuple[str, str, str]
"""``("conflict", group, target)``, which all jobs of the group hold; beside it ``("conflict shared", …)`` or
``("conflict of <tenant>", …)``, by their scope; or ``("serial", schedule, "")``."""
Locks = tuple[Lock, ...]
_NONE: Locks = ()


class LockTable:
    """Owner of who holds what."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._holders: dict[Lock, dict[str, None]] = {}

    def wanted(self, job: JobRef) -> Locks:
        """The locks that must be free for the job to start."""
        conflict = self._conflict_wanted(job)
        return (*conflict, *_serial(job)) if job.serial else conflict

    def taken(self, job: JobRef) -> Locks:
        """The locks that it holds once it has started."""
        return (*self._conflict_taken(job), *_serial(job))

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

    def _conflict_wanted(self, job: JobRef) -> Locks:
        """A job whose definition is shared waits for all of its group, any other for those of its tenant and for those
        that are shared."""
        definition = self._rules.definition(job.definition)
        group, target = definition.conflict_group, job.target
        if group is None:
            return _NONE
        if definition.conflict_scope is ConflictScope.SHARED:
            return (("conflict", group, target),)
        return ((f"conflict of {job.tenant}", group, target), ("conflict shared", group, target))

    def _conflict_taken(self, job: JobRef) -> Locks:
        definition = self._rules.definition(job.definition)
        group, target = definition.conflict_group, job.target
        if group is None:
            return _NONE
        is_shared = definition.conflict_scope is ConflictScope.SHARED
        own = "conflict shared" if is_shared else f"conflict of {job.tenant}"
        return (("conflict", group, target), (own, group, target))


def _serial(job: JobRef) -> Locks:
    schedule = schedule_of(job.id)
    return _NONE if schedule is None else (("serial", schedule, ""),)
