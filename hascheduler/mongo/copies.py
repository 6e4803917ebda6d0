"""Whole documents of what people define, for copies from the home of several shards into each of them."""

from pymongo.errors import DuplicateKeyError

from hascheduler.model.collection import Collection
from hascheduler.mongo.connection import Database
from hascheduler.mongo.faults import faults
from hascheduler.ports import StoredDocument


class MongoCopyStore:
    """`hascheduler.ports.sharding.CopyStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, collection: Collection, name: str) -> StoredDocument | None:
        with faults("read what is copied"):
            return await self._database[collection.value].find_one({"_id": name})

    async def insert(self, collection: Collection, document: StoredDocument) -> bool:
        with faults("write a copy"):
            try:
                await self._database[collection.value].insert_one(dict(document))
            except DuplicateKeyError:
                return False
        return True

    async def replace(self, collection: Collection, before: StoredDocument, document: StoredDocument) -> bool:
        with faults("write a copy"):
            done = await self._database[collection.value].replace_one(_version(before), dict(document))
        return done.matched_count == 1

    async def delete(self, collection: Collection, before: StoredDocument) -> bool:
        with faults("delete a copy"):
            done = await self._database[collection.value].delete_one(_version(before))
        return done.deleted_count == 1


def _version(document: StoredDocument) -> dict[str, object]:
    """Which one it is; one that was broken by hand may have any ``rev``, or none."""
    return {"_id": document["_id"], "rev": document.get("rev")}
