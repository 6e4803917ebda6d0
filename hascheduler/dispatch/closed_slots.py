"""Slots of tenants that this shard is not to decide for: they move to another shard, or are that one's by now.

A share that is nothing, under the key of a slot, closes it (`hascheduler.model.share`). What is of a tenant in a closed
slot is kept aside as it was last seen, as if it were not there; when the slot opens, all of it is seen again. What a
processor has, and what is promised, goes on as ever until it is over: a slot is left once nothing of it is.
"""

from collections.abc import Iterable, Iterator
from itertools import chain

from hascheduler.mirror.changes import JobSeen, ScheduleSeen
from hascheduler.model.job import JobRef
from hascheduler.model.routing import slot_of
from hascheduler.model.schedule import ScheduleRef


class ClosedSlots:
    """Owner of what is kept aside, and of what is still to be."""

    def __init__(self) -> None:
        self._jobs: dict[int, dict[str, JobSeen]] = {}
        self._schedules: dict[int, dict[str, ScheduleSeen]] = {}
        self._slot_of: dict[str, int] = {}
        """Of each job that is kept aside, by id."""
        self._slot_of_schedule: dict[str, int] = {}
        self._leaving_jobs: dict[str, int] = {}
        self._leaving_schedules: dict[str, int] = {}

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def closed(self, tenant: str) -> int | None:
        """The slot of that tenant, where it is closed; else None."""
        if not self._jobs:  # nearly always
            return None
        slot = slot_of(tenant)
        return slot if slot in self._jobs else None

    def close(self, slot: int, jobs: Iterable[JobRef], schedules: Iterable[ScheduleRef]) -> None:
        """What is live of it is on its way out."""
        if slot in self._jobs:
            return
        self._jobs[slot], self._schedules[slot] = {}, {}
        self._leaving_jobs.update((job.id, slot) for job in jobs if slot_of(job.tenant) == slot)
        self._leaving_schedules.update(
            (schedule.name, slot) for schedule in schedules if slot_of(schedule.template.tenant) == slot
        )

    def open(self, slot: int) -> list[JobSeen | ScheduleSeen]:
        """What was kept aside, to be seen again: schedules first, as jobs are of them."""
        aside: list[JobSeen | ScheduleSeen] = [
            *self._schedules.pop(slot, {}).values(),
            *self._jobs.pop(slot, {}).values(),
        ]
        for table in (self._slot_of, self._slot_of_schedule, self._leaving_jobs, self._leaving_schedules):
            for id in [id for id, of in table.items() if of == slot]:
                del table[id]
        return aside

    # What leaves

    def leaves(self, job: JobRef, slot: int) -> None:
        """A processor has it, or something is promised of it."""
        self._forget_job(job.id)
        self._leaving_jobs[job.id] = slot

    def schedule_leaves(self, schedule: ScheduleRef, slot: int) -> None:
        self.forget_schedule(schedule.name)
        self._leaving_schedules[schedule.name] = slot

    def leaving_jobs(self) -> list[str]:
        return list(self._leaving_jobs)

    def leaving_schedules(self) -> list[str]:
        return list(self._leaving_schedules)

    def left(self, slot: int) -> int:
        """How many of its jobs and schedules are not out of the way yet."""
        return sum(of == slot for of in chain(self._leaving_jobs.values(), self._leaving_schedules.values()))

    # What is kept aside

    def keep_job(self, seen: JobSeen, slot: int) -> None:
        self._leaving_jobs.pop(seen.job.id, None)
        self._jobs[slot][seen.job.id] = seen
        self._slot_of[seen.job.id] = slot

    def keep_schedule(self, seen: ScheduleSeen, slot: int) -> None:
        self._leaving_schedules.pop(seen.schedule.name, None)
        self._schedules[slot][seen.schedule.name] = seen
        self._slot_of_schedule[seen.schedule.name] = slot

    def forget_job(self, job_id: str) -> None:
        """It is gone."""
        self._leaving_jobs.pop(job_id, None)
        self._forget_job(job_id)

    def forget_schedule(self, name: str) -> None:
        self._leaving_schedules.pop(name, None)
        slot = self._slot_of_schedule.pop(name, None)
        if slot is not None:
            del self._schedules[slot][name]

    def kept_job(self, job_id: str) -> JobSeen | None:
        slot = self._slot_of.get(job_id)
        return None if slot is None else self._jobs[slot][job_id]

    def kept(self) -> Iterator[JobSeen | ScheduleSeen]:
        """All that is kept aside, schedules first."""
        for schedules in self._schedules.values():
            yield from schedules.values()
        for jobs in self._jobs.values():
            yield from jobs.values()

    def count(self, slot: int) -> int:
        """How many jobs and schedules of it are kept aside."""
        return len(self._jobs.get(slot, ())) + len(self._schedules.get(slot, ()))

    def _forget_job(self, job_id: str) -> None:
        slot = self._slot_of.pop(job_id, None)
        if slot is not None:
            del self._jobs[slot][job_id]
