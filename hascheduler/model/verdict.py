"""The verdict on a nominal time: exactly one for each time that was in force, in the order of the times.

::

    fired       a job was made for it
    unstorable  a job was due, but it could not be stored in any database, so there is none
    skipped     an earlier job of the schedule had not ended, and the overlap policy allows no other
    missed      it was too late for the misfire policy, or its job would already have expired
    coalesced   it was late, and the next fire covers it
    paused      the schedule was paused, and resumed only for later times
    excluded    it lies in an exclusion window of the trigger, or on a day that its calendars leave out
    throttled   its tenant's `max_pending` or `fire_rate` was reached, and nothing became free in time

The job of a fired time is its record. The others are stored as *runs*: consecutive times with the same verdict for the
same reason are one record, so that a day of outage costs one write, not 86,400.

Only the insert of a job, after the decision to fire, shows if the job can be stored. So an unstorable time counts as
fired in the `FireCounts`, which later decisions depend on (it uses up one of ``max_fires``), and the schedule also
counts the unstorable ones. If the job exists after all, the time has fired.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType

from hascheduler.model.values.frozen import compact
from hascheduler.model.values.instants import WallMs


class Verdict(StrEnum):
    FIRED = "fired"
    UNSTORABLE = "unstorable"
    SKIPPED = "skipped"
    MISSED = "missed"
    COALESCED = "coalesced"
    PAUSED = "paused"
    EXCLUDED = "excluded"
    THROTTLED = "throttled"


@compact("skipped", "missed", "coalesced", "paused", "excluded", "throttled")
@dataclass(frozen=True, slots=True)
class FireCounts:
    """The count of a schedule's nominal times by verdict, since its creation; the unstorable are among the fired."""

    fired: int = 0
    skipped: int = 0
    missed: int = 0
    coalesced: int = 0
    paused: int = 0
    excluded: int = 0
    throttled: int = 0

    def plus(self, verdict: Verdict, count: int = 1) -> "FireCounts":
        return replace(self, **{verdict.value: getattr(self, verdict.value) + count})


NOTHING_DECIDED = FireCounts()
"""Shared by all schedules before their first nominal time."""


EXPIRED = "expired"
"""The reason of a missed time whose job would have expired before it was made."""


@dataclass(frozen=True, slots=True)
class VerdictRun:
    """A run of ``count`` nominal times from ``first_ms`` through ``last_ms``, none of which fired.

    ``because_of`` is the job that blocked a skipped one, the tenant's limit that a throttled one reached, or `EXPIRED`
    for a missed one. An unstorable one is always alone.
    """

    schedule: str
    verdict: Verdict
    first_ms: WallMs
    last_ms: WallMs
    count: int
    because_of: str | None = None


@dataclass(frozen=True, slots=True)
class MissedTimes:
    """The count of missed times, with the first and the last of them; fired ones may lie between."""

    first_ms: int
    last_ms: int
    count: int


# How a run is stored, in its own record and in the journal

STORED_AS: MappingProxyType[Verdict, tuple[Verdict, str]] = MappingProxyType(
    {Verdict.THROTTLED: (Verdict.MISSED, "throttled by "), Verdict.UNSTORABLE: (Verdict.MISSED, "unstorable")}
)
"""These verdicts are stored as missed times with a prefix in ``because_of``.

So a leader of 0.2.0 can apply the journal of this release. A missed time has no prefix.
"""


def stored_verdict(run: VerdictRun) -> tuple[str, str | None]:
    """Return ``verdict`` and ``because_of`` in their stored form."""
    known_as, prefix = STORED_AS.get(run.verdict, (run.verdict, ""))
    return known_as.value, f"{prefix}{run.because_of or ''}" if prefix else run.because_of


def read_verdict(stored: str, because_of: str | None) -> tuple[Verdict, str | None]:
    """Return the verdict and reason of their stored form; raise `ValueError` if there is no such verdict."""
    for verdict, (known_as, prefix) in STORED_AS.items():
        if stored == known_as and because_of is not None and because_of.startswith(prefix):
            return verdict, because_of.removeprefix(prefix) or None
    return Verdict(stored), because_of


def is_unstorable(record: Mapping[str, object]) -> bool:
    """Return True if the stored record is one of an unstorable time."""
    return (record.get("verdict"), record.get("because_of")) == STORED_AS[Verdict.UNSTORABLE]
