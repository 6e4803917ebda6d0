"""Which live jobs come from one schedule."""

from hascheduler.model.job import schedule_of


class Siblings:
    def __init__(self) -> None:
        self._of: dict[str, dict[str, None]] = {}

    def of(self, schedule: str) -> dict[str, None]:
        """Its jobs, in the order in which they were added; read only, and true until the next change."""
        return self._of.get(schedule, _NONE)

    def add(self, job_id: str) -> None:
        schedule = schedule_of(job_id)
        if schedule is not None:
            self._of.setdefault(schedule, {})[job_id] = None

    def remove(self, job_id: str) -> None:
        schedule = schedule_of(job_id)
        jobs = self._of.get(schedule) if schedule is not None else None
        if jobs is not None and schedule is not None:
            jobs.pop(job_id, None)
            if not jobs:
                del self._of[schedule]


_NONE: dict[str, None] = {}
