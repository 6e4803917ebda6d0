"""Moves the documents of one slot of tenants from one shard's database to another's, in transactions over both.

All databases are in one MongoDB. A transaction reads, deletes and inserts; where another write met it, it is refused as
a whole, and tried again. It demands the shares of the slot in both shards too, by a write to each: where one was put
since the mover read it, by another move or another step of this one, it is refused. What a processor has is left until
it has ended.

A transaction is one entry of each database's history, and every stream reads it as a whole: so it is a small part.
"""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from pymongo import ASCENDING, DESCENDING
from pymongo.errors import BulkWriteError, DuplicateKeyError
from pymongo.read_concern import ReadConcern

from hascheduler.model.collection import Collection
from hascheduler.model.job import OCCUPYING, TERMINAL, JobState
from hascheduler.model.routing import slot_of
from hascheduler.model.share import Share, slot_of_key
from hascheduler.model.values.instants import WallMs
from hascheduler.mongo.connection import MAJORITY, Database, awaited
from hascheduler.mongo.faults import DUPLICATE_KEY, faults
from hascheduler.ports.sharding import MovedDocuments, Passage, duplicate_of_another

_Document = Mapping[str, Any]
_BUSY = [state.value for state in OCCUPYING]
_ENDED = [state.value for state in TERMINAL]
_LIMIT_S = 10.0
_PART = 250
"""Documents of one transaction."""
_NAMES_AT_ONCE = 100
_WAITS_FOR_OTHERS = "waits_for.0"
_MOST_URGENT_FIRST = [("priority", DESCENDING), ("submitted_at_ms", ASCENDING), ("_id", ASCENDING)]


