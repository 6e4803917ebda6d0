"""Moves the documents of one slot of tenants from one shard's database to another's, in transactions over both.

All databases are in one MongoDB. A transaction deletes what was read, demanding that nobody changed it since, and
inserts it there; it demands the closed share too, by a write to it, so that one that was closed in the meantime by
another move, or opened, refuses it. What a processor has is left until it has ended.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from pymongo import DeleteOne
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


class MongoSlotStore:
    """`hascheduler.ports.sharding.SlotStore`. ``databases`` are those of the shards, in one MongoDB."""

    def __init__(self, databases: Sequence[Database], job_retention_ms: int) -> None:
        self._databases = databases
        self._job_retention_ms = job_retention_ms

    async def move_some(self, source: int, target: int, share: Share, limit: int, at_ms: WallMs) -> MovedDocuments:
        here, there = self._databases[source], self._databases[target]
        slot = slot_of_key(share.key)
        with faults("look for what is of a slot"):
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
            jobs, schedules = here[Collection.JOBS.value], here[Collection.SCHEDULES.value]
            of_tenants = {"tenant": {"$in": tenants}}
            waiting = await jobs.find({**of_tenants, "state": {"$nin": _BUSY}}).limit(limit).to_list(limit)
            if waiting:
                moved = await self._transfer(Collection.JOBS, here, there, share, waiting, at_ms)
                return MovedDocuments(moved, max(len(waiting) - moved, 1))
            some = await schedules.find({"job.tenant": {"$in": tenants}}).limit(limit).to_list(limit)
            if some:
                moved = await self._move_schedules(here, there, share, some, limit, at_ms)
                return MovedDocuments(moved, max(len(some) - moved, 1))
            return MovedDocuments(0, await jobs.count_documents(of_tenants, limit=limit))

    async def _move_schedules(  # noqa: PLR0917  # each is of its own type
        self, here: Database, there: Database, share: Share, some: Sequence[_Document], limit: int, at_ms: WallMs
    ) -> int:
        """Their verdicts before them, by whose names those are found."""
        verdicts = here[Collection.VERDICTS.value]
        for schedule in some:
            # Ids of records begin with the name, and there is no index by it alone.
            name = schedule["_id"]
            of_it = {"_id": {"$gte": f"{name}:", "$lt": f"{name};"}, "schedule": name}
            records = await verdicts.find(of_it).limit(limit).to_list(limit)
            if records:
                return await self._transfer(Collection.VERDICTS, here, there, share, records, at_ms)
        return await self._transfer(Collection.SCHEDULES, here, there, share, some, at_ms)

    async def _transfer(  # noqa: PLR0917  # each is of its own type
        self,
        collection: Collection,
        here: Database,
        there: Database,
        share: Share,
        documents: Sequence[_Document],
        at_ms: WallMs,
    ) -> int:
        """How many of them are there now; those that were changed meanwhile are read again by the next call."""
        try:
            return await self._transfer_all(collection, here, there, share, documents)
        except (DuplicateKeyError, BulkWriteError) as error:
            if not _is_duplicate(error):
                raise
        moved = 0
        for document in documents:
            try:
                moved += await self._transfer_all(collection, here, there, share, [document])
            except (DuplicateKeyError, BulkWriteError) as error:
                if not _is_duplicate(error):
                    raise
                known = await there[collection.value].find_one({"_id": document["_id"]}, {"_id": True})
                put = None if known else duplicate_of_another(document, at_ms, self._job_retention_ms)
                moved += await self._transfer_all(collection, here, there, share, [document], put=put or {})
        return moved

    async def _transfer_all(  # noqa: PLR0917  # each is of its own type
        self,
        collection: Collection,
        here: Database,
        there: Database,
        share: Share,
        documents: Sequence[_Document],
        put: _Document | None = None,
    ) -> int:
        """All of them or none: 0 where one was changed since it was read. ``put`` stands for a single one; empty: it is
        only to be deleted here."""
        as_read = [DeleteOne(_version(collection, document)) for document in documents]
        async with _transaction(here) as session:
            closed = await here[Collection.SHARES.value].update_one(
                {"_id": share.key, "rev": share.rev, "limit": 0}, {"$inc": {"moved": len(documents)}}, session=session
            )
            if closed.matched_count:
                done = await here[collection.value].bulk_write(as_read, ordered=False, session=session)
                if done.deleted_count == len(documents):
                    inserted = [dict(each) for each in (documents if put is None else [put] if put else [])]
                    if inserted:
                        await there[collection.value].insert_many(inserted, ordered=False, session=session)
                    await session.commit_transaction()
                    return len(documents)
            await session.abort_transaction()
        return 0


@asynccontextmanager
async def _transaction(database: Database) -> AsyncIterator[Any]:
    """Aborted, unless it is committed inside."""
    async with await awaited(database.client.start_session()) as session:
        begun = session.start_transaction(read_concern=ReadConcern("snapshot"), write_concern=MAJORITY)
        async with await awaited(begun):
            yield session


def _version(collection: Collection, document: _Document) -> dict[str, Any]:
    which: dict[str, Any] = {"_id": document["_id"]}
    if collection is not Collection.VERDICTS:
        which["rev"] = document.get("rev")
    if collection is Collection.SCHEDULES:
        which["cursor_ms"] = document.get("cursor_ms")
    if collection is Collection.JOBS:
        which["state"] = document.get("state")
    return which


def _is_duplicate(error: DuplicateKeyError | BulkWriteError) -> bool:
    if isinstance(error, DuplicateKeyError):
        return True
    return any(each.get("code") == DUPLICATE_KEY for each in (error.details or {}).get("writeErrors", ()))
