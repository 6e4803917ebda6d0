"""The locks: which jobs exclude each other, by conflict group and target, serial schedule, or limit per key.

A conflict group belongs to each tenant by itself if its definitions say so. One group may have definitions of both
scopes: shared jobs exclude, and are excluded by, the jobs of all tenants.

A job waits while another one holds a *lock* that it wants. It holds its own locks while it holds a slot; its conflict
group is the one that the definition had when the job took it. A serial job waits for the lock that every job of its
schedule holds, so that it runs alone among them; several others of that schedule may hold it together.

A limit per key is a lock too, of all jobs of one definition and tenant with one value at the key: it has as many
holders as the limit allows, and counts as held while its rate limit has no token. A job holds those of all keys that it
has a value for, so that it counts if a limit comes, or changes, while it runs. If a new leader has yet to read the
values of a job that holds a slot, the jobs of its definition and tenant with limited keys wait for that.

A schedule is its name and its creation (see `ScheduleId`), so the jobs of a deleted one do not block those of another.
Jobs of 0.2.0 have no creation: they and all jobs of that name and tenant wait for each other.
"""

from collections.abc import Iterable

from hascheduler.dispatch.capacity.rate_limits import KeyGroup, KeyRates, groups_of
from hascheduler.dispatch.rules import Rules
from hascheduler.model.job import JobRef, ScheduleId
from hascheduler.schema.definition import ConflictScope

Lock = tuple[str, ...]
"""A lock, in one of these forms.

``("conflict", group, target)``, which all jobs of the group hold; besides it ``("conflict shared", …)`` or
``("conflict of <tenant>", …)``, by their scope; or ``("serial", schedule, which jobs of that name)``; or a `KeyGroup`;
or ``("keys unread", definition, tenant)``.
"""
Locks = tuple[Lock, ...]
_NONE: Locks = ()


class LockTable:
    """Owner of the holders of each lock."""

    def __init__(self, rules: Rules, key_rates: KeyRates) -> None:
        self._rules = rules
        self._key_rates = key_rates
        self._holders: dict[Lock, dict[str, None]] = {}

    def wanted(self, job: JobRef) -> Locks:
        """Return the locks that must be free for the job to start."""
        locks = self._conflict_wanted(job)
        if job.limit_keys:
            locks = (*locks, *self._keys_wanted(job))
        return (*locks, *_waited_for(job.made_by)) if job.serial else locks

    def taken(self, job: JobRef) -> Locks:
        """Return the locks that it holds once it has started."""
        return (*self._conflict_taken(job), *_keys_taken(job), *_held_by_jobs_of(job.made_by))

    def take(self, job_id: str, locks: Iterable[Lock]) -> None:
        for lock in locks:
            self._holders.setdefault(lock, {})[job_id] = None

    def give_back(self, job_id: str, locks: Iterable[Lock]) -> list[Lock]:
        """Release ``locks``, and return those that are free now."""
        freed = []
        for lock in locks:
            holders = self._holders[lock]
            del holders[job_id]
            if not holders:
                del self._holders[lock]
            if not self.is_held(lock):
                freed.append(lock)
        return freed

    def is_held(self, lock: Lock) -> bool:
        """Return True if a job that wants it has to wait."""
        if lock[0] == "key":
            return self.is_full(lock) or self._key_rates.dry_until(lock) is not None
        return lock in self._holders

    def is_full(self, group: KeyGroup) -> bool:
        """Return True if the group's limit of running jobs is reached."""
        limit = self._rules.definition(group[1]).key_limit(group[3])
        if limit is None or limit.max_concurrency is None:
            return False
        return len(self._holders.get(group, ())) >= limit.max_concurrency

    def holders(self, lock: Lock) -> list[str]:
        """Return the ids of the jobs that hold it, in the order in which they took it."""
        return list(self._holders.get(lock, ()))

    def held_of(self, job: JobRef) -> Lock | None:
        """Return the first lock the job wants and can't have now, or None."""
        for lock in self.wanted(job):
            if self.is_held(lock):
                return lock
        return None

    def _keys_wanted(self, job: JobRef) -> Locks:
        limited = self._rules.definition(job.definition).keyed_by
        if not limited:
            return _NONE
        unread = ("keys unread", job.definition, job.tenant)
        return (unread, *(group for group in groups_of(job) if group[3] in limited))

    def _conflict_wanted(self, job: JobRef) -> Locks:
        """Return the conflict locks that must be free for the job.

        A job with a shared definition waits for all of its group, any other job for those of its tenant and the shared
        ones.
        """
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


def _keys_taken(job: JobRef) -> Locks:
    return (("keys unread", job.definition, job.tenant),) if job.limit_keys is None else tuple(groups_of(job))


def _waited_for(schedule: ScheduleId | None) -> Locks:
    match schedule:
        case None:
            return _NONE
        case ScheduleId(name, tenant, None):
            return (("serial", name, f"any of {tenant}"),)
        case ScheduleId(name, tenant, created_at_ms):
            return (("serial", name, f"{created_at_ms}"), ("serial", name, f"unknown of {tenant}"))


def _held_by_jobs_of(schedule: ScheduleId | None) -> Locks:
    match schedule:
        case None:
            return _NONE
        case ScheduleId(name, tenant, created_at_ms):
            which = f"unknown of {tenant}" if created_at_ms is None else f"{created_at_ms}"
            return (("serial", name, which), ("serial", name, f"any of {tenant}"))
