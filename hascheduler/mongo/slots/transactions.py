"""Moves documents between two databases of one MongoDB: a transaction over both reads, deletes and inserts them.

It demands the holds of the slot in both, by a write to each: where one was put since the mover read it, by another
move or another step of this one, it is refused. A transaction is one entry of each database's history, and every stream
reads it as a whole: so it is a small part.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pymongo.errors import BulkWriteError, DuplicateKeyError

from hascheduler.model.collection import Collection
from hascheduler.model.hold import Hold
from hascheduler.model.values.instants import WallMs
from hascheduler.mongo.connection import Database, transaction
from hascheduler.mongo.faults import DUPLICATE_KEY
from hascheduler.ports.sharding import MOVE_MARK, Passage, duplicate_of_another, is_late_copy

Which = Mapping[str, Any]
"""A query."""


@dataclass(frozen=True, slots=True)
class Route:
    """Where the documents of a passage are, and where they go."""

    passage: Passage
    here: Database
    there: Database
    at_ms: WallMs
    job_retention_ms: int


class Together:
    """Both databases are in one MongoDB."""

    def __init__(self, route: Route) -> None:
        self._route = route
        self._holds = ((route.here, route.passage.closed), (route.there, route.passage.there))

    async def deliver(self) -> int | None:
        """Nothing is ever on its way."""
        return 0

    async def transfer(self, collection: Collection, which: Which, limit: int) -> int | None:
        """How many of those are there now; None: not under these holds."""
        try:
            return await self._transfer_all(collection, which, limit)
        except (DuplicateKeyError, BulkWriteError) as error:
            if not is_duplicate(error):
                raise
        moved = 0
        here, there = self._route.here[collection.value], self._route.there[collection.value]
        for document in await here.find(which).limit(limit).to_list(limit):
            of_it = {**which, "_id": document["_id"]}
            try:
                moved += await self._transfer_all(collection, of_it, 1) or 0
            except (DuplicateKeyError, BulkWriteError) as error:
                if not is_duplicate(error):
                    raise
                unchanged = {**of_it, "rev": document.get("rev")}
                known = await there.find_one({"_id": document["_id"]}, ["state", "attempt"])
                put: Which | None
                put, instead_of = {}, None
                if known is None:
                    put = duplicate_of_another(document, self._route.at_ms, self._route.job_retention_ms)
                elif collection is Collection.JOBS and is_late_copy(known, document):
                    put, instead_of = None, known
                moved += await self._transfer_all(collection, unchanged, 1, put=put, instead_of=instead_of) or 0
        return moved

    async def _transfer_all(
        self,
        collection: Collection,
        which: Which,
        limit: int,
        *,
        put: Which | None = None,
        instead_of: Which | None = None,
    ) -> int | None:
        """All of them or none: where another write meets one that was read here, nothing is moved. ``put`` stands for a
        single one; empty: it is only to be deleted here. A single one may come ``instead_of`` the one that is there, as
        long as that is as it was."""
        here, there = self._route.here[collection.value], self._route.there[collection.value]
        async with transaction(self._route.here) as session:
            for database, hold in self._holds:
                if not await is_still(database, hold, session):
                    await session.abort_transaction()
                    return None
            documents = await here.find(which, session=session).limit(limit).to_list(limit)
            if not documents:
                await session.abort_transaction()
                return 0
            await here.delete_many({"_id": {"$in": [document["_id"] for document in documents]}}, session=session)
            if instead_of is not None and not (await there.delete_one(instead_of, session=session)).deleted_count:
                await session.abort_transaction()
                return 0
            inserted = marked(documents) if put is None else [dict(put)] if put else []
            if inserted:
                await there.insert_many(inserted, ordered=False, session=session)
            await session.commit_transaction()
        return len(documents)


async def is_still(database: Database, hold: Hold, session: Any) -> bool:
    """Whether that hold is stored as it is; no other transaction can say so at the same time, nor put another one."""
    holds = database[Collection.HOLDS.value]
    demanded = await holds.update_one(unchanged(hold), {"$inc": {"moved": 1}}, session=session)
    return bool(demanded.matched_count)


def unchanged(hold: Hold) -> Which:
    """That hold, as the mover saw it."""
    return {"_id": hold.key, "rev": hold.rev, "held": hold.is_held}


def marked(documents: Iterable[Which]) -> list[dict[str, Any]]:
    """Return the documents as they are inserted where they go, so that streams there make no events of it."""
    return [{**document, MOVE_MARK: True} for document in documents]


def is_duplicate(error: DuplicateKeyError | BulkWriteError) -> bool:
    if isinstance(error, DuplicateKeyError):
        return True
    return any(each.get("code") == DUPLICATE_KEY for each in (error.details or {}).get("writeErrors", ()))
