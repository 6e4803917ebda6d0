"""Admission of fires: a tenant's `max_pending` and fire rate must leave room for another one.

A fire makes a job that waits, so it is admitted like a submit. But no client repeats it after a Retry-After: so the
newest due time itself waits for room (`time_outcomes`), and its schedule is checked again after a second. The more
schedules of a tenant wait, the longer each waits, so that the checks cost the same.

A fire of several jobs is admitted if there is room for all of them. So a fire of more jobs than a limit allows is
always throttled.

Fires take nothing from `submit_rate`, whose bucket the replicas share in the database; they have `fire_rate`.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from hascheduler.dispatch.capacity.rate_limits import RateLimits
from hascheduler.dispatch.rules import Rules
from hascheduler.schema.schedule import ScheduleRef

MAX_PENDING = "max_pending"
FIRE_RATE = "fire_rate"
"""The limits of a tenant that throttle times, by the names of their settings."""

_AGAIN_MS = 1_000


@dataclass(slots=True)
class FireAllowance:
    """The number of jobs of fires that are admitted, and the limit behind it; ``was_short`` if there were more."""

    jobs: int
    limit: str
    was_short: bool = False

    def take(self, jobs: int = 1) -> bool:
        """Admit one fire of ``jobs`` jobs, if there is room."""
        self.was_short |= self.jobs < jobs
        self.jobs -= 0 if self.was_short else jobs
        return not self.was_short


class FireAdmission:
    """Owner of the fire rates, and of the schedules that wait for room."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._rates = RateLimits(rules.fire_rate)
        self.short: dict[str, str] = {}
        """The tenant of each schedule that found no room, by the schedule's name."""
        self._short_of: Counter[str] = Counter()
        self._unseen: dict[str, tuple[str, int]] = {}
        """The tenant and the number of jobs in no table yet, by id of each unseen fire of several jobs."""
        self._unseen_of: Counter[str] = Counter()

    def allowance(self, tenant: str, pending: int, now: int) -> FireAllowance | None:
        """Return the tenant's allowance; None without a limit.

        ``pending`` is the number of its pending jobs, including those promised as fires.
        """
        known = self._rules.tenants.get(tenant)
        if known is None or (known.max_pending is None and known.fire_rate is None):
            return None
        tokens = self._rates.tokens(tenant, now)
        pending += self._unseen_of[tenant]
        left = None if known.max_pending is None else known.max_pending - pending
        if left is None or (tokens is not None and tokens < left):
            return FireAllowance(tokens or 0, FIRE_RATE)
        return FireAllowance(max(left, 0), MAX_PENDING)

    def fired(self, tenant: str, job_id: str, jobs: int, now: int) -> None:
        """Count the ``jobs`` jobs that the fire ``job_id`` makes."""
        for _ in range(jobs):
            self._rates.take(tenant, now)
        if jobs > 1:
            self._unseen[job_id] = tenant, jobs - 1
            self._unseen_of[tenant] += jobs - 1

    def forget_seen(self, is_unseen: Callable[[str], bool]) -> None:
        """Forget the fires that the stream has shown (not ``is_unseen``): the table has their jobs."""
        for job_id in [job_id for job_id in self._unseen if not is_unseen(job_id)]:
            tenant, jobs = self._unseen.pop(job_id)
            self._unseen_of[tenant] -= jobs
            if not self._unseen_of[tenant]:
                del self._unseen_of[tenant]

    def fell_short(self, schedule: ScheduleRef, now: int) -> int:
        """Note that the schedule found no room; return the instant to check it again."""
        self.waits_no_more(schedule.name)
        tenant = self.short[schedule.name] = schedule.template.tenant
        self._short_of[tenant] += 1
        # Early enough for a shorter grace.
        return now + min(_AGAIN_MS, schedule.policy.grace_ms) + self._short_of[tenant]

    def waits_no_more(self, schedule: str) -> None:
        """Note that the schedule has room, or is gone."""
        tenant = self.short.pop(schedule, None)
        if tenant is not None:
            self._short_of[tenant] -= 1
            if not self._short_of[tenant]:
                del self._short_of[tenant]

    def forget(self) -> None:
        """Forget all, as this replica does not lead any more."""
        self.short.clear()
        self._short_of.clear()
        self._unseen.clear()
        self._unseen_of.clear()
