"""Which nominal times of a schedule have a job already, of a fire or of a backfill."""

from collections.abc import Sequence
from dataclasses import dataclass

from hascheduler.api.services import ApiServices
from hascheduler.model.instants import WallMs
from hascheduler.model.job import ScheduleId, backfill_job_id, fire_job_id

EARLIEST_MS = 1_000_000_000_000
"""2001-09-09T01:46:40Z. From here on the ids of jobs are in the order of their nominal times, all of one length."""
_READ_AT_ONCE_MAX = 1_000


@dataclass(frozen=True, slots=True)
class JobsOfTimes:
    """The ids of the jobs that are kept still, by nominal time; none of another schedule by the same name.

    An earlier one may have left its job under the id that a backfill would take: such a time is ``taken``, and its job
    gets an id that says whose it is.
    """

    schedule: ScheduleId
    fired: dict[WallMs, str]
    backfilled: dict[WallMs, str]
    taken: frozenset[WallMs]

    def id_of(self, nominal_ms: WallMs) -> str:
        """Of the job that the time has, or gets from a backfill."""
        known = self.fired.get(nominal_ms) or self.backfilled.get(nominal_ms)
        return known or _backfill_ids(self.schedule, nominal_ms)[nominal_ms in self.taken]


async def jobs_of_times(schedule: ScheduleId, times: Sequence[WallMs], services: ApiServices) -> JobsOfTimes:
    fires = {fire_job_id(schedule.name, nominal_ms): nominal_ms for nominal_ms in times}
    backfills = {id: nominal_ms for nominal_ms in times for id in _backfill_ids(schedule, nominal_ms)}
    ids = [*fires, *backfills]
    known = [
        job
        for first in range(0, len(ids), _READ_AT_ONCE_MAX)
        for job in await services.jobs.known(ids[first : first + _READ_AT_ONCE_MAX])
    ]
    own = [job.id for job in known if job.made_by is not None and job.made_by.is_same(schedule)]
    others = {job.id for job in known}.difference(own)
    return JobsOfTimes(
        schedule,
        fired={fires[id]: id for id in own if id in fires},
        backfilled={backfills[id]: id for id in own if id in backfills},
        taken=frozenset(backfills[id] for id in others if id in backfills),
    )


def _backfill_ids(schedule: ScheduleId, nominal_ms: WallMs) -> tuple[str, str]:
    """The id of a backfill's job, and the one that it has where the first is taken."""
    name, created_at_ms = schedule.name, schedule.created_at_ms
    return backfill_job_id(name, nominal_ms), backfill_job_id(name, nominal_ms, created_at_ms)
