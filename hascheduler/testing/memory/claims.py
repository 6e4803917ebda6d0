"""Applies the leader's decisions: first those about schedules, then those about jobs, each job's in their order.

A decision whose job is in another state than it demands is DONE if the document shows that it was applied before, and
LOST if not.
"""

from collections.abc import Sequence

from hascheduler.dispatch.decisions import (
    Cancel,
    CountFailures,
    Decision,
    Dispatch,
    Fail,
    Fire,
    JobMove,
    RecordVerdict,
    ReleaseShare,
    Requeue,
    ResetCursor,
    Settlement,
    attempt_end,
)
from hascheduler.dispatch.settlements import is_carried_out, riding
from hascheduler.errors import StoreUnavailable
from hascheduler.model.collection import Collection
from hascheduler.model.job import JobState, Move
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import AttemptOutcome
from hascheduler.testing.memory.database import Document, MemoryConnection, MemoryDatabase
from hascheduler.testing.memory.state_updates import back_to_pending, dispatched, may, to_terminal
from hascheduler.testing.memory.time_outcomes import apply_reset, apply_time_outcomes, count_failures


class MemoryClaimStore:
    """`hascheduler.ports.ClaimStore`; a job that fails here is deleted ``job_retention_ms`` later."""

    def __init__(self, connection: MemoryConnection, job_retention_ms: int) -> None:
        self._connection = connection
        self._job_retention_ms = job_retention_ms

    async def apply(self, decisions: Sequence[Decision], at_ms: WallMs, *, majority: bool) -> list[Settlement]:
        # Every write here is durable at once, with or without a majority.
        settled: dict[Decision, Settlement] = {}
        try:
            async with self._connection.exchange("claims.apply") as database:
                outcomes = [decision for decision in decisions if isinstance(decision, Fire | RecordVerdict)]
                late = [each for each in riding(decisions).values() if database.find(Collection.JOBS, each.job_id)]
                settled.update(apply_time_outcomes(database, outcomes, at_ms, self._job_retention_ms).items())
                for decision in decisions:
                    if isinstance(decision, CountFailures):
                        settled[decision] = count_failures(database, decision)
                    if isinstance(decision, ResetCursor):
                        settled[decision] = apply_reset(database, decision)
                for decision in decisions:
                    if isinstance(decision, ReleaseShare):
                        settled[decision] = _release(database, decision)
                for decision in decisions:
                    if isinstance(decision, JobMove):
                        settled[decision] = self._move(database, decision, at_ms, is_late=decision in late)
        except StoreUnavailable:
            return [Settlement.UNKNOWN] * len(decisions)
        return [settled[decision] for decision in decisions]

    def _move(self, database: MemoryDatabase, decision: JobMove, at_ms: WallMs, *, is_late: bool) -> Settlement:
        job = database.find(Collection.JOBS, decision.job_id)
        if job is None:
            return Settlement.LOST
        attempt = job.get("attempt")
        match decision:
            case Dispatch() if not is_late and may(Move.CLAIM, job) and attempt == decision.attempt - 1:
                fields = dispatched(job, decision.attempt, decision.processor, at_ms)
            case Requeue() if may(decision.move, job) and attempt == decision.attempt:
                fields = back_to_pending(job, attempt_end(decision.reason), decision.reason, at_ms)
            case Fail() if may(Move.FAIL, job) and attempt == decision.attempt:
                end = AttemptOutcome(JobState.FAILED, error=decision.reason)
                fields = to_terminal(job, end, attempt_end(decision.reason), at_ms, kept_ms=self._job_retention_ms)
            case Cancel() if may(Move.CANCEL, job) and attempt == decision.attempt:
                end = AttemptOutcome(JobState.CANCELLED, error=decision.reason)
                fields = to_terminal(job, end, end.state.value, at_ms, kept_ms=self._job_retention_ms)
            case Cancel() if may(Move.STOP, job) and attempt == decision.attempt and not _is_asked_to_stop(job):
                fields = {"cancel_requested_at_ms": at_ms, "rev": job["rev"] + 1}
            case _:
                return Settlement.DONE if is_carried_out(decision, job) else Settlement.LOST
        database.update(Collection.JOBS, job, fields)
        return Settlement.DONE


def _release(database: MemoryDatabase, decision: ReleaseShare) -> Settlement:
    share = database.find(Collection.SHARES, decision.key)
    if share is None or share.get("rev") != decision.rev:
        return Settlement.LOST
    database.update(Collection.SHARES, share, {"released": decision.rev})
    return Settlement.DONE


def _is_asked_to_stop(job: Document) -> bool:
    return job.get("cancel_requested_at_ms") is not None
