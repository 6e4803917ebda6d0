"""Held partitions: tenants for whom the leader must not decide (`hascheduler.model.partition`).

Jobs and schedules of a tenant in a held partition are kept aside as they were last seen, as if they were not there.
When the hold is lifted, all of them are seen again. What a processor has, and what is promised, goes on until it is
over: nothing of the partition is left then, and the hold can be released.
"""

from collections.abc import Iterable, Iterator
from itertools import chain

from hascheduler.mirror.changes import JobSeen, ScheduleSeen
from hascheduler.model.job import JobRef
from hascheduler.model.partition import partition_of
from hascheduler.schema.schedule import ScheduleRef


class HeldPartitions:
    """Owner of what is kept aside, and of what has yet to be."""

    def __init__(self) -> None:
        self._jobs: dict[int, dict[str, JobSeen]] = {}
        self._schedules: dict[int, dict[str, ScheduleSeen]] = {}
        self._partition_of: dict[str, int] = {}
        """Of each job that is kept aside, by id."""
        self._partition_of_schedule: dict[str, int] = {}
        self._leaving_jobs: dict[str, int] = {}
        self._leaving_schedules: dict[str, int] = {}

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def of(self, tenant: str) -> int | None:
        """Return the partition of that tenant if it is held."""
        if not self._jobs:  # nearly always
            return None
        partition = partition_of(tenant)
        return partition if partition in self._jobs else None

    def hold(self, partition: int, jobs: Iterable[JobRef], schedules: Iterable[ScheduleRef]) -> None:
        """Hold the partition; these are all live jobs and schedules, of any partition."""
        if partition in self._jobs:
            return
        self._jobs[partition], self._schedules[partition] = {}, {}
        self._leaving_jobs.update((job.id, partition) for job in jobs if partition_of(job.tenant) == partition)
        self._leaving_schedules.update(
            (schedule.name, partition) for schedule in schedules if partition_of(schedule.template.tenant) == partition
        )

    def lift(self, partition: int) -> list[JobSeen | ScheduleSeen]:
        """Return what was kept aside, to be seen again: schedules first, as jobs are of them."""
        aside: list[JobSeen | ScheduleSeen] = [
            *self._schedules.pop(partition, {}).values(),
            *self._jobs.pop(partition, {}).values(),
        ]
        for table in (self._partition_of, self._partition_of_schedule, self._leaving_jobs, self._leaving_schedules):
            for id in [id for id, of in table.items() if of == partition]:
                del table[id]
        return aside

    # What leaves

    def leaves(self, job: JobRef, partition: int) -> None:
        """A processor has it, or something is promised of it."""
        self._forget_job(job.id)
        self._leaving_jobs[job.id] = partition

    def schedule_leaves(self, schedule: ScheduleRef, partition: int) -> None:
        self.forget_schedule(schedule.name)
        self._leaving_schedules[schedule.name] = partition

    def leaving_jobs(self) -> list[str]:
        return list(self._leaving_jobs)

    def leaving_schedules(self) -> list[str]:
        return list(self._leaving_schedules)

    def left(self, partition: int) -> int:
        """Return how many of its jobs and schedules are not kept aside yet."""
        return sum(of == partition for of in chain(self._leaving_jobs.values(), self._leaving_schedules.values()))

    # What is kept aside

    def keep_job(self, seen: JobSeen, partition: int) -> None:
        self._leaving_jobs.pop(seen.job.id, None)
        self._jobs[partition][seen.job.id] = seen
        self._partition_of[seen.job.id] = partition

    def keep_schedule(self, seen: ScheduleSeen, partition: int) -> None:
        self._leaving_schedules.pop(seen.schedule.name, None)
        self._schedules[partition][seen.schedule.name] = seen
        self._partition_of_schedule[seen.schedule.name] = partition

    def forget_job(self, job_id: str) -> None:
        """It is gone."""
        self._leaving_jobs.pop(job_id, None)
        self._forget_job(job_id)

    def forget_schedule(self, name: str) -> None:
        self._leaving_schedules.pop(name, None)
        partition = self._partition_of_schedule.pop(name, None)
        if partition is not None:
            del self._schedules[partition][name]

    def kept_job(self, job_id: str) -> JobSeen | None:
        partition = self._partition_of.get(job_id)
        return None if partition is None else self._jobs[partition][job_id]

    def kept(self) -> Iterator[JobSeen | ScheduleSeen]:
        """Yield all that is kept aside, schedules first."""
        for schedules in self._schedules.values():
            yield from schedules.values()
        for jobs in self._jobs.values():
            yield from jobs.values()

    def count(self, partition: int) -> int:
        """Return how many of its jobs and schedules are kept aside."""
        return len(self._jobs.get(partition, ())) + len(self._schedules.get(partition, ()))

    def _forget_job(self, job_id: str) -> None:
        partition = self._partition_of.pop(job_id, None)
        if partition is not None:
            del self._jobs[partition][job_id]
