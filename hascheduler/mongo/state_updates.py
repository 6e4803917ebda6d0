"""The writes that move a job from one state to another, as filters and update pipelines.

All of them are built from `hascheduler.model.job.TRANSITIONS`, raise ``rev`` by one, and keep the record of the
attempt that ends: ``{number, processor, dispatched_at_ms, started_at_ms, finished_at_ms, outcome, error}``, with its
``traceback`` if it has one and is among the `TRACEBACKS_KEPT_MAX` newest. They are pipelines because that record is
made of fields that the same write clears. Every value from outside is a ``$literal``: otherwise the server would read a
text that begins with a dollar sign as the name of a field.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hascheduler.dispatch.decisions import NOT_STARTED, Dispatch
from hascheduler.model.documents.job import RETRY_KEYS_KEPT_MAX, REVIVED_FIELDS, stored_last_error
from hascheduler.model.job import ATTEMPTS_KEPT_MAX, OCCUPYING, TRANSITIONS, AttemptEnd, JobState, Move
from hascheduler.model.values.instants import WallMs, to_datetime
from hascheduler.model.values.redaction import TRACEBACKS_KEPT_MAX
from hascheduler.ports import AttemptOutcome
from hascheduler.schema.retry import LOST_PAUSES_MS

NEXT_REV = {"$add": ["$rev", 1]}

BY_ID = "_id_"
"""The index hint of writes that name their jobs and the required states.

