"""Admission control: refuses excess jobs before they are written, and returns when to retry.

Five limits: pending jobs of the tenant (429), pending jobs in all (503), their dependencies in all (429), the leader's
capacity (503; see `hascheduler.api.admission.intake`), and the tenant's submit rate (429). The first three are counted
in memory: the core's count, plus what this replica has admitted since (`UnseenJobs`), so that a flood at one replica
can't exceed them. Several replicas may together exceed them by what they admit within the lag of their streams. The
rate is exact: all replicas take from one bucket in the database.

A replica whose mirror is not complete and fresh uses its last known counts and what it has admitted since. A replica
that has never had a complete mirror admits nothing.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from math import ceil
from typing import TypeVar

import structlog

from hascheduler.api.admission.estimates import RETRY_UNKNOWN_S, DrainRate, UnseenJobs
from hascheduler.api.admission.intake import IntakeControl, IntakeSight
from hascheduler.errors import InvalidInput, Overloaded, TooMany
from hascheduler.model.values.instants import format_duration
from hascheduler.ports import BucketStore, Clock, ClusterView
from hascheduler.schema.definition import RateLimit
from hascheduler.schema.refusals import Path
from hascheduler.schema.tenant import Tenant

log = structlog.get_logger(__name__)

_TENANTS_MAX = 1_000
_STARTING_S = 1
_ON_THE_WAY_MS = 500
"""An admitted submit appears in the stream within this time, or the leader's lag shows that the stream is late."""
OVERLOAD = "the queue grows faster than jobs can start; new submits would delay accepted jobs"
V = TypeVar("V")


