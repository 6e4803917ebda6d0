"""Where jobs wait, by three small questions to each shard: pending jobs by definition, processors, and taken slots.

Pending jobs are read along the index of the states, the oldest first, `PAGE` of them a look. Where none of a page could
be run by who asks, the next look goes on behind it, and after the last page begins again: so in time all are seen,
however many there are that are for others. Only where jobs wait are the slots counted.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import structlog
from pymongo import ASCENDING

from hascheduler.errors import InvalidInput, WorldError
from hascheduler.model.collection import Collection as Stored
from hascheduler.model.job import OCCUPYING, JobState
from hascheduler.model.processor import supports
from hascheduler.mongo.connection import Database, awaited
from hascheduler.mongo.faults import faults
from hascheduler.ports import Clock
from hascheduler.ports.demand import BeatLimits, BeatWatch, Demand, Server, demand_of, readable_processors
from hascheduler.telemetry.log_lines import Reminders

log = structlog.get_logger(__name__)

PAGE = 500
_PROCESSORS_MAX = 1_000
_TAKEN_MAX = 10_000
_LOOK_LIMIT_S = 1.0
_BY_STATE = "state_submitted"
_FIRST = (-1, "")
_POSITIONS_MAX = 100
"""Of so many that ask it is kept how far they have read, beyond the first page."""
_Position = tuple[int, str]


class MongoShardDemand:
    """`hascheduler.ports.demand.ShardDemand` over the databases of the shards, the home's first."""

    def __init__(self, databases: Sequence[Database], clock: Clock, limits: BeatLimits) -> None:
        self._shards = [_Shard(index, database, clock, BeatWatch(limits)) for index, database in enumerate(databases)]

    async def look(
        self, definitions: frozenset[str], own: Collection[str], shards: Collection[int] | None = None
    ) -> Sequence[Demand]:
        asked = self._shards if shards is None else [self._shards[index] for index in sorted(shards)]
        found = await asyncio.gather(*(shard.look(definitions, own) for shard in asked))
        return [demand for demand in found if demand is not None]


class _Shard:
    """Owner of where its queue is read next, by who asks, and of the beats that it has seen."""

    def __init__(self, index: int, database: Database, clock: Clock, beats: BeatWatch) -> None:
        self._index = index
        self._jobs = database[Stored.JOBS.value]
        self._processors = database[Stored.PROCESSORS.value]
        self._clock = clock
        self._behind: dict[frozenset[str], _Position] = {}
        self._beats = beats
        self._reminders = Reminders()

    async def look(self, definitions: frozenset[str], own: Collection[str]) -> Demand | None:
        try:
            with faults("look for demand", _LOOK_LIMIT_S):
                waiting = await self._waiting(definitions)
                servers = await self._servers(any(supports(definitions, name) for name in waiting))
        except (WorldError, InvalidInput) as error:
            if self._reminders.is_due(str(error), self._clock.mono_ms()):
                log.warning("demand_unknown", shard=self._index, error=str(error))
            return None
        self._reminders.over()
        return demand_of(self._index, definitions, waiting, servers, own)

    async def _waiting(self, definitions: frozenset[str]) -> Mapping[str, int]:
        at_ms, id = self._behind.get(definitions, _FIRST)
        # The second condition is of the same place in the index: of one millisecond the ids decide.
        behind = {"$or": [{"submitted_at_ms": {"$gt": at_ms}}, {"submitted_at_ms": at_ms, "_id": {"$gt": id}}]}
        page: list[dict[str, Any]] = [
            {"$match": {"state": JobState.PENDING.value, "submitted_at_ms": {"$gte": at_ms}, **behind}},
            {"$sort": {"submitted_at_ms": ASCENDING, "_id": ASCENDING}},
            {"$limit": PAGE},
            {
                "$group": {
                    "_id": {"$cond": [_waits_for_a_slot(self._clock.wall_ms()), "$definition", None]},
                    "count": {"$sum": 1},
                    "last": {"$max": {"at": "$submitted_at_ms", "id": "$_id"}},
                }
            },
        ]
        cursor = await awaited(self._jobs.aggregate(page, hint=_BY_STATE))
        groups = await cursor.to_list(None)
        waiting = {group["_id"]: int(group["count"]) for group in groups if isinstance(group["_id"], str)}
        if not any(supports(definitions, name) for name in waiting):
            is_full = sum(group["count"] for group in groups) >= PAGE
            lasts = [(group["last"].get("at"), group["last"].get("id")) for group in groups]
            readable = [(at, id) for at, id in lasts if isinstance(at, int) and isinstance(id, str)]
            at_ms, id = max(readable, default=_FIRST) if is_full else _FIRST
        self._behind.pop(definitions, None)
        if (at_ms, id) != _FIRST:
            self._behind[definitions] = (at_ms, id)
            if len(self._behind) > _POSITIONS_MAX:
                del self._behind[next(iter(self._behind))]
        return waiting

    async def _servers(self, has_demand: bool) -> Sequence[Server]:
        found = await self._processors.find({}, limit=_PROCESSORS_MAX).to_list(None)
        processors = readable_processors(found)
        beats = {processor.id: processor.beat for processor in processors}
        living = self._beats.living(beats, self._clock.mono_ms())
        taken = await self._taken() if has_demand else {}
        return [
            Server(each.id, each.definitions, each.slots, each.slots - taken.get(each.id, 0))
            for each in processors
            if each.id in living and not each.draining
        ]

    async def _taken(self) -> Mapping[str, int]:
        held: list[dict[str, Any]] = [
            {"$match": {"state": {"$in": sorted(OCCUPYING)}}},
            {"$limit": _TAKEN_MAX},
            {"$sortByCount": "$processor"},
        ]
        cursor = await awaited(self._jobs.aggregate(held, hint=_BY_STATE))
        return {str(group["_id"]): int(group["count"]) for group in await cursor.to_list(None)}


def _waits_for_a_slot(now_ms: int) -> Mapping[str, Any]:
    """Nothing else, as far as the job itself tells. Null, as a missing field, is less than any number."""
    no_others = {"$lte": [{"$ifNull": ["$waits_for", []]}, []]}
    return {"$and": [{"$lte": ["$not_before_ms", now_ms]}, {"$lte": ["$retry_at_ms", now_ms]}, no_others]}
