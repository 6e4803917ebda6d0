"""Admission control: refuses jobs before they are written, where there are too many, and says when to try again.

Five limits: pending jobs of the tenant (429), pending jobs in all (503), their dependencies in all (429), what the
leader can keep up with (503; see `hascheduler.api.admission.intake`), and the tenant's submit rate (429). The first
three are counted in memory: what the core counts, and what this replica has let in since (`UnseenJobs`), so that a
flood at one replica can't run past them.
Several replicas may together exceed them by what they let in within the lag of their streams. The rate is exact: all
replicas take from one bucket in the database.

A replica whose mirror is not complete and fresh uses its last known counts and what it has admitted since. One that
has never had a complete mirror admits nothing.
"""

from collections import OrderedDict
from collections.abc import Callable
from math import ceil

import structlog

from hascheduler.api.admission.estimates import RETRY_UNKNOWN_S, DrainRate, EmptyBuckets, UnseenJobs
from hascheduler.api.admission.intake import IntakeControl, IntakeSight
from hascheduler.errors import InvalidInput, Overloaded, TooMany
from hascheduler.model.values.durations import format_duration
from hascheduler.ports import BucketStore, Clock, ClusterView
from hascheduler.ports.jobs import Path
from hascheduler.schema.definition import RateLimit
from hascheduler.schema.tenant import Tenant

log = structlog.get_logger(__name__)

_TENANTS_MAX = 1_000
_STARTING_S = 1
_ON_THE_WAY_MS = 500
"""A submit that was admitted is in the stream by then, or the leader's lag shows that the stream is late."""
OVERLOAD = "more jobs wait than can be started, and submits would hold up those that were accepted"


def starting() -> Overloaded:
    return Overloaded("this replica has only just begun, and does not know yet how much waits", _STARTING_S)


def never(jobs: int, most: int, path: Path) -> InvalidInput:
    """A request of so many jobs will never be admitted, however long the client waits."""
    return InvalidInput(path, f"{jobs} at once are more than will ever be let in", f"at most {most} in a request")


def never_depends(dependencies: int, most: int) -> InvalidInput:
    """A request of jobs with so many dependencies will never be admitted."""
    problem = f"{dependencies} at once are more than will ever be let in"
    return InvalidInput(("depends_on",), problem, f"at most {most} in a request; a whole batch is one")


def too_many_dependencies(dependencies: int, most: int) -> TooMany:
    problem = f"the jobs that wait have {dependencies} dependencies, and {most} may be; a whole batch is one"
    return TooMany(problem, RETRY_UNKNOWN_S)


def too_fast(tenant: str, rate: RateLimit, wait_ms: int) -> TooMany:
    problem = f"tenant {tenant!r} may submit {rate.count} jobs in {format_duration(rate.per_ms)}, and has"
    return TooMany(problem, ceil(wait_ms / 1_000))


