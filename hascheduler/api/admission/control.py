"""Admission control: refuse jobs before they are written if there are too many, and say when to try again.

Five limits: pending jobs of the tenant (429), pending jobs in all (503), their dependencies in all (429), what the
leader can keep up with (503; `hascheduler.api.admission.intake`) and the tenant's submit rate (429), which is exact:
all replicas take from one bucket in the database. The others are counted in memory: what the core counts, and what this
replica has let in since. While its mirror is not complete a replica uses what it counted last; before it ever was it
admits nothing. Of a shard that it does not follow it knows what the leader said in its last heartbeat.
"""

from collections import Counter
from collections.abc import Awaitable, Callable
from math import ceil

import structlog

from hascheduler.api.admission.intake import IntakeControl
from hascheduler.errors import InvalidInput, Overloaded, TooMany
from hascheduler.model.definition import RateLimit
from hascheduler.model.tenant import Tenant
from hascheduler.model.values.durations import format_duration
from hascheduler.ports import BucketStore, Clock, ClusterView
from hascheduler.ports.jobs import Path

log = structlog.get_logger(__name__)

_TENANTS_MAX = 1_000
_AGAIN_S = 5
_FORGOTTEN_AFTER_MS = 10_000  # longer than a write may take and its event usually needs
_TOLD_AFTER_MS = 1_000  # a leader's heartbeat has by then what was let in before


class _Waiting:
    """How many wait of a tenant, or of all (None): what was counted last, and what was let in here and is not counted
    yet. What never comes, as its write failed, is forgotten after once to twice ``forgotten_after_ms``."""

    def __init__(self, forgotten_after_ms: int) -> None:
        self._forgotten_after_ms = forgotten_after_ms
        self._counted: dict[str | None, int] = {}
        self._older = Counter[str | None]()
        self._newer = Counter[str | None]()
        self._since_ms = 0

    def in_all(self, key: str | None, counted: int, now_ms: int, *, is_ready: bool) -> int:
        if not is_ready:
            # The stream may be silent, and the count begin again.
            counted = max(counted, self._counted.get(key, 0))
            self._since_ms = now_ms
        elif now_ms - self._since_ms >= self._forgotten_after_ms:
            is_long_ago = now_ms - self._since_ms >= 2 * self._forgotten_after_ms
            self._older, self._newer = Counter() if is_long_ago else self._newer, Counter()
            self._since_ms = now_ms
        self._counted[key] = counted
        if len(self._counted) > _TENANTS_MAX:
            del self._counted[next(iter(self._counted))]
        return counted + self._older[key] + self._newer[key]

    def add(self, key: str | None, count: int) -> None:
        self._newer[key] += count

    def remove(self, key: str | None, count: int) -> None:
        """So many are counted from now on, or were not written after all."""
        for age in (self._older, self._newer):
            removed = min(count, age[key])
            count -= removed
            age[key] -= removed


