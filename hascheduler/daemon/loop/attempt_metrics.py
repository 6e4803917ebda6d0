"""Count how attempts begin and end, from the core's inputs and the leader's decisions.

The stream shows that a job waits again, but not always why: an attempt that this leader revoked is known by its
decision, a failed one by the counted failure, and any other was given back.
"""

from collections.abc import Callable, Iterable, Sequence

from hascheduler.dispatch.decisions import Decision, Fail, Requeue, attempt_end
from hascheduler.dispatch.inputs import Input, Resynced
from hascheduler.mirror.changes import JobGone, JobSeen
from hascheduler.model.job import OCCUPYING, AttemptEnd, JobRef, JobState
from hascheduler.telemetry.metrics_replica import ReplicaMetrics


class AttemptMetrics:
    """Owner of the attempts in progress, as last seen. It counts only while ``counting``: only one replica does."""

    def __init__(self, metrics: ReplicaMetrics, counting: Callable[[], bool]) -> None:
        self._metrics = metrics
        self._counting = counting
        self._held: dict[str, JobRef] = {}
        self._revoked: dict[str, tuple[int, str]] = {}

    def decided(self, decisions: Iterable[Decision]) -> None:
        """Take the decisions before the stream can show them."""
        for decision in decisions:
            if isinstance(decision, Requeue | Fail) and decision.job_id in self._held:
                self._revoked[decision.job_id] = (decision.attempt, attempt_end(decision.reason))

    def seen(self, inputs: Sequence[Input]) -> None:
        """Take the inputs that the core has seen."""
        counting = self._counting()
        for seen in inputs:
            match seen:
                case JobSeen(job) if job.state in OCCUPYING:
                    before = self._held.get(job.id)
                    self._held[job.id] = job
                    if counting and _is_first_start(before, job):
                        self._metrics.started(job.definition, (job.started_at_ms or 0) - _due_ms(job))
                case JobSeen(job):
                    self._ended(job.id, job, None, counting=counting)
                case JobGone(job_id, state):
                    self._ended(job_id, None, state, counting=counting)
                case Resynced():
                    self._held.clear()
                    self._revoked.clear()
                case _:
                    pass

    def _ended(self, job_id: str, waits: JobRef | None, state: JobState | None, *, counting: bool) -> None:
        attempt = self._held.pop(job_id, None)
        if attempt is None:
            return
        outcome: str | None
        number, end = self._revoked.pop(job_id, (None, ""))
        if number == attempt.attempt:
            outcome = end
        elif waits is None:
            outcome = state  # None if deleted by hand, so its end is unknown
        elif waits.losses > attempt.losses:
            outcome = AttemptEnd.LOST
        elif waits.failures > attempt.failures:
            outcome = JobState.FAILED
        else:
            outcome = AttemptEnd.GIVEN_BACK
        if counting and outcome is not None:
            self._metrics.ended(attempt.definition, str(outcome))


def _is_first_start(before: JobRef | None, job: JobRef) -> bool:
    """Return True if the stream has just shown the first start of the job."""
    if job.state is not JobState.RUNNING or job.first_started_at_ms != job.started_at_ms:
        return False
    return before is None or before.state is not JobState.RUNNING or before.attempt != job.attempt


def _due_ms(job: JobRef) -> int:
    return max(job.submitted_at_ms, job.not_before_ms or 0, job.retry_at_ms or 0)
