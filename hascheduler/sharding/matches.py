"""Goes through all jobs or schedules of all shards that match, in the one order that they have in each.

What must hold: an operation that goes on at ``next``, in whatever replica, meets everything once. So a slice ends
where the first of the shards had to end its own (`hascheduler.sharding.merging`), and what others found beyond that is
found again.
"""

from collections.abc import Sequence

from hascheduler.ports import JobSelection, JobSlice, ListPosition, MatchingSchedules, MatchStore, ScheduleSlice
from hascheduler.sharding.jobs import shards_of_jobs
from hascheduler.sharding.merging import Part, key_of, merged, place_of, position_of
from hascheduler.sharding.places import ShardPlaces
from hascheduler.sharding.shards import Shards


class ShardedMatchStore:
    """`hascheduler.ports.MatchStore`. An id that two shards have is in a slice once: what is done goes by ids."""

    def __init__(self, places: ShardPlaces, stores: Sequence[MatchStore]) -> None:
        self._places = places
        self._shards = Shards(places, stores)

    async def jobs(self, which: JobSelection, after: ListPosition | None, limit: int) -> JobSlice:
        meant = shards_of_jobs(which, self._places)
        if len(meant) == 1:
            return await self._shards.one(meant[0], lambda store: store.jobs(which, after, limit))
        slices = await self._shards.all(lambda store: store.jobs(which, after, limit))
        parts = [
            Part(
                [(place_of(at_ms, id), (id, at_ms)) for id, at_ms in zip(slice.ids, slice.at_ms, strict=True)],
                key_of(slice.next, newest_first=False),
            )
            for slice in slices
        ]
        whole = merged(parts, limit)
        found = dict(whole.entries)
        return JobSlice(list(found), position_of(whole.until), list(found.values()))

    async def schedules(self, which: MatchingSchedules, after: str | None, limit: int) -> ScheduleSlice:
        if which.tenant is not None:
            here = self._places.of_tenant(which.tenant)
            return await self._shards.one(here, lambda store: store.schedules(which, after, limit))
        slices = await self._shards.all(lambda store: store.schedules(which, after, limit))
        whole = merged([Part([(name, name) for name in slice.names], slice.next) for slice in slices], limit)
        return ScheduleSlice(list(dict.fromkeys(whole.entries)), whole.until)

    async def count_schedules(self, which: MatchingSchedules, limit: int) -> int:
        if which.tenant is not None:
            here = self._places.of_tenant(which.tenant)
            return await self._shards.one(here, lambda store: store.count_schedules(which, limit))
        return min(sum(await self._shards.all(lambda store: store.count_schedules(which, limit))), limit)
