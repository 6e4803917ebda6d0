"""Goes through all that matches in all shards: jobs shard by shard, schedules by name."""

from collections.abc import Sequence

from hascheduler.ports import JobSelection, JobSlice, ListPosition, MatchingSchedules, MatchStore, ScheduleSlice
from hascheduler.sharding.asking import ask_all
from hascheduler.sharding.merging import ShardPage, merged
from hascheduler.sharding.places import ShardPlaces

_FROM_THE_BEGINNING = "-"


class ShardedMatchStore:
    """`hascheduler.ports.MatchStore`. A position of jobs is the shard, in the place of the instant, and the position
    there, in the place of the id; whoever keeps it looks into neither."""

    def __init__(self, places: ShardPlaces, shards: Sequence[MatchStore]) -> None:
        self._places = places
        self._shards = shards

    async def jobs(self, which: JobSelection, after: ListPosition | None, limit: int) -> JobSlice:
        if which.tenant is not None:
            return await self._shards[self._places.of_tenant(which.tenant)].jobs(which, after, limit)
        shard, inner = _place(after)
        found = await self._shards[shard].jobs(which, inner, limit)
        if found.next is not None:
            return JobSlice(found.ids, _position(shard, found.next))
        return JobSlice(found.ids, _position(shard + 1, None) if shard + 1 < len(self._shards) else None)

    async def schedules(self, which: MatchingSchedules, after: str | None, limit: int) -> ScheduleSlice:
        shards = self._shards if which.tenant is None else [self._shards[self._places.of_tenant(which.tenant)]]
        slices = await ask_all(shard.schedules(which, after, limit) for shard in shards)
        pages = [ShardPage(found.names, None if found.next is None else (found.next,)) for found in slices]
        names, end = merged(pages, lambda name: (name,), limit)
        return ScheduleSlice(names, None if end is None else str(end[0]))

    async def count_schedules(self, which: MatchingSchedules, limit: int) -> int:
        shards = self._shards if which.tenant is None else [self._shards[self._places.of_tenant(which.tenant)]]
        return min(sum(await ask_all(shard.count_schedules(which, limit) for shard in shards)), limit)


def _position(shard: int, inner: ListPosition | None) -> ListPosition:
    return ListPosition(shard, _FROM_THE_BEGINNING if inner is None else f"{inner.at_ms}.{inner.id or ''}")


def _place(position: ListPosition | None) -> tuple[int, ListPosition | None]:
    if position is None or position.id is None:
        return 0, None
    if position.id == _FROM_THE_BEGINNING:
        return position.at_ms, None
    at, _, id = position.id.partition(".")
    return position.at_ms, ListPosition(int(at), id or None)
