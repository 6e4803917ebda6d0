"""Operations, one document each; they expire by their TTL index some time after their end.

Two unique indexes hold what must hold however many requests race. ``place`` is one of the few places that a party has
for unfinished operations; the end of one frees it, so the index has the unfinished ones alone. ``key`` is the party's
idempotency key.
"""

from collections.abc import Sequence
from typing import Any

from pymongo import DESCENDING, ReturnDocument
from pymongo.errors import DuplicateKeyError

from hascheduler.model.collection import Collection
from hascheduler.model.values.instants import WallMs, to_datetime
from hascheduler.mongo.connection import MAJORITY, Database
from hascheduler.mongo.faults import faults
from hascheduler.ports import BulkOperation, OperationState, StoredDocument
from hascheduler.ports.operations import (
    ENDED_KEPT_MAX,
    OPERATION_KEPT_MS,
    UNFINISHED_MAX,
    UnfinishedOperation,
    encode_operation,
    encode_progress_of,
    unfinished_operation,
)

_RUNNING = {"state": OperationState.RUNNING.value}


class MongoOperationStore:
    """`hascheduler.ports.OperationStore`."""

    def __init__(self, database: Database) -> None:
        self._operations = database[Collection.OPERATIONS.value].with_options(write_concern=MAJORITY)

    async def create(self, operation: BulkOperation, key: str | None = None) -> StoredDocument | None:
        document = encode_operation(operation)
        if key is not None:
            document["key"] = f"{operation.party}/{key}"
        with faults("create the operation"):
            for number in range(UNFINISHED_MAX):
                try:
                    await self._operations.insert_one({**document, "place": f"{operation.party}/{number}"})
                except DuplicateKeyError:
                    known = None if key is None else await self._operations.find_one({"key": document["key"]})
                    if known is not None:
                        return known
                else:
                    await self._trim(operation.party)
                    return document
        return None

    async def get(self, id: str) -> StoredDocument | None:
        with faults("read the operation"):
            return await self._operations.find_one({"_id": id})

    async def list(self, party: str | None, after: str | None, limit: int) -> Sequence[StoredDocument]:
        which: dict[str, Any] = {} if party is None else {"party": party}
        if after is not None:
            which["_id"] = {"$lt": after}
        with faults("list the operations"):
            return await self._operations.find(which).sort("_id", DESCENDING).limit(limit).to_list(None)

    async def request_stop(self, id: str, at_ms: WallMs, by: str) -> StoredDocument | None:
        asked = {"stop_requested_at_ms": at_ms, "stop_requested_by": by}
        with faults("stop the operation"):
            await self._operations.update_one({"_id": id, **_RUNNING, "stop_requested_at_ms": None}, {"$set": asked})
            return await self._operations.find_one({"_id": id})

    async def unfinished(self, limit: int) -> Sequence[UnfinishedOperation]:
        with faults("look for unfinished operations"):
            found = self._operations.find({"place": {"$gt": ""}}, ["runner", "rev"]).limit(limit)
            return [unfinished_operation(one) for one in await found.to_list(None)]

    async def take(self, id: str, before: str | None, rev: int, runner: str) -> StoredDocument | None:
        return await self._changed(id, before, rev, {"$set": {"runner": runner}, "$inc": {"rev": 1}})

    async def save(self, operation: BulkOperation) -> StoredDocument | None:
        fields = encode_progress_of(operation)
        change: dict[str, Any] = {"$set": fields, "$inc": {"rev": 1}}
        if operation.ended_at_ms is not None:
            fields["expire_at"] = to_datetime(operation.ended_at_ms + OPERATION_KEPT_MS)
            change["$unset"] = {"place": ""}
        return await self._changed(operation.id, operation.runner, operation.rev, change)

    async def give_back(self, operation: BulkOperation) -> None:
        freed = {"$set": {"runner": None}, "$inc": {"rev": 1}}
        await self._changed(operation.id, operation.runner, operation.rev, freed)

    async def _changed(self, id: str, runner: str | None, rev: int, change: dict[str, Any]) -> StoredDocument | None:
        unchanged = {"_id": id, "runner": runner, "rev": rev, **_RUNNING}
        with faults("write the operation"):
            return await self._operations.find_one_and_update(unchanged, change, return_document=ReturnDocument.AFTER)

    async def _trim(self, party: str) -> None:
        """Without this, one token could fill the database with operations on nothing."""
        newest = self._operations.find({"party": party}, {"_id": True}).sort("_id", DESCENDING)
        for last in await newest.skip(ENDED_KEPT_MAX).limit(1).to_list(None):
            ended = {"party": party, "_id": {"$lte": last["_id"]}, "state": {"$ne": OperationState.RUNNING.value}}
            await self._operations.delete_many(ended)
