"""Goes through all that matches in all shards, in the one order that it has in each."""

from collections.abc import Sequence

from hascheduler.ports import JobSelection, JobSlice, ListPosition, MatchingSchedules, MatchStore, ScheduleSlice
from hascheduler.sharding.asking import ask_all, naming_outages
from hascheduler.sharding.merging import ShardPage, merged, oldest_first, position_of
from hascheduler.sharding.places import ShardPlaces


class ShardedMatchStore:
    """`hascheduler.ports.MatchStore`."""

    def __init__(self, places: ShardPlaces, shards: Sequence[MatchStore]) -> None:
        self._places = places
        self._shards = naming_outages(places.shards, shards)

    async def jobs(self, which: JobSelection, after: ListPosition | None, limit: int) -> JobSlice:
        shards = self._places.meant(self._shards, which.tenant)
        slices = await ask_all(shard.jobs(which, after, limit) for shard in shards)
        pages = [ShardPage([_place(each) for each in found.places], oldest_first(found.next)) for found in slices]
        places, end = merged(pages, lambda place: place, limit)
        return JobSlice([ListPosition(place[0], place[2]) for place in places], position_of(end))

    async def schedules(self, which: MatchingSchedules, after: str | None, limit: int) -> ScheduleSlice:
        shards = self._places.meant(self._shards, which.tenant)
        slices = await ask_all(shard.schedules(which, after, limit) for shard in shards)
        pages = [ShardPage(found.names, None if found.next is None else (found.next,)) for found in slices]
        names, end = merged(pages, lambda name: (name,), limit)
        return ScheduleSlice(names, None if end is None else str(end[0]))

    async def count_schedules(self, which: MatchingSchedules, limit: int) -> int:
        shards = self._places.meant(self._shards, which.tenant)
        counts = await ask_all(shard.count_schedules(which, limit) for shard in shards)
        return min(sum(counts), limit)


def _place(position: ListPosition) -> tuple[int, bool, str]:
    return (position.at_ms, True, position.id or "")
