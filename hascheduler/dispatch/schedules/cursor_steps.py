"""Whether outcomes of nominal times may still be carried out, judged from the stored schedule.

Each outcome says what it was based on: the cursor before it, which times were in force, and of a fire whether it makes
one job or several, as these are inserted and dispatched in another way. So the outcomes form a chain of steps that
begins at the stored cursor, and the cursor moves only along it. Therefore what is at or before the cursor is decided
*and* carried out, whatever got lost on the way, and an edit that came in between loses nothing: what was decided before
the edit and not carried out by then is left to be decided again.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from hascheduler.dispatch.decisions import Fire, RecordVerdict, Settlement, TimeOutcome
from hascheduler.errors import InvalidInput
from hascheduler.model.documents.schedule import decode_fire_counts
from hascheduler.model.verdict import NOTHING_DECIDED, FireCounts, Verdict


class CursorStep(StrEnum):
    """The state of one outcome in the chain."""

    NEXT = "next"
    """It follows the one before it: write its job or record, and let the cursor move to it."""
    WRITTEN = "written"
    """It follows, and its job or record was written before an edit: only the cursor has yet to move."""
    DECIDED = "decided"
    """It was carried out: the cursor has passed it, or it is written and its schedule is gone since."""
    EARLY = "early"
    """An outcome before it is missing: it has to wait for that."""
    OTHER = "other"
    """The schedule is gone, is another one of that name, or was edited in between."""


SETTLEMENT_OF = {
    CursorStep.WRITTEN: Settlement.DONE,
    CursorStep.DECIDED: Settlement.DONE,
    CursorStep.EARLY: Settlement.UNKNOWN,
    CursorStep.OTHER: Settlement.LOST,
}
"""The settlement of an outcome for which nothing is to be written; a `NEXT` one has to be written."""


@dataclass(frozen=True, slots=True)
class CursorSteps:
    """The steps of one schedule in the order of their times, from the stored cursor on."""

    cursor_ms: int
    tally: FireCounts
    links: Sequence[tuple[TimeOutcome, CursorStep]]


def counted(tally: FireCounts, outcome: TimeOutcome) -> FireCounts:
    """The stored counts after the cursor has moved through ``outcome``.

    Not its own ``tally``: what lies before it may have been decided otherwise since it was decided.
    """
    if isinstance(outcome, RecordVerdict):
        return tally.plus(outcome.run.verdict, outcome.run.count)
    return tally.plus(Verdict.FIRED)


def cursor_steps(
    schedule: Mapping[str, Any] | None, outcomes: Sequence[TimeOutcome], written: Collection[TimeOutcome]
) -> CursorSteps:
    """The steps of ``outcomes`` of one stored schedule (None: gone).

    ``written`` are those whose job or record is stored already; only outcomes that are not `is_current` need it.
    """
    if schedule is None or not isinstance(schedule.get("cursor_ms"), int):
        gone = [(each, CursorStep.DECIDED if each in written else CursorStep.OTHER) for each in outcomes]
        return CursorSteps(0, NOTHING_DECIDED, gone)
    cursor_ms = schedule["cursor_ms"]
    links: list[tuple[TimeOutcome, CursorStep]] = []
    for outcome in sorted(outcomes, key=lambda outcome: outcome.nominal_ms):
        link = _step(schedule, outcome, cursor_ms, outcome in written)
        links.append((outcome, link))
        if link in (CursorStep.NEXT, CursorStep.WRITTEN):
            cursor_ms = outcome.nominal_ms
    return CursorSteps(schedule["cursor_ms"], _tally(schedule), links)


def _tally(schedule: Mapping[str, Any]) -> FireCounts:
    try:
        return decode_fire_counts(schedule.get("tally"))
    except InvalidInput:  # broken by hand, which must not stop its times
        return NOTHING_DECIDED


def is_current(schedule: Mapping[str, Any], outcome: TimeOutcome) -> bool:
    """Whether it is the same schedule, the same times are in force as when the outcome was decided, and it still makes
    one job, or several."""
    basis = outcome.basis
    since_ms = schedule.get("since_ms", schedule.get("created_at_ms"))
    in_force = (since_ms, schedule.get("paused_at_ms")) == (basis.since_ms, basis.paused_at_ms)
    return in_force and _is_same(schedule, outcome) and _makes_as_decided(schedule, outcome)


def _step(schedule: Mapping[str, Any], outcome: TimeOutcome, cursor_ms: int, is_written: bool) -> CursorStep:
    if not _is_same(schedule, outcome):
        return CursorStep.DECIDED if is_written else CursorStep.OTHER
    if outcome.nominal_ms <= cursor_ms:
        return CursorStep.DECIDED
    follows = outcome.basis.cursor_ms == cursor_ms
    if is_current(schedule, outcome):
        return CursorStep.NEXT if follows else CursorStep.EARLY
    return CursorStep.WRITTEN if follows and is_written else CursorStep.OTHER


def _makes_as_decided(schedule: Mapping[str, Any], outcome: TimeOutcome) -> bool:
    job = schedule.get("job")
    return not isinstance(outcome, Fire) or outcome.is_graph == (isinstance(job, Mapping) and "jobs" in job)


def _is_same(schedule: Mapping[str, Any], outcome: TimeOutcome) -> bool:
    """A schedule of another creation is another one by the same name. The journal of 0.2.0 does not have the creation:
    there it is one that was made at or after the nominal time."""
    created_at_ms = schedule.get("created_at_ms")
    if not isinstance(created_at_ms, int):
        return False
    if outcome.basis.created_at_ms is None:
        return created_at_ms < outcome.nominal_ms
    return outcome.basis.is_of(created_at_ms)
