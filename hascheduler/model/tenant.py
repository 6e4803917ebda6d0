"""A tenant: the owner of jobs and schedules, and its quotas on their number and rate. An unknown one has no quota."""

from dataclasses import dataclass

from hascheduler.model.definition import RateLimit

DEFAULT_TENANT = "default"
"""The owner of jobs and schedules that a caller for all tenants submits without naming a tenant."""


@dataclass(frozen=True, slots=True)
class Tenant:
    """``max_running`` caps its dispatched and running jobs, ``max_pending`` those that wait; None: no cap.

    ``submit_rate`` is how fast its jobs are accepted, ``fire_rate`` how fast its schedules fire; jobs that fires make
    count in ``max_pending`` like all others. ``max_schedules`` caps its schedules; None: the deployment's default.
    ``owner`` decides nothing here: it is whose `hascheduler apply` wrote it.
    """

    name: str
    rev: int = 0
    max_running: int | None = None
    max_pending: int | None = None
    submit_rate: RateLimit | None = None
    max_schedules: int | None = None
    fire_rate: RateLimit | None = None
    owner: str | None = None