@dataclass(eq=False)
class AdmissionControl:
    """Owner of the admission of jobs at this replica.

    ``max_pending`` and ``max_dependencies`` apply to all tenants together; None means no limit. ``refused`` is called
    with the reason of each refusal: one of `hascheduler.telemetry.metrics_http.REASONS`.
    """

    view: ClusterView
    buckets: BucketStore
    clock: Clock
    max_pending: int | None
    refused: Callable[[str], None] = lambda _: None
    _: KW_ONLY
    max_dependencies: int | None = None

    def __post_init__(self) -> None:
        self._known_dependencies = 0
        self._unseen_dependencies = UnseenJobs()
        self._unseen = UnseenJobs()
        self._drain_rate = DrainRate()
        # Other replicas only take from a bucket too: until then it holds fewer tokens than that many jobs need.
        self._empty_until: OrderedDict[str, tuple[RateLimit, int, int]] = OrderedDict()
        self._intake = IntakeControl()
        self._tenants: OrderedDict[str, Tenant] = OrderedDict()
        self._was_ready = False
        self._was_ever_ready = False

    def arrived(self, tenant: str, *, own: bool, dependencies: int = 0) -> None:
        """Count one more job of the core, and its dependencies; ``own`` if this replica admitted it."""
        self._intake.arrived(own=own)
        if own:
            self._unseen_dependencies.settle(None, dependencies)
        for key in (tenant, None):
            self._drain_rate.arrived(key)
            if own:
                self._unseen.settle(key)

    async def admit(self, tenant: str, jobs: int, path: Path = ("jobs",), dependencies: int = 0) -> None:
        """Return if ``jobs`` more jobs of the tenant, with ``dependencies`` in all, may be written now.

        They count as waiting until the stream has shown them, or `not_new` takes them back. `TooMany` and `Overloaded`
        carry the time to retry. `InvalidInput` is raised for ``path`` or the dependencies if the request exceeds a
        limit by itself.
        """
        self._was_ever_ready |= self.view.ready
        if not self._was_ever_ready:
            self.refused("starting")
            raise Overloaded("this replica has just started and does not know the queue length yet", _STARTING_S)
        limits = self._limits(tenant)
        self._require_room(tenant, jobs, limits.max_pending, path)
        if dependencies:
            self._require_room_for_dependencies(dependencies)
        rate = limits.submit_rate
        if rate is not None:
            self._require_possible(jobs, rate.count, path)
        retry_after_s = self._intake_retry_after_s(tenant, jobs)
        if retry_after_s is not None:
            raise Overloaded(OVERLOAD, retry_after_s)
        # Before the first await: concurrent requests must find these jobs counted.
        now_ms = self.clock.mono_ms()
        for key in (None,) if limits.max_pending is None else (tenant, None):
            self._unseen.add(key, jobs, now_ms)
        if dependencies:
            self._unseen_dependencies.add(None, dependencies, now_ms)
        self._intake.admitted(tenant, jobs, now_ms)
        if rate is None:
            return
        try:
            await self._require_tokens(tenant, jobs, rate)
        except BaseException:
            self.not_new(tenant, jobs, dependencies)
            raise

    def not_new(self, tenant: str, jobs: int, dependencies: int = 0) -> None:
        """Take back ``jobs`` admitted jobs that existed already or were not written."""
        self._unseen_dependencies.settle(None, dependencies, newest=True)
        for key in (tenant, None):
            self._unseen.settle(key, jobs, newest=True)
        self._intake.admitted(tenant, -jobs, self.clock.mono_ms())

    async def _require_tokens(self, tenant: str, jobs: int, rate: RateLimit) -> None:
        limit, needed, until_ms = self._empty_until.get(tenant, (rate, 0, 0))
        wait_ms = until_ms - self.clock.mono_ms()
        if limit != rate or jobs < needed or wait_ms <= 0:
            wait_ms = await self.buckets.take(tenant, rate, jobs)
            if not wait_ms:
                return
            _keep(self._empty_until, tenant, (rate, jobs, self.clock.mono_ms() + wait_ms))
        self.refused("rate")
        problem = (
            f"tenant {tenant!r} has reached its submit rate of {rate.count} jobs in {format_duration(rate.per_ms)}"
        )
        raise TooMany(problem, ceil(wait_ms / 1_000))

    def _limits(self, tenant: str) -> Tenant:
        limits = self.view.tenant(tenant)
        if not self.view.ready:
            return limits or self._tenants.get(tenant) or Tenant(name=tenant)
        if limits is None:
            self._tenants.pop(tenant, None)
            return Tenant(name=tenant)
        _keep(self._tenants, tenant, limits)
        return limits

    def _require_room(self, tenant: str, jobs: int, tenant_max: int | None, path: Path) -> None:
        self._is_ready()
        for key, most in ((tenant, tenant_max), (None, self.max_pending)):
            if most is None:
                continue
            self._require_possible(jobs, most, path)
            waiting = self._waiting(key)
            if waiting + jobs > most:
                self.refused("total_pending" if key is None else "tenant_pending")
                retry_after_s = self._drain_rate.retry_after_s(key, waiting + jobs - most)
                if key is None:
                    raise Overloaded(f"{waiting} jobs are waiting, of at most {most}", retry_after_s)
                raise TooMany(f"tenant {key!r} has {waiting} waiting jobs and may have at most {most}", retry_after_s)

    def _require_room_for_dependencies(self, more: int) -> None:
        most = self.max_dependencies
        if most is None:
            return
        self._require_possible(more, most, ("depends_on",), " in a request, also for a whole batch")
        is_ready = self._is_ready()
        known = self.view.dependencies()
        self._known_dependencies = known if is_ready else max(known, self._known_dependencies)
        counted = self._known_dependencies
        counted += self._unseen_dependencies.count(None, self.clock.mono_ms(), forgetting=is_ready)
        if counted + more > most:
            self.refused("dependencies")
            problem = f"the waiting jobs have {counted} dependencies, of at most {most}"
            raise TooMany(problem, RETRY_UNKNOWN_S)

    def turned_away(self, tenant: str | None, length: int) -> Overloaded | None:
        """Return why a submit of ``length`` bytes is refused unread; None if `admit` decides.

        ``tenant`` is None if the caller may submit for all tenants.
        """
        retry_after_s = self._intake_retry_after_s(tenant, 1, length)
        return None if retry_after_s is None else Overloaded(OVERLOAD, retry_after_s)

    def is_holding_back(self) -> bool:
        """Return True if this replica refuses submits to relieve the leader, or did a moment ago."""
        return self._intake.is_holding_back(self.clock.mono_ms())

    def _intake_retry_after_s(self, tenant: str | None, jobs: int, unread_bytes: int = 0) -> int | None:
        """Return what `IntakeControl.retry_after_s` returns for these jobs; None if the mirror is not ready."""
        if not self._is_ready():
            return None
        now_ms, was_limited = self.clock.mono_ms(), self._intake.limit_per_s is not None
        # A backfill is admitted as a whole and written bit by bit: jobs that are not written yet wait for nobody.
        unseen = self._unseen.count_newer(None, now_ms - _ON_THE_WAY_MS)
        pending, runnable, lag = self.view.pending() + unseen, self.view.runnable() + unseen, self.view.leader_lag
        sight = IntakeSight(pending, runnable, lag, now_ms)
        retry_after_s = self._intake.retry_after_s(tenant, jobs, sight, unread_bytes)
        limit_per_s = self._intake.limit_per_s
        if (limit_per_s is not None) != was_limited:
            event = "intake_free" if limit_per_s is None else "intake_limited"
            log.warning(event, pending=pending, runnable=runnable, leader_lag_ms=lag.now_ms, jobs_per_s=limit_per_s)
        if retry_after_s is not None:
            self.refused("overload")
        return retry_after_s

    def _is_ready(self) -> bool:
        """Return True if the mirror is complete and fresh. If that has changed, measure rates again."""
        if self.view.ready != self._was_ready:
            self._was_ready = self.view.ready
            self._drain_rate.forget()
            self._intake.forget()
        return self._was_ready

    def _waiting(self, key: str | None) -> int:
        now_ms = self.clock.mono_ms()
        unseen = self._unseen.count(key, now_ms, forgetting=self.view.ready)
        pending = self.view.pending(key)
        if not self.view.ready:
            return max(pending, self._drain_rate.last_known(key)) + unseen
        self._drain_rate.observe(key, pending, now_ms)
        return pending + unseen

    def _require_possible(self, count: int, most: int, path: Path, remark: str = " in a request") -> None:
        """Raise `InvalidInput` if the request can never be admitted, however long the client waits."""
        if count > most:
            self.refused("never")
            raise InvalidInput(path, f"{count} at once exceed the limit", f"at most {most}{remark}")


def _keep(known: OrderedDict[str, V], tenant: str, value: V) -> None:
    """Store the value among those of the thousand most recent tenants."""
    known[tenant] = value
    known.move_to_end(tenant)
    if len(known) > _TENANTS_MAX:
        known.popitem(last=False)
