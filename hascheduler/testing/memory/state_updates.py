"""The moves of a job as changes of its stored fields; `TRANSITIONS` defines from which states each may start.

Each raises ``rev`` by one, and each that ends an attempt keeps its record: ``{number, processor, dispatched_at_ms,
started_at_ms, finished_at_ms, outcome, error}``, with its ``traceback`` if it has one and is among the
`TRACEBACKS_KEPT_MAX` newest.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from hascheduler.dispatch.decisions import NOT_STARTED
from hascheduler.model.documents.job import RETRY_KEYS_KEPT_MAX, REVIVED_FIELDS, stored_last_error
from hascheduler.model.job import ATTEMPTS_KEPT_MAX, OCCUPYING, TRANSITIONS, AttemptEnd, JobState, Move
from hascheduler.model.values.instants import WallMs, to_datetime
from hascheduler.model.values.redaction import TRACEBACKS_KEPT_MAX
from hascheduler.ports import AttemptOutcome
from hascheduler.schema.retry import lost_pause_ms
from hascheduler.testing.memory.database import Document


def may(move: Move, job: Document) -> bool:
    """Return True if ``move`` may start from the state of ``job``."""
    return job.get("state") in TRANSITIONS[move].sources


def may_be_cancelled(job: Document) -> bool:
    """Return True if a cancel changes it: it waits, or it runs and was not asked to stop before."""
    return may(Move.CANCEL, job) or (may(Move.STOP, job) and job.get("cancel_requested_at_ms") is None)


def is_held(job: Document, attempt: int, processor_id: str) -> bool:
    """Return True if that attempt is the job's newest, and that processor has it."""
    return job.get("attempt") == attempt and job.get("processor") == processor_id


def dispatched(job: Document, attempt: int, processor_id: str, at_ms: WallMs) -> dict[str, Any]:
    return {
        "state": JobState.DISPATCHED,
        "attempt": attempt,
        "processor": processor_id,
        "dispatched_at_ms": at_ms,
        "started_at_ms": None,
        "rev": job["rev"] + 1,
    }


def started(job: Document, at_ms: WallMs) -> dict[str, Any]:
    first_ms = job.get("first_started_at_ms")
    return {
        "state": JobState.RUNNING,
        "started_at_ms": at_ms,
        "first_started_at_ms": at_ms if first_ms is None else first_ms,
        "progress": None,
        "rev": job["rev"] + 1,
    }


def back_to_pending(
    job: Document,
    outcome: str,
    error: str | None,
    at_ms: WallMs,
    *,
    retry_at_ms: WallMs | None = None,
    traceback: str | None = None,
) -> dict[str, Any]:
    """End the attempt with ``outcome``, and let the job wait for its next one.

    If the attempt ran, it counts as a failure or as a loss, unless it was given back; a loss has a pause of its own. If
    it was not taken up, it counts as not started.
    """
    counted = _counted(job, outcome)
    if outcome == AttemptEnd.LOST and counted:
        pause_ms = lost_pause_ms(counted["losses"])
        retry_at_ms = WallMs(at_ms + pause_ms) if pause_ms else None
    if error == NOT_STARTED:
        counted["unstarted"] = int(job.get("unstarted") or 0) + 1
    last_error = stored_last_error(outcome, error)
    return {
        **counted,
        **({"last_error": f"{job['attempt']} {last_error}"} if last_error else {}),
        "retry_at_ms": retry_at_ms,
        "attempts": _attempts_with(job, outcome, error, at_ms, traceback),
        "state": JobState.PENDING,
        "processor": None,
        "dispatched_at_ms": None,
        "started_at_ms": None,
        "rev": job["rev"] + 1,
    }


def to_terminal(
    job: Document, end: AttemptOutcome, attempt_outcome: str, at_ms: WallMs, *, kept_ms: int
) -> dict[str, Any]:
    """End the job with ``end``, and its attempt if a processor holds one."""
    expire_at = to_datetime(at_ms + kept_ms)
    return {
        **_counted(job, attempt_outcome),
        "attempts": _attempts_with(job, attempt_outcome, end.error, at_ms, end.traceback),
        "state": end.state,
        "processor": None,
        "result": end.result,
        "error": end.error,
        "finished_at_ms": at_ms,
        "expire_at": max(expire_at, job.get("kept_until", expire_at)),
        "rev": job["rev"] + 1,
    }


def cancelled(job: Document, at_ms: WallMs, error: str | None = None, *, kept_ms: int) -> dict[str, Any]:
    """Cancel a waiting job with that ``error``, ask a running one to stop, and change no other."""
    if may(Move.CANCEL, job):
        end = AttemptOutcome(JobState.CANCELLED, error=error)
        return to_terminal(job, end, end.state.value, at_ms, kept_ms=kept_ms)
    return {"cancel_requested_at_ms": at_ms, "rev": job["rev"] + 1} if may_be_cancelled(job) else {}


def revived(job: Document, waits_for: Sequence[str] = (), key: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Start an ended job over; its new attempt number makes every earlier decision about it stale."""
    counted: dict[str, Any] = {"attempt": job["attempt"] + 1, "revivals": int(job.get("revivals") or 0) + 1}
    if key is not None:
        counted["retry_keys"] = [*(job.get("retry_keys") or ()), dict(key)][-RETRY_KEYS_KEPT_MAX:]
    return {**REVIVED_FIELDS, **counted, "waits_for": list(waits_for), "rev": job["rev"] + 1}


def _counted(job: Document, outcome: str) -> dict[str, int]:
    """Return the count that an attempt with that outcome raises, if it ran."""
    name = _COUNTS.get(str(outcome))
    return {name: int(job.get(name) or 0) + 1} if name and job.get("state") == JobState.RUNNING else {}


_COUNTS = {AttemptEnd.LOST.value: "losses", JobState.FAILED.value: "failures"}


def _attempts_with(job: Document, outcome: str, error: str | None, at_ms: WallMs, traceback: str | None) -> list[Any]:
    records = list(job.get("attempts") or ())
    if traceback is not None:
        old = max(len(records) - (TRACEBACKS_KEPT_MAX - 1), 0)
        records[:old] = [{name: record[name] for name in record if name != "traceback"} for record in records[:old]]
    if job.get("state") in OCCUPYING:
        records.append(
            {
                "number": job["attempt"],
                "processor": job["processor"],
                "dispatched_at_ms": job["dispatched_at_ms"],
                "started_at_ms": job["started_at_ms"],
                "finished_at_ms": at_ms,
                "outcome": str(outcome),
                "error": error,
                **({} if traceback is None else {"traceback": traceback}),
            }
        )
    return records[-ATTEMPTS_KEPT_MAX:]
