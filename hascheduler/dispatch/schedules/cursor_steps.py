"""Whether the conclusions about a schedule's times may still be carried out, judged from the stored schedule.

Each conclusion says what it was based on: the cursor before it, and which times were in force. So they form a chain
that begins at the stored cursor, and the cursor moves only along it. Therefore what is at or before the cursor is
decided *and* carried out, whatever got lost on the way, and an edit that came in between loses nothing: what was
decided before the edit and not carried out by then is left to be decided anew.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from hascheduler.dispatch.decisions import Settlement, TimeOutcome


class CursorStep(StrEnum):
    """Where a conclusion stands."""

    NEXT = "next"
    """It follows the one before it: write its job or record, and let the cursor move to it."""
    WRITTEN = "written"
    """It follows, and its job or record was written before an edit: only the cursor has yet to move."""
    DECIDED = "decided"
    """It was carried out: the cursor has passed it, or it is written and its schedule is gone since."""
    EARLY = "early"
    """One before it is missing: it has to wait for that."""
    OTHER = "other"
    """The schedule is gone, made anew, or was edited in between."""


SETTLEMENT_OF = {
    CursorStep.WRITTEN: Settlement.DONE,
    CursorStep.DECIDED: Settlement.DONE,
    CursorStep.EARLY: Settlement.UNKNOWN,
    CursorStep.OTHER: Settlement.LOST,
}
"""What a conclusion that stands there comes to, without anything being written for it; a `NEXT` one has to be."""


@dataclass(frozen=True, slots=True)
class CursorSteps:
    """``links`` of one schedule in the order of their times, from the stored cursor on."""

    cursor_ms: int
    links: Sequence[tuple[TimeOutcome, CursorStep]]


def cursor_steps(
    schedule: Mapping[str, Any] | None, outcomes: Sequence[TimeOutcome], written: Collection[TimeOutcome]
) -> CursorSteps:
    """The standing of ``outcomes`` of one stored schedule (None: gone).

    Those of ``written`` have their job or record already; only of those that are not `is_current` it must be known.
    """
    if schedule is None or not isinstance(schedule.get("cursor_ms"), int):
        return CursorSteps(
            0, [(each, CursorStep.DECIDED if each in written else CursorStep.OTHER) for each in outcomes]
        )
    cursor_ms = schedule["cursor_ms"]
    links: list[tuple[TimeOutcome, CursorStep]] = []
    for outcome in sorted(outcomes, key=lambda outcome: outcome.nominal_ms):
        link = _step(schedule, outcome, cursor_ms, outcome in written)
        links.append((outcome, link))
        if link in (CursorStep.NEXT, CursorStep.WRITTEN):
            cursor_ms = outcome.nominal_ms
    return CursorSteps(schedule["cursor_ms"], links)


def is_current(schedule: Mapping[str, Any], outcome: TimeOutcome) -> bool:
    """Whether the same times are in force as when the conclusion was drawn, and it is the same schedule."""
    basis = outcome.basis
    since_ms = schedule.get("since_ms", schedule.get("created_at_ms"))
    in_force = (since_ms, schedule.get("paused_at_ms")) == (basis.since_ms, basis.paused_at_ms)
    return in_force and _is_same(schedule, outcome)


def _step(schedule: Mapping[str, Any], outcome: TimeOutcome, cursor_ms: int, is_written: bool) -> CursorStep:
    if not _is_same(schedule, outcome):
        return CursorStep.DECIDED if is_written else CursorStep.OTHER
    if outcome.nominal_ms <= cursor_ms:
        return CursorStep.DECIDED
    follows = outcome.basis.cursor_ms == cursor_ms
    if is_current(schedule, outcome):
        return CursorStep.NEXT if follows else CursorStep.EARLY
    return CursorStep.WRITTEN if follows and is_written else CursorStep.OTHER


def _is_same(schedule: Mapping[str, Any], outcome: TimeOutcome) -> bool:
    """A schedule of another creation is another one by the same name; so is one that was made at or after a nominal
    time, which is all that the journal of 0.2.0 tells."""
    created_at_ms = schedule.get("created_at_ms")
    if not isinstance(created_at_ms, int) or not outcome.basis.is_of(created_at_ms):
        return False
    return created_at_ms < outcome.nominal_ms