class AdmissionControl:
    """`hascheduler.ports.Admission`. ``max_pending`` and ``max_dependencies`` are for all tenants together; None: no
    limit. ``refused`` is called with the reason of each refusal: one of `hascheduler.telemetry.metrics_http.REASONS`.
    Of a shard that is not followed here, ``pending_of`` counts a tenant's pending jobs, up to a limit, and ``is_ready``
    tells that the limits of tenants are known."""

    def __init__(
        self,
        view: ClusterView,
        buckets: BucketStore,
        clock: Clock,
        max_pending: int | None,
        refused: Callable[[str], None] = lambda _: None,
        *,
        max_dependencies: int | None = None,
        is_ready: Callable[[], bool] | None = None,
        pending_of: Callable[[str, int], Awaitable[int]] | None = None,
    ) -> None:
        self._view = view
        self._buckets = buckets
        self._clock = clock
        self._max_pending = max_pending
        self._max_dependencies = max_dependencies
        self._refused = refused
        self._is_ready = is_ready or (lambda: view.ready)
        self._pending_of = pending_of
        self._was_ready = False
        after_ms = _FORGOTTEN_AFTER_MS if pending_of is None else _TOLD_AFTER_MS
        self._jobs, self._dependencies = _Waiting(after_ms), _Waiting(after_ms)
        self._limits: dict[str, Tenant] = {}
        self._empty: dict[str, tuple[RateLimit, int, int]] = {}
        """The bucket of a tenant does not hold so many tokens before that time."""
        self._intake = IntakeControl()

    def arrived(self, tenant: str, *, own: bool, dependencies: int = 0) -> None:
        """Note that the core counts one more job, and its dependencies; ``own``: this replica admitted it."""
        if own:
            self.not_new(tenant, 1, dependencies)

    async def admit(self, tenant: str, jobs: int, path: Path = ("jobs",), dependencies: int = 0) -> None:
        is_ready = self._is_ready()
        self._was_ready |= is_ready
        if not self._was_ready:
            problem = "this replica has only just begun, and does not know yet how much waits"
            raise self._counted("starting", Overloaded(problem, 1))
        limits = self._limits_of(tenant, is_ready=is_ready)
        rate, most = limits.submit_rate, limits.max_pending
        for bound in (most, self._max_pending, None if rate is None else rate.count):
            self._require_possible(jobs, bound, path, "in a request")
        self._require_possible(dependencies, self._max_dependencies, ("depends_on",), "in a request, also in a batch")
        stored = None if most is None or self._pending_of is None else await self._pending_of(tenant, most)
        # From here on nothing is awaited before the jobs are counted: concurrent requests must find them.
        now_ms = self._clock.mono_ms()
        if most is not None:
            if stored is None:
                stored = self._jobs.in_all(tenant, self._view.pending(tenant), now_ms, is_ready=is_ready)
            if stored + jobs > most:
                problem = f"{stored} jobs of tenant {tenant!r} wait, and {most} may"
                raise self._counted("tenant_pending", TooMany(problem, _AGAIN_S))
        waiting = self._jobs.in_all(None, self._view.pending(), now_ms, is_ready=is_ready)
        if self._max_pending is not None and waiting + jobs > self._max_pending:
            problem = f"{waiting} jobs wait, and {self._max_pending} may"
            raise self._counted("total_pending", Overloaded(problem, _AGAIN_S))
        known = self._dependencies.in_all(None, self._view.dependencies(), now_ms, is_ready=is_ready)
        if dependencies and self._max_dependencies is not None and known + dependencies > self._max_dependencies:
            problem = f"the jobs that wait have {known} dependencies, and {self._max_dependencies} may be"
            raise self._counted("dependencies", TooMany(f"{problem}; a whole batch is one", _AGAIN_S))
        overload = self._overload(tenant, is_read=True)
        if overload is not None:
            raise overload
        self._intake.let_in(tenant, jobs)
        for key in (tenant, None):
            self._jobs.add(key, jobs)
        self._dependencies.add(None, dependencies)
        if rate is None:
            return
        try:
            wait_ms = await self._token_wait_ms(tenant, rate, jobs)
            if wait_ms:
                problem = f"tenant {tenant!r} may submit {rate.count} jobs in {format_duration(rate.per_ms)}, and has"
                raise self._counted("rate", TooMany(problem, ceil(wait_ms / 1_000)))
        except BaseException:
            self.not_new(tenant, jobs, dependencies)
            raise

    def not_new(self, tenant: str, jobs: int, dependencies: int = 0) -> None:
        for key in (tenant, None):
            self._jobs.remove(key, jobs)
        self._dependencies.remove(None, dependencies)

    def turned_away(self, tenant: str | None) -> Overloaded | None:
        return self._overload(tenant, is_read=False)

    def is_holding_back(self) -> bool:
        self._look()
        return self._intake.fraction < 1

    def _look(self) -> None:
        was_free = self._intake.fraction == 1
        self._intake.look(self._view, self._clock.mono_ms())
        if was_free is not (self._intake.fraction == 1):
            event = "intake_limited" if was_free else "intake_free"
            log.warning(event, runnable=self._view.runnable(), leader_lag_ms=self._view.leader_lag.now_ms)

    def _overload(self, tenant: str | None, *, is_read: bool) -> Overloaded | None:
        if not self._is_ready():
            return None
        self._look()
        retry_after_s = self._intake.refused_s(tenant, is_read=is_read)
        if retry_after_s is None:
            return None
        problem = "more jobs wait than can be started, and submits would hold up those that were accepted"
        self._refused("overload")
        return Overloaded(problem, retry_after_s)

    def _limits_of(self, tenant: str, *, is_ready: bool) -> Tenant:
        limits = self._view.tenant(tenant)
        if limits is None and not is_ready:
            return self._limits.get(tenant, Tenant(tenant))
        self._limits.pop(tenant, None)
        if limits is not None:
            self._limits[tenant] = limits
            if len(self._limits) > _TENANTS_MAX:
                del self._limits[next(iter(self._limits))]
        return limits or Tenant(tenant)

    def _require_possible(self, count: int, most: int | None, path: Path, where: str) -> None:
        """Raise `InvalidInput` if so many would never be let in, however long the client waits."""
        if most is not None and count > most:
            raise self._counted(
                "never",
                InvalidInput(path, f"{count} at once are more than will ever be let in", f"at most {most} {where}"),
            )

    async def _token_wait_ms(self, tenant: str, rate: RateLimit, jobs: int) -> int:
        """Take the tokens and return 0, or return when to come again: other replicas only take from the bucket as well,
        so a flood of those who come too early need not reach the database."""
        of, least, until_ms = self._empty.get(tenant, (rate, 0, 0))
        wait_ms = until_ms - self._clock.mono_ms() if of == rate and jobs >= least else 0
        if wait_ms <= 0 and (wait_ms := await self._buckets.take(tenant, rate, jobs)):
            if len(self._empty) >= _TENANTS_MAX:
                self._empty.clear()
            self._empty[tenant] = (rate, jobs, self._clock.mono_ms() + wait_ms)
        return wait_ms

    def _counted(self, reason: str, refusal: Exception) -> Exception:
        self._refused(reason)
        return refusal
