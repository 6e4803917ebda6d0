"""The live jobs of each schedule: of that schedule, and no other of its name (see `ScheduleId`)."""

from hascheduler.model.job import JobRef, ScheduleId

_Maker = tuple[str, int | str]
"""The name of a schedule and its creation; the tenant for jobs without a creation (those of 0.2.0)."""


class JobsBySchedule:
    """Owner of the ids by schedule."""

    def __init__(self) -> None:
        self._of: dict[_Maker, dict[str, None]] = {}

    def of(self, schedule: ScheduleId) -> dict[str, None]:
        """Its jobs, in the order in which they were added, those without a creation first; read only, and valid until
        the next change."""
        own, undated = self._of.get(_maker(schedule), _NONE), self._of.get((schedule.name, schedule.tenant))
        return own if undated is None or undated is own else {**undated, **own}

    def add(self, job: JobRef) -> None:
        if job.made_by is not None:
            self._of.setdefault(_maker(job.made_by), {})[job.id] = None

    def move(self, before: JobRef | None, job: JobRef) -> None:
        """``job`` was known as ``before``; None: it was not known."""
        known, now = None if before is None else before.made_by, job.made_by
        if known is not None and now is not None and _maker(known) == _maker(now):
            return
        if before is not None:
            self.remove(before)
        self.add(job)

    def remove(self, job: JobRef) -> None:
        if job.made_by is None:
            return
        maker = _maker(job.made_by)
        jobs = self._of.get(maker)
        if jobs is not None:
            jobs.pop(job.id, None)
            if not jobs:
                del self._of[maker]


def _maker(schedule: ScheduleId) -> _Maker:
    return (schedule.name, schedule.tenant if schedule.created_at_ms is None else schedule.created_at_ms)


_NONE: dict[str, None] = {}
