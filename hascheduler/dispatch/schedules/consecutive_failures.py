"""The number of jobs of a schedule that failed in a row, for schedules that are paused after too many.

Every replica counts the ends that it sees; the leader stores the count, so that it outlives all replicas. A job that
ended while no replica ran is not counted.
"""

from collections.abc import Callable

from hascheduler.dispatch.decisions import CountFailures
from hascheduler.model.job import JobState
from hascheduler.model.values.instants import WallMs
from hascheduler.schema.schedule import ScheduleRef


class ConsecutiveFailures:
    """Owner of the counts that are not stored yet."""

    def __init__(self) -> None:
        self._counted: dict[str, int] = {}

    def schedule_seen(self, schedule: ScheduleRef, before: ScheduleRef | None) -> None:
        is_edited = before is not None and before.rev != schedule.rev
        if is_edited or self._counted.get(schedule.name) == schedule.failures:
            self._counted.pop(schedule.name, None)

    def schedule_gone(self, name: str) -> None:
        self._counted.pop(name, None)

    def job_ended(self, schedule: ScheduleRef, state: JobState | None) -> None:
        """Count the end of a job; ``state`` None or cancelled says nothing about its work."""
        if schedule.policy.pause_after_failures is None:
            return
        known = self._counted.get(schedule.name, schedule.failures)
        if state is JobState.FAILED:
            self._counted[schedule.name] = known + 1
        elif state is JobState.SUCCEEDED and known:
            self._counted[schedule.name] = 0

    def to_count(
        self, now: WallMs, schedule_of: Callable[[str], ScheduleRef | None], is_promised: Callable[[str], bool]
    ) -> list[CountFailures]:
        """The counts to store, and with them the schedules to pause."""
        decisions = []
        for name, failures in self._counted.items():
            schedule = schedule_of(name)
            if schedule is None or failures == schedule.failures or is_promised(name):
                continue
            limit = schedule.policy.pause_after_failures
            is_too_many = limit is not None and failures >= limit and schedule.paused_at_ms is None
            pause_at_ms = now if is_too_many else None
            decisions.append(CountFailures(name, schedule.rev, failures, pause_at_ms, schedule.created_at_ms))
        return decisions
