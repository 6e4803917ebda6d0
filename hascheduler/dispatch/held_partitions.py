"""Held partitions: tenants for whom the leader must not decide (`hascheduler.model.partition`).

Jobs and schedules of a tenant in a held partition are kept aside as they were last seen, as if they did not exist. When
the hold is lifted, all of them are seen again. Jobs at a processor, and promises, go on until they are over; then the
partition is empty, and the hold can be released.
"""

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from hascheduler.mirror.changes import JobSeen, ScheduleSeen
from hascheduler.model.job import JobRef
from hascheduler.model.partition import partition_of
from hascheduler.schema.schedule import ScheduleRef

_Seen = TypeVar("_Seen")


class KeptAside(Generic[_Seen]):
    """Owner of the jobs, or the schedules, that are kept aside, and of those that have yet to be, by id."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[int, _Seen]] = {}
        self._leaving: dict[str, int] = {}

    def leave(self, id: str, partition: int) -> None:
        """Wait to keep it aside: a processor has it, or a decision about it is promised."""
        self._kept.pop(id, None)
        self._leaving[id] = partition

    def keep(self, id: str, seen: _Seen, partition: int) -> None:
        self._leaving.pop(id, None)
        self._kept[id] = partition, seen

    def forget(self, id: str) -> None:
        """Forget what is gone."""
        self._leaving.pop(id, None)
        self._kept.pop(id, None)

    def leaving(self) -> list[str]:
        return list(self._leaving)

    def is_left(self, partition: int) -> bool:
        """Return True if some of the partition is not kept aside yet."""
        return partition in self._leaving.values()

    def kept(self, id: str) -> _Seen | None:
        kept = self._kept.get(id)
        return None if kept is None else kept[1]

    def of(self, partition: int) -> list[_Seen]:
        """Return what is kept aside of the partition."""
        return [seen for of, seen in self._kept.values() if of == partition]

    def lift(self, partition: int) -> list[_Seen]:
        """Forget the partition; return what was kept aside of it."""
        lifted = self.of(partition)
        self._kept = {id: kept for id, kept in self._kept.items() if kept[0] != partition}
        self._leaving = {id: of for id, of in self._leaving.items() if of != partition}
        return lifted


class HeldPartitions:
    """Owner of the partitions that are held."""

    def __init__(self) -> None:
        self._partitions: dict[int, None] = {}
        self.jobs = KeptAside[JobSeen]()
        self.schedules = KeptAside[ScheduleSeen]()

    def __bool__(self) -> bool:
        return bool(self._partitions)

    def of(self, tenant: str) -> int | None:
        """Return the partition of that tenant if it is held, or None."""
        if not self._partitions:  # nearly always
            return None
        partition = partition_of(tenant)
        return partition if partition in self._partitions else None

    def hold(self, partition: int, jobs: Iterable[JobRef], schedules: Iterable[ScheduleRef]) -> None:
        """Hold the partition, given all live jobs and schedules, of any partition."""
        if partition in self._partitions:
            return
        self._partitions[partition] = None
        for job in jobs:
            if partition_of(job.tenant) == partition:
                self.jobs.leave(job.id, partition)
        for schedule in schedules:
            if partition_of(schedule.template.tenant) == partition:
                self.schedules.leave(schedule.name, partition)

    def lift(self, partition: int) -> list[JobSeen | ScheduleSeen]:
        """Return what was kept aside, to be seen again: schedules first, as jobs belong to them."""
        self._partitions.pop(partition, None)
        return [*self.schedules.lift(partition), *self.jobs.lift(partition)]

    def is_left(self, partition: int) -> bool:
        """Return True if some of its jobs and schedules are not kept aside yet."""
        return self.jobs.is_left(partition) or self.schedules.is_left(partition)

    def kept(self) -> Iterator[JobSeen | ScheduleSeen]:
        """Yield all that is kept aside, schedules first."""
        for partition in self._partitions:
            yield from self.schedules.of(partition)
        for partition in self._partitions:
            yield from self.jobs.of(partition)
