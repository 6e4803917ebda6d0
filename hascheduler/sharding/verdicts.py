"""Verdicts of all shards as one store."""

from collections.abc import Collection, Sequence
from heapq import merge
from itertools import islice

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
from hascheduler.sharding.asking import ask_all, naming_outages
from hascheduler.sharding.merging import Place, ShardPage, merged, newest_first, position_of
from hascheduler.sharding.places import ShardPlaces


class ShardedVerdictStore:
    """`hascheduler.ports.VerdictStore`. All verdicts of a schedule are in one shard, but while it moves."""

    def __init__(self, places: ShardPlaces, shards: Sequence[VerdictStore]) -> None:
        self._places = places
        self._shards = naming_outages(places.shards, shards)

    async def list(
        self, schedule: ScheduleId, verdicts: Collection[Verdict], after_ms: WallMs, before_ms: WallMs, limit: int
    ) -> Sequence[VerdictRecord]:
        shards = self._places.meant(self._shards, schedule.tenant)
        found = await ask_all(shard.list(schedule, verdicts, after_ms, before_ms, limit) for shard in shards)
        return list(islice(merge(*found, key=lambda record: record.run.first_ms, reverse=True), limit))

    async def of_all(self, which: VerdictSelection, after: ListPosition | None, limit: int) -> VerdictPage:
        shards = self._places.meant(self._shards, which.tenant)
        pages = await ask_all(shard.of_all(which, after, limit) for shard in shards)
        verdicts, end = merged([ShardPage(page.verdicts, newest_first(page.next)) for page in pages], _place, limit)
        return VerdictPage(verdicts, position_of(end))


def _place(decided: DecidedVerdict) -> Place:
    return (decided.decided_at_ms, False, verdict_id(decided.run.schedule, decided.run.first_ms))