class MongoSlotStore:
    """`hascheduler.ports.sharding.SlotStore`. ``databases`` are those of the shards, in one MongoDB."""

    def __init__(self, databases: Sequence[Database], job_retention_ms: int) -> None:
        self._databases = databases
        self._job_retention_ms = job_retention_ms

    async def move_first(self, passage: Passage, limit: int, at_ms: WallMs) -> MovedDocuments:
        route = self._route(passage, at_ms)
        with faults("move what decides of a slot", _LIMIT_S):
            tenants = await self._tenants(passage, passage.source)
            if not tenants:
                return MovedDocuments(0, 0)
            jobs, of_tenants = route.here[Collection.JOBS.value], {"tenant": {"$in": tenants}}
            # At one look: one that is moved is no longer there to tell what it waits for.
            tied = await jobs.find(
                {
                    **of_tenants,
                    "state": JobState.PENDING.value,
                    "$or": [{"schedule": {"$gt": ""}}, {_WAITS_FOR_OTHERS: {"$exists": True}}],
                },
                {"waits_for": True},
            ).to_list(None)
            named = [job["_id"] for job in tied]
            others = {"_id": {"$in": list(_awaited(tied).difference(named))}, "state": {"$nin": _BUSY}}
            waited_for = [job["_id"] for job in await jobs.find({**of_tenants, **others}, {"_id": True}).to_list(None)]
            moved = 0
            for ids in (waited_for, named):
                some = await self._move(Collection.JOBS, ids, of_tenants, route, limit - moved)
                moved += some.moved
                if some.is_refused or some.is_cut or moved >= limit:
                    return MovedDocuments(moved, 1)
            some = await self._move_schedules(tenants, route, limit - moved)
            if some.is_refused or moved + some.moved:
                return MovedDocuments(moved + some.moved, 1)
            return MovedDocuments(0, await jobs.count_documents({**of_tenants, "state": {"$in": _BUSY}}, limit=limit))

    async def move_rest(self, passage: Passage, limit: int, at_ms: WallMs) -> MovedDocuments:
        route = self._route(passage, at_ms)
        with faults("move the rest of a slot", _LIMIT_S):
            tenants = await self._tenants(passage, passage.source)
            of_tenants = {"tenant": {"$in": tenants}}
            if tenants:
                waiting = {"state": JobState.PENDING.value, _WAITS_FOR_OTHERS: {"$exists": False}}
                for which, order in ((waiting, _MOST_URGENT_FIRST), ({"state": {"$in": _ENDED}}, None)):
                    found = route.here[Collection.JOBS.value].find({**of_tenants, **which}, {"_id": True})
                    if order is not None:
                        found = found.sort(order)
                    ids = [job["_id"] for job in await found.limit(limit).to_list(limit)]
                    some = await self._move(Collection.JOBS, ids, {**of_tenants, **which}, route, limit)
                    if some.is_refused or some.moved:
                        return MovedDocuments(some.moved, 1)
            some = await self._move_verdicts(await self._tenants(passage, passage.target), tenants, route, limit)
            if tenants and not (some.is_refused or some.moved):
                some = await self._move_schedules(tenants, route, limit)
            if tenants and not (some.is_refused or some.moved):
                some = await self._move_dependents(of_tenants, route, limit)
            if some.is_refused or some.moved:
                return MovedDocuments(some.moved, 1)
            return MovedDocuments(0, await route.here[Collection.JOBS.value].count_documents(of_tenants, limit=limit))

    def _route(self, passage: Passage, at_ms: WallMs) -> "_Route":
        shares = (
            (self._databases[passage.source], passage.closed),
            (self._databases[passage.target], passage.there),
        )
        return _Route(self._databases[passage.source], self._databases[passage.target], shares, at_ms)

    async def _tenants(self, passage: Passage, index: int) -> list[str]:
        """Those of the slot of which something is in that shard."""
        database, slot = self._databases[index], slot_of_key(passage.closed.key)
        found = {
            *await database[Collection.JOBS.value].distinct("tenant"),
            *await database[Collection.SCHEDULES.value].distinct("job.tenant"),
        }
        return sorted(tenant for tenant in found if isinstance(tenant, str) and slot_of(tenant) == slot)

    async def _move_schedules(self, tenants: Sequence[str], route: "_Route", limit: int) -> "_Moved":
        which = {"job.tenant": {"$in": tenants}}
        found = await route.here[Collection.SCHEDULES.value].find(which, {"_id": True}).limit(limit).to_list(limit)
        return await self._move(Collection.SCHEDULES, [one["_id"] for one in found], which, route, limit)

    async def _move_verdicts(self, there: Sequence[str], here: Sequence[str], route: "_Route", limit: int) -> "_Moved":
        """Those of schedules that are there by now, or here."""
        names = {
            schedule["_id"]
            for database, tenants in ((route.there, there), (route.here, here))
            for schedule in await database[Collection.SCHEDULES.value]
            .find({"job.tenant": {"$in": tenants}}, {"_id": True})
            .to_list(None)
        }
        for some in _parts(list(names), _NAMES_AT_ONCE):
            # Ids of records begin with the name, and there is no index by it alone.
            of_some = {"$or": [{"_id": {"$gte": f"{name}:", "$lt": f"{name};"}, "schedule": name} for name in some]}
            found = await route.here[Collection.VERDICTS.value].find(of_some, {"_id": True}).limit(limit).to_list(limit)
            moved = await self._move(Collection.VERDICTS, [each["_id"] for each in found], {}, route, limit)
            if moved.is_refused or moved.moved:
                return moved
        return _Moved(0)

    async def _move_dependents(self, of_tenants: _Document, route: "_Route", limit: int) -> "_Moved":
        """Jobs that came to wait for others after all: those of which no job is here that they wait for."""
        jobs = route.here[Collection.JOBS.value]
        which = {**of_tenants, "state": JobState.PENDING.value, _WAITS_FOR_OTHERS: {"$exists": True}}
        found = await jobs.find(which, {"waits_for": True}).to_list(None)
        of_those = {"_id": {"$in": list(_awaited(found))}}
        here = {job["_id"] for job in await jobs.find(of_those, {"_id": True}).to_list(None)}
        free = [job["_id"] for job in found if here.isdisjoint(_awaited([job]))]
        return await self._move(Collection.JOBS, free, which, route, limit)

    async def _move(
        self, collection: Collection, ids: Sequence[str], which: _Document, route: "_Route", limit: int
    ) -> "_Moved":
        """Up to ``limit`` of those by these ids for which ``which`` holds still, but for what a processor has."""
        moved = 0
        idle = {"state": {"$nin": _BUSY}} if collection is Collection.JOBS and "state" not in which else {}
        for part in _parts(ids[:limit], _PART):
            some = await self._transfer(collection, {**which, **idle, "_id": {"$in": part}}, route, len(part))
            if some is None:
                return _Moved(moved, is_refused=True)
            moved += some
        return _Moved(moved, is_cut=len(ids) > limit)

    async def _transfer(self, collection: Collection, which: _Document, route: "_Route", limit: int) -> int | None:
        """How many of those are there now; None: not under these shares."""
        try:
            return await self._transfer_all(collection, which, route, limit)
        except (DuplicateKeyError, BulkWriteError) as error:
            if not _is_duplicate(error):
                raise
        moved = 0
        here, there = route.here[collection.value], route.there[collection.value]
        for document in await here.find(which).limit(limit).to_list(limit):
            of_it = {**which, "_id": document["_id"]}
            try:
                moved += await self._transfer_all(collection, of_it, route, 1) or 0
            except (DuplicateKeyError, BulkWriteError) as error:
                if not _is_duplicate(error):
                    raise
                known = await there.find_one({"_id": document["_id"]}, {"_id": True})
                put = {} if known else duplicate_of_another(document, route.at_ms, self._job_retention_ms)
                unchanged = {**of_it, "rev": document.get("rev")}
                moved += await self._transfer_all(collection, unchanged, route, 1, put=put) or 0
        return moved

    async def _transfer_all(
        self, collection: Collection, which: _Document, route: "_Route", limit: int, put: _Document | None = None
    ) -> int | None:
        """All of them or none: where another write meets one that was read here, nothing is moved. ``put`` stands for a
        single one; empty: it is only to be deleted here."""
        here = route.here[collection.value]
        async with _transaction(route.here) as session:
            for database, share in route.shares:
                unchanged = {"_id": share.key, "rev": share.rev, "limit": share.limit}
                demanded = await database[Collection.SHARES.value].update_one(
                    unchanged, {"$inc": {"moved": 1}}, session=session
                )
                if not demanded.matched_count:
                    await session.abort_transaction()
                    return None
            documents = await here.find(which, session=session).limit(limit).to_list(limit)
            if not documents:
                await session.abort_transaction()
                return 0
            await here.delete_many({"_id": {"$in": [document["_id"] for document in documents]}}, session=session)
            inserted = documents if put is None else [dict(put)] if put else []
            if inserted:
                await route.there[collection.value].insert_many(inserted, ordered=False, session=session)
            await session.commit_transaction()
        return len(documents)


