"""Finds what is of one slot of tenants in one shard's database, and moves it to another's, in the order that is needed.

How a part goes over is in `transactions` and `parcels`. What a processor has is left until it has ended.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pymongo import ASCENDING, DESCENDING

from hascheduler.model.collection import Collection
from hascheduler.model.hold import partition_of_key
from hascheduler.model.job import OCCUPYING, TERMINAL, JobState, is_batch
from hascheduler.model.routing import slot_of
from hascheduler.model.values.instants import WallMs
from hascheduler.mongo.connection import Database
from hascheduler.mongo.faults import faults
from hascheduler.mongo.slots.parcels import Apart, slots_underway
from hascheduler.mongo.slots.transactions import Route, Together
from hascheduler.ports.sharding import WHATEVER_IS_LIVE, MovedDocuments, Passage

_Document = Mapping[str, Any]
_BUSY = [state.value for state in OCCUPYING]
_ENDED = [state.value for state in TERMINAL]
_LIMIT_S = 10.0
_PART = 250
"""Documents of one transaction."""
_NAMES_AT_ONCE = 100
_WAITS_FOR_OTHERS = "waits_for.0"
_OVERLAP = "policy.overlap"
_MOST_URGENT_FIRST = [("priority", DESCENDING), ("submitted_at_ms", ASCENDING), ("_id", ASCENDING)]


class MongoSlotStore:
    """`hascheduler.ports.sharding.SlotStore`. ``databases`` are those of the shards; those of one client are in
    one MongoDB."""

    def __init__(self, databases: Sequence[Database], job_retention_ms: int) -> None:
        self._databases = databases
        self._job_retention_ms = job_retention_ms

    async def move_first(self, passage: Passage, limit: int, at_ms: WallMs) -> MovedDocuments:
        way = self._way(passage, at_ms)
        with faults("move what decides of a slot", _LIMIT_S):
            if (delivered := await way.means.deliver()) != 0:
                return MovedDocuments(delivered or 0, 1)
            tenants = await self._tenants(passage, passage.source)
            if not tenants:
                return MovedDocuments(0, 0)
            jobs, of_tenants = way.here[Collection.JOBS.value], {"tenant": {"$in": tenants}}
            schedules, of_them = way.here[Collection.SCHEDULES.value], _schedules_of(tenants)
            looking = {**of_them, _OVERLAP: {"$nin": WHATEVER_IS_LIVE}}
            names = [schedule["_id"] for schedule in await schedules.find(looking, {"_id": True}).to_list(None)]
            # At one look: one that is moved is no longer there to tell what it waits for.
            tied = await jobs.find(
                {
                    **of_tenants,
                    "state": JobState.PENDING.value,
                    "$or": [{"schedule": {"$in": names}}, {_WAITS_FOR_OTHERS: {"$exists": True}}],
                },
                {"waits_for": True},
            ).to_list(None)
            named = [job["_id"] for job in tied]
            others = {"_id": {"$nin": named}, "state": {"$nin": _BUSY}, **_is_one_of(_awaited(tied))}
            waited_for = [job["_id"] for job in await jobs.find({**of_tenants, **others}, {"_id": True}).to_list(None)]
            moved = 0
            for ids in (waited_for, named):
                some = await self._move(Collection.JOBS, ids, of_tenants, way, limit - moved)
                moved += some.moved
                if some.is_refused or some.is_cut or moved >= limit:
                    return MovedDocuments(moved, 1)
            # One that has come to look at its live jobs since comes after those.
            free = {**of_them, "$or": [{"_id": {"$in": names}}, {_OVERLAP: {"$in": WHATEVER_IS_LIVE}}]}
            some = await self._move_schedules(free, way, limit - moved)
            if some.is_refused or moved + some.moved:
                return MovedDocuments(moved + some.moved, 1)
            left = await jobs.count_documents({**of_tenants, "state": {"$in": _BUSY}}, limit=limit)
            return MovedDocuments(0, left + await schedules.count_documents(of_them, limit=limit))

    async def move_rest(self, passage: Passage, limit: int, at_ms: WallMs) -> MovedDocuments:
        way = self._way(passage, at_ms)
        with faults("move the rest of a slot", _LIMIT_S):
            if (delivered := await way.means.deliver()) != 0:
                return MovedDocuments(delivered or 0, 1)
            tenants = await self._tenants(passage, passage.source)
            of_tenants = {"tenant": {"$in": tenants}}
            if tenants:
                waiting = {"state": JobState.PENDING.value, _WAITS_FOR_OTHERS: {"$exists": False}}
                for which, order in ((waiting, _MOST_URGENT_FIRST), ({"state": {"$in": _ENDED}}, None)):
                    found = way.here[Collection.JOBS.value].find({**of_tenants, **which}, {"_id": True})
                    if order is not None:
                        found = found.sort(order)
                    ids = [job["_id"] for job in await found.limit(limit).to_list(limit)]
                    some = await self._move(Collection.JOBS, ids, {**of_tenants, **which}, way, limit)
                    if some.is_refused or some.moved:
                        return MovedDocuments(some.moved, 1)
            some = await self._move_verdicts(await self._tenants(passage, passage.target), tenants, way, limit)
            if tenants and not (some.is_refused or some.moved):
                some = await self._move_schedules(_schedules_of(tenants), way, limit)
            if tenants and not (some.is_refused or some.moved):
                some = await self._move_dependents(of_tenants, way, limit)
            if some.is_refused or some.moved:
                return MovedDocuments(some.moved, 1)
            return MovedDocuments(0, await way.here[Collection.JOBS.value].count_documents(of_tenants, limit=limit))

    async def underway(self, index: int) -> frozenset[int]:
        here = self._databases[index]
        if all(database.client is here.client for database in self._databases):
            return frozenset()
        with faults("look for documents on their way", _LIMIT_S):
            return await slots_underway(here)

    async def deliver(self, passage: Passage, at_ms: WallMs) -> int:
        here, there = self._databases[passage.source], self._databases[passage.target]
        with faults("bring documents that were on their way", _LIMIT_S):
            return await Apart(Route(passage, here, there, at_ms, self._job_retention_ms)).deliver() or 0

    def _way(self, passage: Passage, at_ms: WallMs) -> "_Way":
        here, there = self._databases[passage.source], self._databases[passage.target]
        route = Route(passage, here, there, at_ms, self._job_retention_ms)
        return _Way(here, there, Together(route) if here.client is there.client else Apart(route))

    async def _tenants(self, passage: Passage, index: int) -> list[str]:
        """Those of the slot of which something is in that shard."""
        database, slot = self._databases[index], partition_of_key(passage.closed.key)
        found = {
            *await database[Collection.JOBS.value].distinct("tenant"),
            *await database[Collection.SCHEDULES.value].distinct("job.tenant"),
        }
        return sorted(tenant for tenant in found if isinstance(tenant, str) and slot_of(tenant) == slot)

    async def _move_schedules(self, which: _Document, way: "_Way", limit: int) -> "_Moved":
        found = await way.here[Collection.SCHEDULES.value].find(which, {"_id": True}).limit(limit).to_list(limit)
        return await self._move(Collection.SCHEDULES, [one["_id"] for one in found], which, way, limit)

    async def _move_verdicts(self, there: Sequence[str], here: Sequence[str], way: "_Way", limit: int) -> "_Moved":
        """Those of schedules that are there by now, or here."""
        names = {
            schedule["_id"]
            for database, tenants in ((way.there, there), (way.here, here))
            for schedule in await database[Collection.SCHEDULES.value]
            .find(_schedules_of(tenants), {"_id": True})
            .to_list(None)
        }
        for some in _parts(list(names), _NAMES_AT_ONCE):
            # Ids of records begin with the name, and there is no index by it alone.
            of_some = {"$or": [{"_id": {"$gte": f"{name}:", "$lt": f"{name};"}, "schedule": name} for name in some]}
            found = await way.here[Collection.VERDICTS.value].find(of_some, {"_id": True}).limit(limit).to_list(limit)
            moved = await self._move(Collection.VERDICTS, [each["_id"] for each in found], {}, way, limit)
            if moved.is_refused or moved.moved:
                return moved
        return _Moved(0)

    async def _move_dependents(self, of_tenants: _Document, way: "_Way", limit: int) -> "_Moved":
        """Jobs that came to wait for others after all: those of which no job is here that they wait for."""
        jobs = way.here[Collection.JOBS.value]
        which = {**of_tenants, "state": JobState.PENDING.value, _WAITS_FOR_OTHERS: {"$exists": True}}
        found = await jobs.find(which, {"waits_for": True}).to_list(None)
        of_those = await jobs.find(_is_one_of(_awaited(found)), {"batch": True}).to_list(None)
        here = {name for job in of_those for name in (job["_id"], job.get("batch"))}
        free = [job["_id"] for job in found if here.isdisjoint(_awaited([job]))]
        return await self._move(Collection.JOBS, free, which, way, limit)

    async def _move(
        self, collection: Collection, ids: Sequence[str], which: _Document, way: "_Way", limit: int
    ) -> "_Moved":
        """Up to ``limit`` of those by these ids for which ``which`` holds still, but for what a processor has."""
        moved = 0
        idle = {"state": {"$nin": _BUSY}} if collection is Collection.JOBS and "state" not in which else {}
        for part in _parts(ids[:limit], _PART):
            some = await way.means.transfer(collection, {**which, **idle, "_id": {"$in": part}}, len(part))
            if some is None:
                return _Moved(moved, is_refused=True)
            moved += some
        return _Moved(moved, is_cut=len(ids) > limit)


@dataclass(frozen=True, slots=True)
class _Way:
    here: Database
    there: Database
    means: Together | Apart


@dataclass(frozen=True, slots=True)
class _Moved:
    """So many were moved; ``is_refused``: no more, as a hold is not as it was; ``is_cut``: not all, by the limit."""

    moved: int
    is_refused: bool = False
    is_cut: bool = False


def _schedules_of(tenants: Sequence[str]) -> _Document:
    return {"job.tenant": {"$in": tenants}}


def _awaited(jobs: Iterable[_Document]) -> set[str]:
    """The ids of all jobs and batches that they wait for, whatever people wrote there."""
    lists = ((job["_id"], job.get("waits_for")) for job in jobs)
    # Its own id stands there for no other job: see `hascheduler.model.documents.job.stored_waits_for`.
    return {id for own, ids in lists if isinstance(ids, list) for id in ids if isinstance(id, str) and id != own}


def _is_one_of(awaited: set[str]) -> _Document:
    batches = [id for id in awaited if is_batch(id)]
    return {"$or": [{"_id": {"$in": [id for id in awaited if not is_batch(id)]}}, {"batch": {"$in": batches}}]}


def _parts(ids: Sequence[str], size: int) -> Iterable[Sequence[str]]:
    return (ids[at : at + size] for at in range(0, len(ids), size))
