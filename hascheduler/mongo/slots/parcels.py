"""Moves documents between two MongoDBs, which no transaction covers: each document is in one of three places at every
instant, and some at a time go on together, as a *parcel*::

    here: jobs ──(1)──► here: departures ──(2)──► there: jobs        (3) departures forgets what has arrived
                                                  there: arrivals    has the name of the parcel

1. *depart*: one transaction, which demands the hold of the slot here, takes them out of their collection.
2. *arrive*: one transaction, which demands the hold there, inserts them and the parcel's name.
3. What has arrived is deleted here.

The mover of the slot delivers first what has departed already, and now and then it looks for what has departed
from a slot that rests: so one that is killed between two steps leaves nothing behind. One that was asleep does none of
them twice: it finds the name of the parcel, and once that is forgotten (the hold there has been put again since) its
transaction is refused.

A document that has departed is found in neither shard until it arrives: a request for it gets `Moving` (503) meanwhile
(`hascheduler.sharding.places.ShardPlaces.require_found`).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from bson import ObjectId
from pymongo import ASCENDING
from pymongo.errors import BulkWriteError, DuplicateKeyError

from hascheduler.model.collection import Collection
from hascheduler.model.hold import partition_of_key
from hascheduler.mongo.connection import Database, transaction
from hascheduler.mongo.slots.transactions import Route, Which, is_duplicate, is_still, marked, unchanged
from hascheduler.ports.sharding import MOVE_MARK, MOVED, duplicate_of_another, is_late_copy

_TRIES = 3
"""A parcel is read against what is there, and inserted; a submit may come in between."""
_ID_DIGITS = 24
_LOOKED_AT_MAX = 1_000


class Apart:
    """The two databases are in different MongoDBs."""

    def __init__(self, route: Route) -> None:
        self._route = route
        self._departures = route.here[Collection.DEPARTURES.value]
        self._arrivals = route.there[Collection.ARRIVALS.value]
        slot = partition_of_key(route.passage.closed.key)
        self._prefix = f"{slot:02x}/"

    async def transfer(self, collection: Collection, which: Which, limit: int) -> int | None:
        """How many of those are there now; None: not under these holds."""
        if not await self._is_expected():
            return None
        parcel = str(ObjectId())
        departed = await self._depart(parcel, collection, which, limit)
        return await self._arrive(parcel) if departed else departed

    async def deliver(self) -> int | None:
        """How many documents that had departed before have arrived now; None: not under these holds."""
        moved = 0
        for parcel in await self._underway():
            arrived = await self._arrive(parcel)
            if arrived is None:
                return None
            moved += arrived
        return moved

    async def _underway(self) -> Sequence[str]:
        """The parcels of the slot that have departed, the first ones first."""
        found = self._departures.find(self._of(""), {"_id": True}).sort([("_id", ASCENDING)])
        start = len(self._prefix)
        return list(dict.fromkeys([one["_id"][start : start + _ID_DIGITS] async for one in found]))

    async def _is_expected(self) -> bool:
        """Whether the hold there is as the mover saw it, which the arrival demands: else nothing departs in vain."""
        holds, hold = self._route.there[Collection.HOLDS.value], self._route.passage.there
        return await holds.find_one(unchanged(hold), {"_id": True}) is not None

    async def _depart(self, parcel: str, collection: Collection, which: Which, limit: int) -> int | None:
        documents = self._route.here[collection.value]
        async with transaction(self._route.here) as session:
            if not await is_still(self._route.here, self._route.passage.closed, session):
                await session.abort_transaction()
                return None
            found = await documents.find(which, session=session).limit(limit).to_list(limit)
            if not found:
                await session.abort_transaction()
                return 0
            await documents.delete_many({"_id": {"$in": [document["_id"] for document in found]}}, session=session)
            await self._departures.insert_many(
                [
                    {"_id": f"{self._prefix}{parcel}/{number:04d}", "collection": collection.value, "document": each}
                    for number, each in enumerate(found)
                ],
                session=session,
            )
            await session.commit_transaction()
        return len(found)

    async def _arrive(self, parcel: str) -> int | None:
        departed = await self._departures.find(self._of(parcel)).to_list(None)
        for tries_left in reversed(range(_TRIES)):
            try:
                if not await self._inserted(parcel, departed):
                    return None
                break
            except (DuplicateKeyError, BulkWriteError) as error:
                if not is_duplicate(error) or not tries_left:
                    raise
        await self._forget(parcel)
        return len(departed)

    async def _forget(self, parcel: str) -> None:
        await self._departures.delete_many(self._of(parcel))

    async def _inserted(self, parcel: str, departed: Sequence[Mapping[str, Any]]) -> bool:
        """Whether the parcel is there now, as it may have been before; False: not under this hold."""
        name, hold = f"{self._prefix}{parcel}", self._route.passage.there
        async with transaction(self._route.there) as session:
            if not await is_still(self._route.there, hold, session):
                await session.abort_transaction()
                return False
            if await self._arrivals.find_one({"_id": name}, session=session) is not None:
                await session.abort_transaction()
                return True
            await self._arrivals.insert_one({"_id": name, "rev": hold.rev}, session=session)
            # Those that came under an earlier hold: who might bring them again is refused.
            await self._arrivals.delete_many(
                {"_id": {"$gte": self._prefix, "$lt": f"{self._prefix}~"}, "rev": {"$lt": hold.rev}}, session=session
            )
            for collection in MOVED:
                found = [one["document"] for one in departed if one["collection"] == collection.value]
                new = await self._not_there(collection, found, session)
                if new:
                    await self._route.there[collection.value].insert_many(new, ordered=False, session=session)
            await session.commit_transaction()
        return True

    async def _not_there(
        self, collection: Collection, documents: Sequence[dict[str, Any]], session: Any
    ) -> Sequence[dict[str, Any]]:
        """What is to be inserted of ``documents``: not those that are there by their ids, unless as late copies, which
        are deleted; as cancelled ones those whose key another job has."""
        there = self._route.there[collection.value]
        ids = [document["_id"] for document in documents]
        found = await there.find({"_id": {"$in": ids}}, ["state", "attempt"], session=session).to_list(None)
        known = {one["_id"]: one for one in found}
        if collection is not Collection.JOBS:
            return marked([document for document in documents if document["_id"] not in known])
        late = [id for id, one in zip(ids, documents, strict=True) if id in known and is_late_copy(known[id], one)]
        if late:
            await there.delete_many({"_id": {"$in": late}}, session=session)
        new = [document for document in documents if document["_id"] not in known or document["_id"] in late]
        keys = [key for key in map(_idempotency_key, new) if key is not None]
        unique = [job["unique_key"] for job in new if job.get("unique_key")]
        taken: set[Any] = set()
        if keys or unique:
            of_those = [{"tenant": tenant, "idempotency_key": key} for tenant, key in keys]
            which = {"$or": [*of_those, *([{"unique_key": {"$in": unique}}] if unique else [])]}
            wanted = ["tenant", "idempotency_key", "unique_key"]
            async for job in there.find(which, wanted, session=session):
                taken |= {_idempotency_key(job), job.get("unique_key")} - {None}
        return [
            duplicate_of_another(job, self._route.at_ms, self._route.job_retention_ms)
            if not taken.isdisjoint({_idempotency_key(job), job.get("unique_key")})
            else {**job, MOVE_MARK: True}
            for job in new
        ]

    def _of(self, parcel: str) -> dict[str, Any]:
        """The documents of that parcel; "": of all parcels of the slot."""
        prefix = f"{self._prefix}{parcel}/" if parcel else self._prefix
        return {"_id": {"$gte": prefix, "$lt": f"{prefix}~"}}


async def slots_underway(database: Database) -> frozenset[int]:
    """The slots of which something has departed from that database, and is not known to have arrived."""
    found = database[Collection.DEPARTURES.value].find({}, {"_id": True}).limit(_LOOKED_AT_MAX)
    return frozenset([int(each["_id"][:2], 16) async for each in found])


def _idempotency_key(job: Mapping[str, Any]) -> tuple[Any, Any] | None:
    key = job.get("idempotency_key")
    return (job.get("tenant"), key) if key else None
