"""Which live jobs come from one schedule, and which of them are held back until another has given its slot back."""

from hascheduler.model.job import schedule_of


class Siblings:
    def __init__(self) -> None:
        self._of: dict[str, dict[str, None]] = {}
        self._held: dict[str, dict[str, None]] = {}

    def of(self, schedule: str) -> list[str]:
        """Its jobs, in the order in which they were added."""
        return list(self._of.get(schedule, ()))

    def add(self, job_id: str) -> None:
        schedule = schedule_of(job_id)
        if schedule is not None:
            self._of.setdefault(schedule, {})[job_id] = None

    def remove(self, job_id: str) -> None:
        schedule = schedule_of(job_id)
        if schedule is None:
            return
        for table in (self._of, self._held):
            jobs = table.get(schedule)
            if jobs is not None:
                jobs.pop(job_id, None)
                if not jobs:
                    del table[schedule]

    def beside(self, job_id: str) -> list[str]:
        """The other jobs of its schedule."""
        schedule = schedule_of(job_id)
        jobs = self._of.get(schedule) if schedule is not None else None
        return [] if not jobs or len(jobs) == 1 else [other for other in jobs if other != job_id]

    def hold(self, job_id: str) -> None:
        schedule = schedule_of(job_id)
        if schedule is not None:
            self._held.setdefault(schedule, {})[job_id] = None

    def take_held(self, job_id: str) -> list[str]:
        """Those of its schedule that were held back; none of them is any more."""
        schedule = schedule_of(job_id)
        return list(self._held.pop(schedule, ())) if schedule is not None else []
