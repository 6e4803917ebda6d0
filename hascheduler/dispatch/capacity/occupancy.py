"""All that a job holds while it has a slot: resources, locks, and its part of caps, quotas and lane shares."""

from collections.abc import Sequence
from typing import NamedTuple

from hascheduler.dispatch.capacity.admission_limits import AdmissionLimits
from hascheduler.dispatch.capacity.dominant_share import LaneShares
from hascheduler.dispatch.capacity.locks import Lock, Locks, LockTable
from hascheduler.dispatch.capacity.slot_pool import SlotPool
from hascheduler.dispatch.rules import Rules
from hascheduler.model.job import JobRef
from hascheduler.model.resources import Resources


class _Held(NamedTuple):
    """What a job took; it gives back the same, even if the rules have changed."""

    definition: str
    tenant: str
    lane: str
    needs: Resources
    locks: Locks
    is_unread: bool
    """True if its keys are not known yet, so it holds another lock instead."""


class Occupancy:
    """Owner of what each job holds; the pool, the limits, the lane shares and the locks count it."""

    def __init__(
        self, rules: Rules, pool: SlotPool, limits: AdmissionLimits, shares: LaneShares, locks: LockTable
    ) -> None:
        self._rules = rules
        self._pool = pool
        self._limits = limits
        self._shares = shares
        self._locks = locks
        self._held: dict[str, _Held] = {}

    def take(self, job: JobRef, processor_id: str) -> Sequence[Lock]:
        """Give the job a slot of that processor, and what goes with it; it gives up any other slot.

        Return the locks that are free now because the job's keys have become known.
        """
        held = self._held.get(job.id)
        freed: Sequence[Lock] = ()
        if held is None:
            needs = self._rules.definition(job.definition).needs(job.resources)
            held = _Held(
                job.definition, job.tenant, job.lane, needs, self._locks.taken(job), is_unread=job.limit_keys is None
            )
            self._held[job.id] = held
            self._limits.take(held.definition, held.tenant)
            self._shares.take(held.lane, held.needs)
            self._locks.take(job.id, held.locks)
        elif held.is_unread and job.limit_keys is not None:
            before, held = held, held._replace(locks=self._locks.taken(job), is_unread=False)
            self._held[job.id] = held
            self._locks.take(job.id, held.locks)
            freed = self._locks.give_back(job.id, (lock for lock in before.locks if lock not in held.locks))
        self._pool.occupy(job.id, processor_id, held.needs)
        return freed

    def release(self, job_id: str) -> Sequence[Lock]:
        """Give back all that the job holds, and return the locks that are free now."""
        held = self._held.pop(job_id, None)
        if held is None:
            return ()
        self._pool.release(job_id)
        self._limits.give_back(held.definition, held.tenant)
        self._shares.give_back(held.lane, held.needs)
        return self._locks.give_back(job_id, held.locks)
