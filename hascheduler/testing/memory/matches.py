"""All jobs or schedules that match, slice by slice."""

import sys

from hascheduler.model.collection import Collection
from hascheduler.ports import JobSelection, JobSlice, ListPosition, MatchingSchedules, ScheduleSlice
from hascheduler.testing.memory.connection import MemoryConnection
from hascheduler.testing.memory.database import Document
from hascheduler.testing.memory.jobs import MemoryJobStore


class MemoryMatchStore:
    """`hascheduler.ports.MatchStore`."""

    def __init__(self, connection: MemoryConnection) -> None:
        self._connection = connection
        self._jobs = MemoryJobStore(connection, job_retention_ms=0)

    async def jobs(self, which: JobSelection, after: ListPosition | None, limit: int) -> JobSlice:
        newest_first = (await self._jobs.list(which, None, sys.maxsize)).documents
        places = [(job["submitted_at_ms"], str(job["_id"])) for job in reversed(newest_first)]
        left = [place for place in places if _is_after(after, place)]
        ids = [id for _, id in left[:limit]]
        return JobSlice(ids, ListPosition(*left[limit - 1]) if len(left) > limit else None)

    async def schedules(self, which: MatchingSchedules, after: str | None, limit: int) -> ScheduleSlice:
        async with self._connection.exchange("matches.schedules") as database:
            found = database.page(Collection.SCHEDULES, after, limit + 1, which=lambda one: _is_meant(which, one))
            names = [str(one["_id"]) for one in found]
            return ScheduleSlice(names[:limit], names[limit - 1] if len(names) > limit else None)

    async def count_schedules(self, which: MatchingSchedules, limit: int) -> int:
        async with self._connection.exchange("matches.count_schedules") as database:
            return len(database.page(Collection.SCHEDULES, None, limit, which=lambda one: _is_meant(which, one)))


def _is_after(position: ListPosition | None, place: tuple[int, str]) -> bool:
    if position is None:
        return True
    return place[0] >= position.at_ms if position.id is None else place > (position.at_ms, position.id)


def _is_meant(which: MatchingSchedules, schedule: Document) -> bool:
    if which.names is not None and schedule["_id"] not in which.names:
        return False
    if which.text is not None and which.text.lower() not in str(schedule["_id"]).lower():
        return False
    if which.tenant is not None and schedule["job"]["tenant"] != which.tenant:
        return False
    if which.paused is not None and (schedule.get("paused_at_ms") is not None) != which.paused:
        return False
    return bool(which.labels.items() <= schedule["labels"].items())