class AdmissionControl:
    """`hascheduler.ports.Admission`. ``max_pending`` and ``max_dependencies`` are for all tenants together; None: no
    limit. ``refused`` is called with the reason of each refusal: one of
    `hascheduler.telemetry.metrics_http.REASONS`."""

    def __init__(
        self,
        view: ClusterView,
        buckets: BucketStore,
        clock: Clock,
        max_pending: int | None,
        refused: Callable[[str], None] = lambda _: None,
        *,
        max_dependencies: int | None = None,
    ) -> None:
        self._view = view
        self._buckets = buckets
        self._clock = clock
        self._max_pending = max_pending
        self._refused = refused
        self._max_dependencies = max_dependencies
        self._known_dependencies = 0
        self._unseen_dependencies = UnseenJobs()
        self._unseen = UnseenJobs()
        self._drain_rate = DrainRate()
        self._empty_buckets = EmptyBuckets()
        self._intake = IntakeControl()
        self._tenants: OrderedDict[str, Tenant] = OrderedDict()
        self._was_ready = False
        self._was_ever_ready = False

    def arrived(self, tenant: str, *, own: bool, dependencies: int = 0) -> None:
        """The core counts one more job, and its dependencies; ``own``: this replica admitted it."""
        self._intake.arrived(own=own, now_ms=self._clock.mono_ms())
        if own:
            self._unseen_dependencies.seen(None, dependencies)
        for key in (tenant, None):
            self._drain_rate.arrived(key)
            if own:
                self._unseen.seen(key)

    async def admit(self, tenant: str, jobs: int, path: Path = ("jobs",), dependencies: int = 0) -> None:
        self._was_ever_ready |= self._view.ready
        if not self._was_ever_ready:
            self._refused("starting")
            raise starting()
        limits = self._limits(tenant)
        self._require_room(tenant, jobs, limits.max_pending, path)
        if dependencies:
            self._require_room_for_dependencies(dependencies)
        rate = limits.submit_rate
        if rate is not None and jobs > rate.count:
            raise self._never(jobs, rate.count, path)
        self._require_capacity(tenant, jobs)
        # Before anything is awaited: concurrent requests must find these jobs counted.
        counted = (None,) if limits.max_pending is None else (tenant, None)
        now_ms = self._clock.mono_ms()
        for key in counted:
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
        self._unseen_dependencies.remove(None, dependencies)
        for key in (tenant, None):
            self._unseen.remove(key, jobs)
        self._intake.admitted(tenant, -jobs, self._clock.mono_ms())

    async def _require_tokens(self, tenant: str, jobs: int, rate: RateLimit) -> None:
        wait_ms = self._empty_buckets.wait_ms(tenant, rate, jobs, self._clock.mono_ms())
        if not wait_ms:
            wait_ms = await self._buckets.take(tenant, rate, jobs)
            if not wait_ms:
                return
            self._empty_buckets.found(tenant, rate, jobs, self._clock.mono_ms() + wait_ms)
        self._refused("rate")
        raise too_fast(tenant, rate, wait_ms)

    def _limits(self, tenant: str) -> Tenant:
        if not self._view.ready:
            return self._view.tenant(tenant) or self._tenants.get(tenant) or Tenant(name=tenant)
        limits = self._view.tenant(tenant)
        if limits is None:
            self._tenants.pop(tenant, None)
            return Tenant(name=tenant)
        self._tenants[tenant] = limits
        self._tenants.move_to_end(tenant)
        if len(self._tenants) > _TENANTS_MAX:
            self._tenants.popitem(last=False)
        return limits

    def _require_room(self, tenant: str, jobs: int, tenant_max: int | None, path: Path) -> None:
        self._is_ready()
        if tenant_max is not None:
            if jobs > tenant_max:
                raise self._never(jobs, tenant_max, path)
            waiting = self._waiting(tenant)
            if waiting + jobs > tenant_max:
                problem = f"{waiting} jobs of tenant {tenant!r} wait, and {tenant_max} may"
                self._refused("tenant_pending")
                raise TooMany(problem, self._room_in_s(tenant, waiting + jobs - tenant_max))
        if self._max_pending is not None:
            if jobs > self._max_pending:
                raise self._never(jobs, self._max_pending, path)
            waiting = self._waiting(None)
            if waiting + jobs > self._max_pending:
                problem = f"{waiting} jobs wait, and {self._max_pending} may"
                self._refused("total_pending")
                raise Overloaded(problem, self._room_in_s(None, waiting + jobs - self._max_pending))

    def _require_room_for_dependencies(self, more: int) -> None:
        most = self._max_dependencies
        if most is None:
            return
        if more > most:
            self._refused("never")
            raise never_depends(more, most)
        is_ready = self._is_ready()
        known = self._view.dependencies()
        self._known_dependencies = known if is_ready else max(known, self._known_dependencies)
        unseen = self._unseen_dependencies.count(None, self._clock.mono_ms(), forgetting=is_ready)
        if self._known_dependencies + unseen + more > most:
            self._refused("dependencies")
            raise too_many_dependencies(self._known_dependencies + unseen, most)

    def _require_capacity(self, tenant: str, jobs: int) -> None:
        retry_after_s = self._asked_intake(lambda sight: self._intake.retry_after_s(tenant, jobs, sight))
        if retry_after_s is not None:
            raise Overloaded(OVERLOAD, retry_after_s)

    def turned_away(self, tenant: str | None, length: int) -> Overloaded | None:
        retry_after_s = self._asked_intake(lambda sight: self._intake.turned_away_s(tenant, length, sight))
        return None if retry_after_s is None else Overloaded(OVERLOAD, retry_after_s)

    def is_holding_back(self) -> bool:
        return self._intake.is_holding_back(self._clock.mono_ms())

    def _asked_intake(self, ask: Callable[[IntakeSight], int | None]) -> int | None:
        if not self._is_ready():
            return None
        now_ms, was_limited = self._clock.mono_ms(), self._intake.limit_per_s is not None
        # A backfill is admitted as a whole, and written bit by bit: what is not there yet waits for nobody.
        unseen = self._unseen.count_newer(None, now_ms - _ON_THE_WAY_MS)
        sight = IntakeSight(
            self._view.pending() + unseen, self._view.runnable() + unseen, self._view.leader_lag, now_ms
        )
        retry_after_s, limit_per_s = ask(sight), self._intake.limit_per_s
        if (limit_per_s is not None) != was_limited:
            event = "intake_free" if limit_per_s is None else "intake_limited"
            counts = {"pending": sight.pending, "runnable": sight.runnable}
            log.warning(event, **counts, leader_lag_ms=sight.lag.now_ms, jobs_per_s=limit_per_s)
        if retry_after_s is not None:
            self._refused("overload")
        return retry_after_s

    def _is_ready(self) -> bool:
        """Whether the mirror is complete and fresh; where that has changed, rates are measured from now on."""
        if self._view.ready != self._was_ready:
            self._was_ready = self._view.ready
            self._drain_rate.forget()
            self._intake.forget()
        return self._was_ready

    def _waiting(self, key: str | None) -> int:
        now_ms = self._clock.mono_ms()
        unseen = self._unseen.count(key, now_ms, forgetting=self._view.ready)
        pending = self._view.pending(key)
        if not self._view.ready:
            return max(pending, self._drain_rate.last_known(key)) + unseen
        self._drain_rate.observe(key, pending, now_ms)
        return pending + unseen

    def _room_in_s(self, key: str | None, jobs: int) -> int:
        return self._drain_rate.retry_after_s(key, jobs, self._clock.mono_ms())

    def _never(self, jobs: int, most: int, path: Path) -> InvalidInput:
        self._refused("never")
        return never(jobs, most, path)
