"""The jobs of one schedule that have not ended; those of an earlier schedule by its name do not count."""

from hascheduler.api.pages import PAGE_SIZE_MAX
from hascheduler.api.services import ApiServices
from hascheduler.errors import Conflict
from hascheduler.model.job import JobState, ScheduleId
from hascheduler.ports import JobFilter

LIVE_MAX = 1_000
# In the order of a job's life: a job that moves on between two reads is met twice rather than missed.
_STATES = (JobState.PENDING, JobState.DISPATCHED, JobState.RUNNING)


async def live_jobs(schedule: ScheduleId, services: ApiServices) -> list[str]:
    """Their ids, oldest first; `Conflict` if there are more than `LIVE_MAX`."""
    submitted: dict[str, int] = {}
    for state in _STATES:
        after = None
        while True:
            jobs = await services.jobs.list(JobFilter(state, made_by=schedule), after, PAGE_SIZE_MAX)
            submitted |= {job["_id"]: _instant(job.get("submitted_at_ms")) for job in jobs}
            if len(submitted) > LIVE_MAX:
                raise Conflict(f"schedule {schedule.name!r} has more than {LIVE_MAX} jobs that have not ended")
            if len(jobs) < PAGE_SIZE_MAX:
                break
            after = jobs[-1]["_id"]
    return sorted(submitted, key=lambda job_id: (submitted[job_id], job_id))


def _instant(value: object) -> int:
    return value if isinstance(value, int) else 0
