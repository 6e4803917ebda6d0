"""A schedule as the mirror keeps it: when, and the references of the job that it makes."""

from dataclasses import dataclass

from hascheduler.model.instants import WallMs
from hascheduler.model.trigger import Trigger


@dataclass(frozen=True, slots=True)
class JobTemplate:
    """The job that a schedule makes at each fire, without its payload (that stays in the database)."""

    definition: str
    target: str
    tenant: str
    lane: str
    fairness_key: str
    priority: int
    mode: str


@dataclass(frozen=True, slots=True)
class ScheduleRef:
    """One schedule. ``cursor_ms`` is the last nominal time decided; it only grows, apart from ``rev``.

    ``rev`` grows with every edit. Advancing the cursor is not an edit.
    """

    name: str
    rev: int
    trigger: Trigger
    template: JobTemplate
    cursor_ms: WallMs
    created_at_ms: WallMs
