"""The port that checks the database against the invariants of `hascheduler.check`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from hascheduler.check.finding import CheckReport

ScanProgress = Callable[[str, int], None]
"""Called with the name of a section and how many of its documents are checked."""


@dataclass(frozen=True, slots=True)
class ScanBounds:
    """How much of the database one scan may read; None means no bound.

    A scan pauses ``pause_s`` after each ``batch`` of documents, and after ``limit_s`` leaves the rest to the next scan.
    It compares the newest ``times_max`` times of at most ``compared_max`` schedules with their verdicts, and reads the
    newest ``entries_max`` journal entries of each name and the first ``pending_max`` pending jobs. If tenants have
    places, it checks those of ``placed_max`` schedules, and as many jobs of each of ``tenants_max`` tenants. What may
    be in motion is checked again after ``recheck_after_s``.
    """

    batch: int
    pause_s: float
    times_max: int
    recheck_after_s: float = 6.0
    limit_s: float | None = None
    compared_max: int | None = None
    entries_max: int | None = None
    pending_max: int | None = None
    placed_max: int | None = None
    tenants_max: int | None = None


THOROUGH = ScanBounds(batch=1_000, pause_s=0.0, times_max=2_000_000)
"""For people who wait for the result."""
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
"""For a leader at work; schedules and tenants take turns."""


class InvariantScan(Protocol):
    async def run(self, bounds: ScanBounds, progress: ScanProgress = lambda _section, _done: None) -> CheckReport:
        """Return what is broken.

        A scan only reads, and finishes whatever is stored. Raise `StoreUnavailable` if there was no answer.
        """
