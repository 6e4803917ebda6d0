"""The settlement of a decision about a job, read from the job's document after the write was tried.

DONE when the document shows that this decision was carried out, now or earlier; UNKNOWN when it still could be (the
write met the document in between two other changes, so it is to be tried again); LOST otherwise: another writer was
first, or the job is gone.

A first attempt may be promised on top of the fire that makes its job, in the same batch: it *rides* with the fire. It
is carried out by the insert of the job, or not at all. Otherwise a leader that was deposed could meet, late, a job that
its successor has made for the same nominal time, and hand out what the successor does not know of.
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
    """By job id, the dispatches of a batch that ride with its fires."""
    made = {decision.job_id for decision in decisions if isinstance(decision, Fire)}
    return {
        decision.job_id: decision
        for decision in decisions
        if isinstance(decision, Dispatch) and decision.attempt == 1 and decision.job_id in made
    }


def freeing(decisions: Sequence[Decision]) -> list[JobMove]:
    """The moves of a batch that give slots back, where nothing else in it comes before them.

    The core hands these slots out again in the same batch, so they are carried out first: what is promised never
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
    """The settlement of ``decision`` by ``job``, with its `CLASSIFIED_FIELDS`; None: the job is gone."""
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
    """Whether ``job`` shows that this decision was carried out, now or earlier."""
    state, newest = str(job.get("state")), job.get("attempt")
    match decision:
        case Dispatch(_, attempt, processor):
            if state == JobState.CANCELLED:
                return False  # whether or not it was promised once, no message may be sent any more
            if state in OCCUPYING and newest == attempt:
                return bool(job.get("processor") == processor)
            return has_attempt_record(job, number=attempt, processor=processor)
        case Requeue(_, attempt, reason):
            # A fail of that attempt leaves the same record, but ends the job with the same words.
            failed_instead = state == JobState.FAILED and newest == attempt and job.get("error") == reason
            # 0.2.0 recorded what timed out as lost.
            ends = {AttemptEnd.LOST.value, attempt_end(reason)}
            is_recorded = any(has_attempt_record(job, number=attempt, outcome=end, error=reason) for end in ends)
            return is_recorded and not failed_instead
        case Fail(_, attempt, reason):
            return state == JobState.FAILED and newest == attempt and job.get("error") == reason
        case Cancel():
            is_asked = job.get("cancel_requested_at_ms") is not None
            return state == JobState.CANCELLED or (is_asked and state != JobState.PENDING)


def has_attempt_record(job: Mapping[str, Any], **wanted: Any) -> bool:
    """Whether one of the attempts that ended has all these fields."""
    records = job.get("attempts")
    return isinstance(records, list) and any(
        isinstance(record, Mapping) and all(record.get(name) == value for name, value in wanted.items())
        for record in records
    )
