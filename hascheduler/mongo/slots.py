"""Moves the documents of one slot of tenants from one shard's database to another's, in transactions over both.

All databases are in one MongoDB. A transaction reads, deletes and inserts; where another write met it, it is refused as
a whole, and tried again. It demands the closed share too, by a write to it, so that one that was closed in the meantime
by another move, or opened, refuses it. What a processor has is left until it has ended.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from pymongo.errors import BulkWriteError, DuplicateKeyError
from pymongo.read_concern import ReadConcern

from hascheduler.model.collection import Collection
from hascheduler.model.job import OCCUPYING
from hascheduler.model.routing import slot_of
from hascheduler.model.share import Share, slot_of_key
from hascheduler.model.values.instants import WallMs
from hascheduler.mongo.connection import MAJORITY, Database, awaited
from hascheduler.mongo.faults import DUPLICATE_KEY, faults
from hascheduler.ports.sharding import MovedDocuments, duplicate_of_another

_Document = Mapping[str, Any]
_BUSY = [state.value for state in OCCUPYING]
_LIMIT_S = 10.0


class MongoSlotStore:
    """`hascheduler.ports.sharding.SlotStore`. ``databases`` are those of the shards, in one MongoDB."""

    def __init__(self, databases: Sequence[Database], job_retention_ms: int) -> None:
        self._databases = databases
        self._job_retention_ms = job_retention_ms

    async def move_some(self, source: int, target: int, share: Share, limit: int, at_ms: WallMs) -> MovedDocuments:
        here, there, slot = self._databases[source], self._databases[target], slot_of_key(share.key)
        route = _Route(here, there, share, at_ms)
        with faults("move what is of a slot", _LIMIT_S):
            tenants = [
                tenant
                for tenant in {
                    *await here[Collection.JOBS.value].distinct("tenant"),
                    *await here[Collection.SCHEDULES.value].distinct("job.tenant"),
                }
                if isinstance(tenant, str) and slot_of(tenant) == slot
            ]
            if not tenants:
                return MovedDocuments(0, 0)
            of_tenants = {"tenant": {"$in": tenants}}
            moved = await self._transfer(Collection.JOBS, {**of_tenants, "state": {"$nin": _BUSY}}, route, limit)
            if moved == 0:
                moved = await self._move_schedules({"job.tenant": {"$in": tenants}}, route, limit)
            if moved is None or moved:
                return MovedDocuments(moved or 0, 1)
            return MovedDocuments(0, await here[Collection.JOBS.value].count_documents(of_tenants, limit=limit))

    async def _move_schedules(self, which: _Document, route: "_Route", limit: int) -> int | None:
        """Their verdicts before them, by whose names those are found."""
        some = await route.here[Collection.SCHEDULES.value].find(which, {"_id": True}).limit(limit).to_list(limit)
        for name in [schedule["_id"] for schedule in some]:
            # Ids of records begin with the name, and there is no index by it alone.
            of_it = {"_id": {"$gte": f"{name}:", "$lt": f"{name};"}, "schedule": name}
            moved = await self._transfer(Collection.VERDICTS, of_it, route, limit)
            if moved != 0:
                return moved
        return await self._transfer(Collection.SCHEDULES, which, route, limit) if some else 0

    async def _transfer(self, collection: Collection, which: _Document, route: "_Route", limit: int) -> int | None:
        """How many of those are there now; None: not under this share."""
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
        here, share = route.here[collection.value], route.share
        async with _transaction(route.here) as session:
            closed = await route.here[Collection.SHARES.value].update_one(
                {"_id": share.key, "rev": share.rev, "limit": 0}, {"$inc": {"moved": 1}}, session=session
            )
            if not closed.matched_count:
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
    share: Share
    at_ms: WallMs


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
