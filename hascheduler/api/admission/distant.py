"""Admission to a shard that this replica does not follow: what the database tells, and what the shard's leader said.

The rate of a tenant is exact, as everywhere: all replicas take from one bucket. The pending jobs of a tenant with a
limit are counted in the database, up to that limit: several requests at once may together exceed it by what they write
in those milliseconds. How many jobs wait in all, and how late the leader is, is in the leader's last heartbeat: what
was let in here since is added. Where the leader is late and jobs wait for slots, submits are refused until it says
otherwise: which tenant gets what is left is decided where the shard is followed. A replica that has never had the
home's mirror complete does not know the limits of tenants, and admits nothing.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from hascheduler.api.admission.control import (
    OVERLOAD,
    never,
    never_depends,
    starting,
    too_fast,
    too_many_dependencies,
)
from hascheduler.api.admission.intake import QUEUE_JOBS, is_late
from hascheduler.errors import Overloaded, TooMany
from hascheduler.model.job import JobState
from hascheduler.model.tenant import Tenant
from hascheduler.ports import BucketStore, Clock, ClusterView, JobSelection
from hascheduler.ports.jobs import Path

_AGAIN_S = 2
_TOLD_FOR_MS = 2_000
"""For so long what was let in here is added to what the leader told: until its next heartbeat has it."""


class CountingStore(Protocol):
    """`hascheduler.ports.JobStore`, as far as it is used here."""

    async def count(self, which: JobSelection, states: Sequence[JobState], limit: int) -> int: ...


class DistantAdmission:
    """`hascheduler.ports.Admission` of the shard whose second-hand ``view`` it is. Owner of what was let in lately.
    ``is_ready``: the home's mirror, which has the limits, is complete."""

    def __init__(
        self,
        view: ClusterView,
        buckets: BucketStore,
        jobs: CountingStore,
        clock: Clock,
        *,
        is_ready: Callable[[], bool],
        max_pending: int | None,
        refused: Callable[[str], None] = lambda _: None,
        max_dependencies: int | None = None,
    ) -> None:
        self._view = view
        self._buckets = buckets
        self._jobs = jobs
        self._clock = clock
        self._is_ready = is_ready
        self._was_ever_ready = False
        self._max_pending = max_pending
        self._max_dependencies = max_dependencies
        self._refused = refused
        self._lately = 0
        self._lately_dependencies = 0
        self._lately_since_ms = 0

    async def admit(self, tenant: str, jobs: int, path: Path = ("jobs",), dependencies: int = 0) -> None:
        self._was_ever_ready = self._was_ever_ready or self._is_ready()
        if not self._was_ever_ready:
            self._refused("starting")
            raise starting()
        limits = self._view.tenant(tenant) or Tenant(tenant)
        for most in (limits.max_pending, None if limits.submit_rate is None else limits.submit_rate.count):
            self._require_possible(jobs, most, path)
        self._require_possible(jobs, self._max_pending, path)
        self._require_room(jobs)
        self._require_room_for_dependencies(dependencies)
        if limits.max_pending is not None:
            waiting = await self._jobs.count(JobSelection(tenant=tenant), (JobState.PENDING,), limits.max_pending)
            if waiting + jobs > limits.max_pending:
                self._refused("tenant_pending")
                raise TooMany(f"{waiting} jobs of tenant {tenant!r} wait, and {limits.max_pending} may", _AGAIN_S)
        if limits.submit_rate is not None:
            wait_ms = await self._buckets.take(tenant, limits.submit_rate, jobs)
            if wait_ms:
                self._refused("rate")
                raise too_fast(tenant, limits.submit_rate, wait_ms)
        self._let_in(jobs, dependencies)

    def turned_away(self, tenant: str | None, length: int) -> Overloaded | None:
        return self._overload()

    def is_holding_back(self) -> bool:
        return self._overload() is not None

    def not_new(self, tenant: str, jobs: int, dependencies: int = 0) -> None:
        self._lately = max(self._lately - jobs, 0)
        self._lately_dependencies = max(self._lately_dependencies - dependencies, 0)

    def _require_room(self, jobs: int) -> None:
        waiting = self._view.pending() + self._unseen()
        if self._max_pending is not None and waiting + jobs > self._max_pending:
            self._refused("total_pending")
            raise Overloaded(f"{waiting} jobs wait, and {self._max_pending} may", _AGAIN_S)
        overload = self._overload()
        if overload is not None:
            self._refused("overload")
            raise overload

    def _require_room_for_dependencies(self, more: int) -> None:
        most = self._max_dependencies
        if most is None or not more:
            return
        if more > most:
            self._refused("never")
            raise never_depends(more, most)
        self._unseen()
        known = self._view.dependencies() + self._lately_dependencies
        if known + more > most:
            self._refused("dependencies")
            raise too_many_dependencies(known, most)

    def _require_possible(self, jobs: int, most: int | None, path: Path) -> None:
        if most is not None and jobs > most:
            self._refused("never")
            raise never(jobs, most, path)

    def _overload(self) -> Overloaded | None:
        if not is_late(self._view.leader_lag) or self._view.runnable() + self._unseen() <= QUEUE_JOBS:
            return None
        return Overloaded(OVERLOAD, _AGAIN_S)

    def _unseen(self) -> int:
        """What was let in here since the leader told."""
        if self._clock.mono_ms() - self._lately_since_ms >= _TOLD_FOR_MS:
            self._lately = self._lately_dependencies = 0
        return self._lately

    def _let_in(self, jobs: int, dependencies: int) -> None:
        now_ms = self._clock.mono_ms()
        if now_ms - self._lately_since_ms >= _TOLD_FOR_MS:
            self._lately, self._lately_dependencies, self._lately_since_ms = 0, 0, now_ms
        self._lately += jobs
        self._lately_dependencies += dependencies
