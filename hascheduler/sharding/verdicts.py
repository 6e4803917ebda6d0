"""The verdicts on nominal times, of all shards: a record is in the shard of its schedule, beside the jobs that fired.

A schedule says its tenant, so the verdicts on its times are of one shard. Those of all schedules are merged by when
they were decided; a selection by tenant is of that tenant's shard, which has the schedules that say so.
"""

from collections.abc import Collection, Sequence

from hascheduler.model.documents.verdict import verdict_id
from hascheduler.model.job import ScheduleId
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import Verdict
from hascheduler.ports import (
    DecidedVerdict,
    ListPosition,
    VerdictPage,
    VerdictRecord,
    VerdictSelection,
    VerdictStore,
)
from hascheduler.sharding.merging import Part, PlaceKey, key_of, merged, place_of, position_of
from hascheduler.sharding.places import ShardPlaces
from hascheduler.sharding.shards import Shards


class ShardedVerdictStore:
    """`hascheduler.ports.VerdictStore`."""

    def __init__(self, places: ShardPlaces, stores: Sequence[VerdictStore]) -> None:
        self._places = places
        self._shards = Shards(places, stores)

    async def list(
        self, schedule: ScheduleId, verdicts: Collection[Verdict], after_ms: WallMs, before_ms: WallMs, limit: int
    ) -> Sequence[VerdictRecord]:
        return await self._shards.one(
            self._places.of_tenant(schedule.tenant),
            lambda store: store.list(schedule, verdicts, after_ms, before_ms, limit),
        )

    async def of_all(self, which: VerdictSelection, after: ListPosition | None, limit: int) -> VerdictPage:
        if which.tenant is not None:
            here = self._places.of_tenant(which.tenant)
            return await self._shards.one(here, lambda store: store.of_all(which, after, limit))
        pages = await self._shards.all(lambda store: store.of_all(which, after, limit))
        parts = [
            Part([(_key_of(one), one) for one in page.verdicts], key_of(page.next, newest_first=True)) for page in pages
        ]
        whole = merged(parts, limit, newest_first=True)
        return VerdictPage(whole.entries, position_of(whole.until))


def _key_of(verdict: DecidedVerdict) -> PlaceKey:
    return place_of(verdict.decided_at_ms, verdict_id(verdict.run.schedule, verdict.run.first_ms))
