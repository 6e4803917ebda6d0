"""The jobs of one schedule that have not ended: of that one, and of no other by its name."""

from hascheduler.api.pages import PAGE_SIZE_MAX
from hascheduler.api.services import ApiServices
from hascheduler.errors import Conflict
from hascheduler.model.job import JobState, ScheduleId
from hascheduler.ports import JobFilter

LIVE_MAX = 1_000
# In the order in which a job goes through them, so that one that moves on meanwhile is met twice rather than missed.
_STATES = (JobState.PENDING, JobState.DISPATCHED, JobState.RUNNING)


async def live_jobs(schedule: ScheduleId, services: ApiServices) -> list[str]:
    """Their ids, oldest first; `Conflict` where there are more than anybody would look through."""
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
