"""Looking for what is broken in the database; `hascheduler.check` says what that is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from hascheduler.check.finding import CheckReport

ScanProgress = Callable[[str, int], None]
"""What is looked at, and how many documents of it have been."""


@dataclass(frozen=True, slots=True)
class ScanBounds:
    """How much of the database one look may ask for. None: no bound.

    It pauses ``pause_s`` after each ``batch`` of documents, and after ``limit_s`` leaves the rest for the next look.
    Of each schedule the newest ``times_max`` times are compared with their verdicts, of at most ``compared_max``
    schedules; of the journal the newest ``entries_max`` entries of each name are read, of pending jobs the first
    ``pending_max``. If tenants have places, those of ``placed_max`` schedules are looked at, and of as many jobs of
    each of ``tenants_max`` tenants. What may be in motion is looked at again after ``look_again_s``.
    """

    batch: int
    pause_s: float
    times_max: int
    look_again_s: float = 6.0
    limit_s: float | None = None
    compared_max: int | None = None
    entries_max: int | None = None
    pending_max: int | None = None
    placed_max: int | None = None
    tenants_max: int | None = None


THOROUGH = ScanBounds(batch=1_000, pause_s=0.0, times_max=2_000_000)
"""For people who wait for it."""
LIGHT = ScanBounds(
    batch=200,
    pause_s=0.02,
    limit_s=20.0,
    times_max=500,
    compared_max=200,
    entries_max=1_000,
    pending_max=2_000,
    placed_max=2_000,
    tenants_max=200,
)
"""For a leader, beside its work; schedules and tenants take turns."""


class InvariantScan(Protocol):
    async def look(self, bounds: ScanBounds, progress: ScanProgress = lambda _section, _done: None) -> CheckReport:
        """What is broken. It only reads, and whatever is stored, it comes to its end; `StoreUnavailable` where there
        was no answer."""
