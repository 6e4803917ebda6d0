"""A tenant: who owns jobs, and how much of them may run. An unknown one has no quota."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tenant:
    """``max_running`` caps its dispatched and running jobs (None: no cap)."""

    name: str
    rev: int = 0
    max_running: int | None = None