Without it the server tries the index of the states as well, each time; if it takes that one, which the write changes,
the write costs two to three times as much.
"""

Pipeline = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class AttemptTimes:
    """When a running attempt was dispatched and started, in ms since the epoch."""

    dispatched_at_ms: int
    started_at_ms: int

    def filter(self, expire_at: datetime) -> dict[str, Any]:
        """Return the conditions, besides those on the attempt, under which a job can be ended without a pipeline.

        A job with an idempotency key has a ``kept_until``. A plain update can't choose the later of the two, so it is
        only for jobs that ``expire_at`` keeps for long enough.
        """
        return {
            "dispatched_at_ms": self.dispatched_at_ms,
            "started_at_ms": self.started_at_ms,
            "attempts": {"$type": "array"},
            "kept_until": {"$not": {"$gt": expire_at}},
        }


def source_states(move: Move) -> list[str]:
    """Return the states that ``move`` may start from."""
    return sorted(state.value for state in TRANSITIONS[move].sources)


def claimed_fields(claim: Dispatch, at_ms: WallMs) -> dict[str, Any]:
    """Return the fields of a dispatched job that describe its newest attempt."""
    return {
        "state": JobState.DISPATCHED.value,
        "attempt": claim.attempt,
        "processor": claim.processor,
        "dispatched_at_ms": at_ms,
        "started_at_ms": None,
    }


def back_to_pending(
    outcome: str,
    error: str | None,
    at_ms: WallMs,
    *,
    retry_at_ms: WallMs | None = None,
    traceback: str | None = None,
) -> Pipeline:
    """Return the update that ends the attempt with ``outcome`` and lets the job wait for its next one.

    If the attempt ran, it counts as a failure or a loss, unless it was given back; if it was not started, it counts as
    that. After a loss the job waits as `LOST_PAUSES_MS` defines. It waits no longer than it would by the server's
    clock: the processor's may be far ahead.
    """
    retry_at: Any = None if retry_at_ms is None else _no_later_than(at_ms, retry_at_ms - at_ms)
    if outcome == AttemptEnd.LOST:
        pause_ms = {"$arrayElemAt": [LOST_PAUSES_MS, {"$min": [_LOSSES, len(LOST_PAUSES_MS) - 1]}]}
        waits = {"$and": [{"$gt": [_LOSSES, 0]}, {"$eq": ["$state", JobState.RUNNING.value]}]}
        retry_at = {"$cond": [waits, _no_later_than(at_ms, pause_ms), None]}
    last_error = stored_last_error(outcome, error)
    return [
        {
            "$set": {
                "attempts": _appended_attempt(outcome, error, at_ms, traceback),
                "state": JobState.PENDING.value,
                "processor": None,
                "dispatched_at_ms": None,
                "started_at_ms": None,
                "retry_at_ms": retry_at,
                "rev": NEXT_REV,
                **_counted(outcome),
                **({"unstarted": {"$add": [{"$ifNull": ["$unstarted", 0]}, 1]}} if error == NOT_STARTED else {}),
                **({"last_error": _numbered(last_error)} if last_error else {}),
            }
        }
    ]


def _numbered(last_error: str) -> dict[str, Any]:
    return {"$concat": [{"$toString": "$attempt"}, " ", {"$literal": last_error}]}


def _no_later_than(at_ms: WallMs, pause_ms: Any) -> dict[str, Any]:
    return {"$min": [{"$add": [at_ms, pause_ms]}, {"$add": [{"$toLong": "$$NOW"}, pause_ms]}]}


def revived(waits_for: Sequence[str] = (), key: Mapping[str, Any] | None = None) -> Pipeline:
    """Return the update that starts an ended job over; its new attempt number makes every earlier decision stale.

    ``key`` is remembered among its ``retry_keys``.
    """
    counted: dict[str, Any] = {
        "attempt": {"$add": ["$attempt", 1]},
        "revivals": {"$add": [{"$ifNull": ["$revivals", 0]}, 1]},
    }
    if key is not None:
        held = {"$concatArrays": [{"$ifNull": ["$retry_keys", []]}, [{"$literal": dict(key)}]]}
        counted["retry_keys"] = {"$slice": [held, -RETRY_KEYS_KEPT_MAX]}
    return [{"$set": {**REVIVED_FIELDS, **counted, "waits_for": {"$literal": list(waits_for)}, "rev": NEXT_REV}}]


def to_terminal(end: AttemptOutcome, attempt_outcome: str, at_ms: WallMs, *, kept_ms: int) -> Pipeline:
    """Return the update that ends the job as ``end`` says, and its attempt if a processor holds one."""
    return [{"$set": terminal_fields(end, attempt_outcome, at_ms, kept_ms=kept_ms)}]


def plain_terminal_update(
    end: AttemptOutcome, attempt: tuple[int, str], times: AttemptTimes, at_ms: WallMs, *, kept_ms: int
) -> dict[str, Any]:
    """Return `to_terminal` without a pipeline, for a job that ``times.filter`` matches and whose attempt did not fail.

    ``attempt`` is its number and processor. Without a pipeline the server reads no value as the name of a field.
    """
    record = _record((*attempt, times.dispatched_at_ms, times.started_at_ms), end.state.value, end.error, at_ms)
    return {
        "$set": {
            "state": end.state.value,
            "processor": None,
            "result": end.result,
            "error": end.error,
            "finished_at_ms": at_ms,
            "expire_at": expiry(at_ms, kept_ms),
        },
        "$push": {"attempts": {"$each": [record], "$slice": -ATTEMPTS_KEPT_MAX}},
        "$inc": {"rev": 1},
    }


def expiry(ended_at_ms: int, kept_ms: int) -> datetime:
    """Return when a job is deleted if nothing keeps it for longer."""
    return to_datetime(ended_at_ms + kept_ms)


def terminal_fields(end: AttemptOutcome, attempt_outcome: str, at_ms: WallMs, *, kept_ms: int) -> dict[str, Any]:
    """Return the fields that `to_terminal` sets; the job is deleted ``kept_ms`` after ``at_ms``."""
    return {
        "attempts": _appended_attempt(attempt_outcome, end.error, at_ms, end.traceback),
        "state": end.state.value,
        "processor": None,
        "result": {"$literal": end.result},
        "error": {"$literal": end.error},
        "finished_at_ms": at_ms,
        # ``kept_until`` is the earliest deletion of a job with an idempotency key.
        "expire_at": {"$max": [expiry(at_ms, kept_ms), "$kept_until"]},
        "rev": NEXT_REV,
        **_counted(attempt_outcome),
    }


def cancelled(at_ms: WallMs, kept_ms: int) -> Pipeline:
    """Return the update that cancels a waiting job, asks a running one to stop, and leaves all others as they are."""
    ended = terminal_fields(AttemptOutcome(JobState.CANCELLED), JobState.CANCELLED.value, at_ms, kept_ms=kept_ms)
    requested = {"cancel_requested_at_ms": at_ms, "rev": NEXT_REV}
    not_requested_yet = {"$eq": [{"$ifNull": ["$cancel_requested_at_ms", None]}, None]}
    return [
        {
            "$replaceWith": {
                "$switch": {
                    "branches": [
                        {
                            "case": {"$in": ["$state", source_states(Move.CANCEL)]},
                            "then": {"$mergeObjects": ["$$ROOT", ended]},
                        },
                        {
                            "case": {"$and": [{"$in": ["$state", source_states(Move.STOP)]}, not_requested_yet]},
                            "then": {"$mergeObjects": ["$$ROOT", requested]},
                        },
                    ],
                    "default": "$$ROOT",
                }
            }
        }
    ]


_LOSSES = {"$ifNull": ["$losses", 0]}


def _counted(outcome: str) -> dict[str, Any]:
    """Return the count that an attempt with this end raises, if it ran."""
    one = {"$cond": [{"$eq": ["$state", JobState.RUNNING.value]}, 1, 0]}
    if outcome == AttemptEnd.LOST:
        return {"losses": {"$add": [_LOSSES, one]}}
    if outcome == JobState.FAILED:
        return {"failures": {"$add": [{"$ifNull": ["$failures", 0]}, one]}}
    return {}


def _appended_attempt(outcome: str, error: str | None, at_ms: WallMs, traceback: str | None) -> dict[str, Any]:
    held = ("$attempt", "$processor", "$dispatched_at_ms", "$started_at_ms")
    record = _record(held, str(outcome), {"$literal": error}, at_ms)
    before: dict[str, Any] = {"$cond": [{"$isArray": "$attempts"}, "$attempts", []]}
    if traceback is not None:
        record["traceback"] = {"$literal": traceback}
        before = _without_old_tracebacks(before)
    occupying = {"$in": ["$state", sorted(state.value for state in OCCUPYING)]}
    return {"$slice": [{"$concatArrays": [before, {"$cond": [occupying, [record], []]}]}, -ATTEMPTS_KEPT_MAX]}


def _without_old_tracebacks(attempts: dict[str, Any]) -> dict[str, Any]:
    """Return ``attempts`` with room for one more traceback."""
    kept = TRACEBACKS_KEPT_MAX - 1
    without = {"$unsetField": {"field": "traceback", "input": "$$this"}}
    old = {"$slice": [attempts, {"$max": [{"$subtract": [{"$size": attempts}, kept]}, 0]}]}
    return {"$concatArrays": [{"$map": {"input": old, "in": without}}, {"$slice": [attempts, -kept]}]}


def _record(held: tuple[Any, Any, Any, Any], outcome: str, error: Any, at_ms: WallMs) -> dict[str, Any]:
    """Return the record of the attempt.

    ``held`` is its number and processor, and when it was dispatched and started; or the names of these fields.
    """
    fields = ("number", "processor", "dispatched_at_ms", "started_at_ms")
    return {**dict(zip(fields, held, strict=True)), "finished_at_ms": at_ms, "outcome": outcome, "error": error}
