"""A tenant: who owns jobs, how much of them may run, and how much may be asked. An unknown one has no quota."""

from dataclasses import dataclass

from hascheduler.model.definition import RateLimit


@dataclass(frozen=True, slots=True)
class Tenant:
    """``max_running`` caps its dispatched and running jobs, ``max_pending`` those that wait; None: no cap.

    ``submit_rate`` is how fast its jobs are accepted.
    """

    name: str
    rev: int = 0
    max_running: int | None = None
    max_pending: int | None = None
    submit_rate: RateLimit | None = None
