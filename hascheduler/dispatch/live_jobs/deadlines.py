"""The deadlines of jobs: when they expire, time out, or have been dispatched too often without a start.

Both one attempt and all attempts of a job may time out. The processor itself ends an attempt at its timeout; if it does
not, the leader does so `timeout_grace_ms` later. If the processor reports that the attempt's thread goes on, the leader
waits for the processor, or for its loss: the slot and the locks of the job are in use until the thread has ended. The
clocks of processors differ from the leader's, so an attempt is taken to have begun neither before it was dispatched nor
after it was seen to run. A job expires if it has not begun in time.
"""

from collections.abc import Sequence

from hascheduler.dispatch.config import DispatchConfig
from hascheduler.dispatch.decisions import NOT_STARTED, TIMED_OUT
from hascheduler.dispatch.rules import Rules
from hascheduler.dispatch.timers import Timers
from hascheduler.model.job import UNSTARTED_MAX, JobRef, JobState

EXPIRED = "expired before it started"
TIMED_OUT_IN_ALL = f"{TIMED_OUT} in all"
NEVER_STARTED = f"{NOT_STARTED}; {UNSTARTED_MAX} attempts did not start, the most allowed"


class Deadlines:
    """Owner of one timer for each job that has a deadline."""

    def __init__(self, config: DispatchConfig, rules: Rules) -> None:
        self._config = config
        self._rules = rules
        self._timers = Timers()
        self._began: dict[str, tuple[int, int]] = {}

    def seen(self, job: JobRef, now: int) -> None:
        """Take the newest state of a live job."""
        if job.expires_at_ms is None and job.unstarted < UNSTARTED_MAX:
            rules = self._rules.definitions.get(job.definition)
            if rules is None or (rules.timeout_ms is None and rules.total_timeout_ms is None):
                # The case of most jobs, at every change.
                if job.id in self._timers:
                    self.gone(job.id)
                return
        if job.state is JobState.RUNNING:
            known = self._began.get(job.id)
            if known is None or known[0] != job.attempt:
                self._began[job.id] = (job.attempt, min(_began_ms(job), now))
        else:
            self._began.pop(job.id, None)
        self._set(job)

    def redefined(self, job: JobRef) -> None:
        """Take the changed rules of a live job."""
        self._set(job)

    def gone(self, job_id: str) -> None:
        self._timers.clear(job_id)
        self._began.pop(job_id, None)

    def postpone(self, job_id: str, until_ms: int) -> None:
        """Let `take_due` return the job again at ``until_ms``."""
        self._timers.set(job_id, until_ms)

    def take_due(self, now: int, limit: int) -> Sequence[str]:
        """Remove and return the ids of jobs with a deadline that is due."""
        return [job_id for job_id, _ in self._timers.take_due(now, limit)]

    def next_at(self) -> int | None:
        return self._timers.next_at()

    def over(self, job: JobRef, now: int) -> str:
        """Return why the time of ``job`` is over now; "" if it is not."""
        found = self._ends(job)
        due = [(at_ms, why) for at_ms, why in found if at_ms <= now]
        return min(due)[1] if due else ""

    def _set(self, job: JobRef) -> None:
        ends = self._ends(job)
        if ends:
            self._timers.set(job.id, min(ends)[0])
        elif job.id in self._timers:
            self._timers.clear(job.id)

    def _ends(self, job: JobRef) -> list[tuple[int, str]]:
        if job.state is JobState.DISPATCHED or job.is_overdue:
            return []
        rules = self._rules.definition(job.definition)
        grace_ms = self._config.timeout_grace_ms if job.state is JobState.RUNNING else 0
        ends: list[tuple[int, str]] = []
        if job.state is JobState.PENDING and job.unstarted >= UNSTARTED_MAX:
            ends.append((0, NEVER_STARTED))
        end_ms = rules.end_of(job.first_started_at_ms)
        if end_ms is not None:
            ends.append((end_ms + grace_ms, TIMED_OUT_IN_ALL))
        if job.state is JobState.RUNNING:
            if rules.timeout_ms is not None:
                _, began_ms = self._began.get(job.id) or (job.attempt, _began_ms(job))
                ends.append((began_ms + rules.timeout_ms + grace_ms, TIMED_OUT))
        elif job.expires_at_ms is not None and job.first_started_at_ms is None:
            ends.append((job.expires_at_ms, EXPIRED))
        return ends


def _began_ms(job: JobRef) -> int:
    return max(job.started_at_ms or 0, job.dispatched_at_ms or 0)
