"""Documents by name: definitions, lanes, calendars, tenants and pauses; the store of schedules builds on it."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from pymongo import ASCENDING, ReturnDocument
from pymongo.errors import DuplicateKeyError

from hascheduler.model.collection import Collection
from hascheduler.mongo.connection import MAJORITY, Database
from hascheduler.mongo.faults import faults
from hascheduler.ports import StoredDocument

Resource = TypeVar("Resource")


class MongoNamedStore:
    """Base of the stores of named documents."""

    def __init__(self, database: Database, collection: Collection) -> None:
        self._documents = database[collection.value].with_options(write_concern=MAJORITY)
        self._what = f"the {collection.value.removesuffix('s')}"

    async def get(self, name: str) -> StoredDocument | None:
        with faults(f"read {self._what}"):
            return await self._documents.find_one({"_id": name})

    async def delete(self, name: str, rev: int | None = None) -> bool:
        with faults(f"delete {self._what}"):
            answer = await self._documents.delete_one({"_id": name} if rev is None else {"_id": name, "rev": rev})
        return answer.deleted_count == 1

    async def _insert(self, document: dict[str, Any]) -> StoredDocument | None:
        with faults(f"create {self._what}"):
            try:
                await self._documents.insert_one(document)
            except DuplicateKeyError:
                return None
        return document


class MongoResourceStore(MongoNamedStore, Generic[Resource]):
    """`hascheduler.ports.ResourceStore`. ``encode`` returns a resource's document, whose ``_id`` is its name."""

    def __init__(
        self, database: Database, collection: Collection, encode: Callable[[Resource], dict[str, Any]]
    ) -> None:
        super().__init__(database, collection)
        self._encode = encode

    async def create(self, resource: Resource) -> StoredDocument | None:
        return await self._insert(self._encode(resource) | {"rev": 1})

    async def replace(self, resource: Resource, rev: int) -> StoredDocument | None:
        fields = self._encode(resource)
        which = {"_id": fields.pop("_id"), "rev": rev}
        update = {"$set": fields | {"rev": rev + 1}}
        with faults(f"replace {self._what}"):
            return await self._documents.find_one_and_update(which, update, return_document=ReturnDocument.AFTER)

    async def list(self, after: str | None, limit: int) -> Sequence[StoredDocument]:
        which = {} if after is None else {"_id": {"$gt": after}}
        with faults(f"list {self._what}s"):
            return await self._documents.find(which).sort("_id", ASCENDING).limit(limit).to_list(None)
