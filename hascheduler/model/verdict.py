"""What became of a nominal time: exactly one verdict for each that was in force, in the order of the times.

::

    fired       a job was made for it
    skipped     an earlier job of the schedule had not ended, and the overlap policy makes no other then
    missed      it was later than the misfire policy lets it be
    coalesced   it was late, and the next fire stands for it too
    paused      the schedule was paused, and resumed from a later time on
    excluded    it lies in one of the trigger's exclusion windows

A fired one is told by its job. The others are kept as *runs*: times that follow each other with the same verdict for
the same reason are one record, so that a day of outage costs one write, not 86,400.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from hascheduler.model.instants import WallMs


class Verdict(StrEnum):
    FIRED = "fired"
    SKIPPED = "skipped"
    MISSED = "missed"
    COALESCED = "coalesced"
    PAUSED = "paused"
    EXCLUDED = "excluded"


@dataclass(frozen=True, slots=True)
class Tally:
    """How many nominal times of a schedule, since it was made, got each verdict."""

    fired: int = 0
    skipped: int = 0
    missed: int = 0
    coalesced: int = 0
    paused: int = 0
    excluded: int = 0

    def plus(self, verdict: Verdict, count: int = 1) -> "Tally":
        return replace(self, **{verdict.value: getattr(self, verdict.value) + count})


NOTHING_DECIDED = Tally()
"""Shared by all schedules that have not come to a nominal time yet."""


@dataclass(frozen=True, slots=True)
class VerdictRun:
    """``count`` nominal times from ``first_ms`` through ``last_ms``, none of which fired.

    ``because_of`` is the job that was in the way of a skipped one.
    """

    schedule: str
    verdict: Verdict
    first_ms: WallMs
    last_ms: WallMs
    count: int
    because_of: str | None = None
