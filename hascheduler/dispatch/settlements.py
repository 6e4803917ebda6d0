"""The settlement of a decision about a job, read from the job's document after the write was tried.

DONE if the document shows that this decision was carried out, now or earlier; UNKNOWN if it still could be (the write
found the document between two other changes, so it is tried again); LOST otherwise: another writer was first, or the
job is gone.

A first attempt may be promised on top of the fire that makes its job, in the same batch: it *rides* with the fire. The
insert of the job carries it out, or nothing does. Otherwise a deposed leader could find, late, a job that its successor
has made for the same nominal time, and dispatch it without the successor's knowledge.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from hascheduler.dispatch.decisions import (
    Cancel,
    Decision,
    Dispatch,
    Fail,
    Fire,
    JobMove,
    Requeue,
    Settlement,
    attempt_end,
)
from hascheduler.model.job import LIVE, OCCUPYING, TRANSITIONS, AttemptEnd, JobState, Move

CLASSIFIED_FIELDS = {
    "state": True,
    "attempt": True,
    "processor": True,
    "error": True,
    "cancel_requested_at_ms": True,
    "attempts.number": True,
    "attempts.processor": True,
    "attempts.outcome": True,
    "attempts.error": True,
}

_SOURCES: Mapping[type[JobMove], frozenset[JobState]] = {
    Dispatch: TRANSITIONS[Move.CLAIM].sources,
    Fail: TRANSITIONS[Move.FAIL].sources,
    Cancel: LIVE,
}


def riding(decisions: Sequence[Decision]) -> dict[str, Dispatch]:
    """Return the dispatches of a batch that ride with its fires, by job id."""
    made = {decision.job_id for decision in decisions if isinstance(decision, Fire)}
    return {
        decision.job_id: decision
        for decision in decisions
        if isinstance(decision, Dispatch) and decision.attempt == 1 and decision.job_id in made
    }


def freeing(decisions: Sequence[Decision]) -> list[JobMove]:
    """Return the moves of a batch that free slots, if nothing else in it about their jobs comes before them.

    The core gives these slots to other jobs in the same batch, so they are carried out first: what is promised never
    exceeds a limit, however few of the exchanges have an answer.
    """
    earlier = {decision.job_id for decision in decisions if isinstance(decision, Fire)}
    moves: list[JobMove] = []
    for decision in decisions:
        if isinstance(decision, JobMove):
            if not isinstance(decision, Dispatch) and decision.job_id not in earlier:
                moves.append(decision)
            earlier.add(decision.job_id)
    return moves


def classify_outcome(decision: JobMove, job: Mapping[str, Any] | None) -> Settlement:
    """Return the settlement of ``decision`` by ``job``, with its `CLASSIFIED_FIELDS`; None if the job is gone."""
    if job is None:
        return Settlement.LOST
    if is_carried_out(decision, job):
        return Settlement.DONE
    if str(job.get("state")) in _sources(decision) and job.get("attempt") == _demanded(decision):
        return Settlement.UNKNOWN
    return Settlement.LOST


def _sources(decision: JobMove) -> frozenset[JobState]:
    return TRANSITIONS[decision.move].sources if isinstance(decision, Requeue) else _SOURCES[type(decision)]


def _demanded(decision: JobMove) -> int:
    return decision.attempt - 1 if isinstance(decision, Dispatch) else decision.attempt


def is_carried_out(decision: JobMove, job: Mapping[str, Any]) -> bool:
    """Return True if ``job`` shows that this decision was carried out, now or earlier."""
    state, newest = str(job.get("state")), job.get("attempt")
    match decision:
        case Dispatch(_, attempt, processor):
            if state == JobState.CANCELLED:
                return False  # promised or not, no message may be sent any more
            if state in OCCUPYING and newest == attempt:
                return bool(job.get("processor") == processor)
            return has_attempt_record(job, number=attempt, processor=processor)
        case Requeue(_, attempt, reason):
            # A `Fail` of that attempt leaves the same record, but ends the job with the same error.
            failed_instead = state == JobState.FAILED and newest == attempt and job.get("error") == reason
            # 0.2.0 recorded timed-out attempts as lost.
            ends = {AttemptEnd.LOST.value, attempt_end(reason)}
            is_recorded = any(has_attempt_record(job, number=attempt, outcome=end, error=reason) for end in ends)
            return is_recorded and not failed_instead
        case Fail(_, attempt, reason):
            return state == JobState.FAILED and newest == attempt and job.get("error") == reason
        case Cancel():
            is_asked = job.get("cancel_requested_at_ms") is not None
            return state == JobState.CANCELLED or (is_asked and state != JobState.PENDING)


def has_attempt_record(job: Mapping[str, Any], **wanted: Any) -> bool:
    """Return True if one of the ended attempts has all these fields."""
    records = job.get("attempts")
    return isinstance(records, list) and any(
        isinstance(record, Mapping) and all(record.get(name) == value for name, value in wanted.items())
        for record in records
    )