@dataclass(frozen=True, slots=True)
class _Route:
    here: Database
    there: Database
    shares: Sequence[tuple[Database, Share]]
    at_ms: WallMs


@dataclass(frozen=True, slots=True)
class _Moved:
    """So many were moved; ``is_refused``: no more, as a share is not as it was; ``is_cut``: not all, by the limit."""

    moved: int
    is_refused: bool = False
    is_cut: bool = False


def _awaited(jobs: Iterable[_Document]) -> set[str]:
    """The ids of all that they wait for, whatever people wrote there."""
    lists = (job.get("waits_for") for job in jobs)
    return {id for ids in lists if isinstance(ids, list) for id in ids if isinstance(id, str)}


def _parts(ids: Sequence[str], size: int) -> Iterable[Sequence[str]]:
    return (ids[at : at + size] for at in range(0, len(ids), size))


@asynccontextmanager
async def _transaction(database: Database) -> AsyncIterator[Any]:
    """Aborted, unless it is committed inside."""
    async with await awaited(database.client.start_session()) as session:
        begun = session.start_transaction(read_concern=ReadConcern("snapshot"), write_concern=MAJORITY)
        async with await awaited(begun):
            yield session


def _is_duplicate(error: DuplicateKeyError | BulkWriteError) -> bool:
    if isinstance(error, DuplicateKeyError):
        return True
    return any(each.get("code") == DUPLICATE_KEY for each in (error.details or {}).get("writeErrors", ()))
