"""The limits on how many schedules a tenant may have, and how close together their times may be.

Both are checked when a schedule is created, the second also when its trigger changes. Stored schedules go on. A
tenant's own ``max_schedules`` applies to every caller. The deployment's two limits apply only to tokens of one tenant;
a token for all tenants may exceed them. Two replicas that check at the same time may admit a few schedules too many.
"""

from dataclasses import dataclass
from http import HTTPStatus

from hascheduler.api.http.problems import ProblemError
from hascheduler.api.middleware.auth import Caller
from hascheduler.errors import InvalidInput
from hascheduler.model.values.error_texts import quoted
from hascheduler.model.values.instants import format_duration
from hascheduler.ports import ClusterView, ScheduleStore
from hascheduler.schema.trigger import AnyOf, Cron, Interval, Trigger
from hascheduler.triggers import shortest_gap_of_rules_ms

TENANT_SCHEDULES_MAX = 10_000
LEAST_INTERVAL_MS = 1_000


@dataclass(frozen=True, slots=True)
class ScheduleLimits:
    """The deployment's limits for tokens of one tenant. ``schedules_max`` None means no limit."""

    schedules_max: int | None = TENANT_SCHEDULES_MAX
    least_interval_ms: int = LEAST_INTERVAL_MS

    def require_interval(self, trigger: Trigger, stored: Trigger | None, caller: Caller) -> None:
        """Raise `InvalidInput` if the times of a new ``trigger`` are too close together.

        For cron expressions, a hundred times are checked. A list of times is bounded by its length, and by the rate at
        which the tenant's schedules may fire.
        """
        if caller.only is None or trigger == stored:
            return
        shortest_ms = shortest_gap_of_rules_ms(trigger)
        if shortest_ms is not None and shortest_ms < self.least_interval_ms:
            field = {Interval: "every", Cron: "expression", AnyOf: "of"}[type(trigger.pattern)]
            problem = f"{format_duration(shortest_ms)} between two times is too short for a token of one tenant"
            raise InvalidInput(("trigger", field), problem, f"at least {format_duration(self.least_interval_ms)}")

    async def require_room(self, tenant: str, caller: Caller, view: ClusterView, schedules: ScheduleStore) -> None:
        """Refuse with 409 if ``tenant`` has as many schedules as it may have."""
        known = view.tenant(tenant)
        most = known.max_schedules if known is not None else None
        if most is None:
            most = None if caller.only is None else self.schedules_max
        if most is None or await schedules.count(tenant, most) < most:
            return
        raise ProblemError(
            HTTPStatus.CONFLICT,
            "too-many-schedules",
            f"tenant {quoted(tenant)} has reached its limit of {most} schedules; delete one first",
            errors=[InvalidInput(("job", "tenant"), f"{quoted(tenant)} has {most} schedules", f"fewer than {most}")],
        )
