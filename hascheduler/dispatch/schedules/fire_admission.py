"""Admission of fires: whether a tenant's `max_pending` and the rate of its fires leave room for another one.

A fire makes a job that waits, so it is admitted like a submit. No client repeats it after a Retry-After, though: so the
newest due time itself waits for room (`time_outcomes`), and its schedule is looked at again after a second. The more
schedules of a tenant wait, the longer each waits, so that looking costs the same.

Fires take nothing from `submit_rate`, whose bucket the replicas share in the database; they have `fire_rate`.
"""

from collections import Counter
from dataclasses import dataclass

from hascheduler.dispatch.capacity.rate_limits import FireRates
from hascheduler.dispatch.rules import Rules
from hascheduler.model.schedule import ScheduleRef

MAX_PENDING = "max_pending"
FIRE_RATE = "fire_rate"
"""The limits of a tenant that throttle times, by the names of their settings."""

_AGAIN_MS = 1_000


@dataclass(slots=True)
class FireAllowance:
    """The number of fires that are admitted, and the limit that says so; ``was_short``: there were more to fire."""

    fires: int
    limit: str
    was_short: bool = False

    def take(self) -> bool:
        """Admit one fire, if there is room."""
        self.was_short |= self.fires <= 0
        self.fires -= not self.was_short
        return not self.was_short


class FireAdmission:
    """Owner of the fire rates, and of the schedules that wait for room."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._rates = FireRates(rules)
        self._short: dict[str, str] = {}
        """The tenant of each schedule that waits, by the schedule's name."""
        self._short_of: Counter[str] = Counter()

    def allowance(self, tenant: str, pending: int, now: int) -> FireAllowance | None:
        """None: no limit. ``pending`` is the number of its jobs that wait, with those promised."""
        known = self._rules.tenants.get(tenant)
        if known is None or (known.max_pending is None and known.fire_rate is None):
            return None
        tokens = self._rates.tokens(tenant, now)
        left = None if known.max_pending is None else known.max_pending - pending
        if left is None or (tokens is not None and tokens < left):
            return FireAllowance(tokens or 0, FIRE_RATE)
        return FireAllowance(max(left, 0), MAX_PENDING)

    def fired(self, tenant: str, now: int) -> None:
        self._rates.take(tenant, now)

    def fell_short(self, schedule: ScheduleRef, now: int) -> int:
        """The schedule found no room; the instant to look at it again."""
        self.waits_no_more(schedule.name)
        tenant = self._short[schedule.name] = schedule.template.tenant
        self._short_of[tenant] += 1
        # Not so late that a shorter grace would be over.
        return now + min(_AGAIN_MS, schedule.policy.grace_ms) + self._short_of[tenant]

    def waits_no_more(self, schedule: str) -> None:
        """The schedule has room, or is gone."""
        tenant = self._short.pop(schedule, None)
        if tenant is not None:
            self._short_of[tenant] -= 1
            if not self._short_of[tenant]:
                del self._short_of[tenant]

    def forget(self) -> None:
        """This replica does not lead any more."""
        self._short.clear()
        self._short_of.clear()
