"""Definitions as the API writes them, one document a name."""

from collections.abc import Sequence
from typing import Any

from pymongo import ASCENDING, ReturnDocument
from pymongo.errors import DuplicateKeyError

from hascheduler.errors import InvariantBroken
from hascheduler.model.definition import Definition
from hascheduler.model.documents import Collection, encode_definition
from hascheduler.mongo.connection import MAJORITY, Database
from hascheduler.mongo.faults import faults
from hascheduler.ports import StoredDocument


class MongoDefinitionStore:
    """`hascheduler.ports.DefinitionStore`."""

    def __init__(self, database: Database) -> None:
        self._definitions = database[Collection.DEFINITIONS.value].with_options(write_concern=MAJORITY)

    async def create(self, definition: Definition) -> StoredDocument | None:
        document = encode_definition(definition) | {"rev": 1}
        with faults("create the definition"):
            try:
                await self._definitions.insert_one(document)
            except DuplicateKeyError:
                return None
        return document

    async def put(self, definition: Definition) -> tuple[StoredDocument, bool]:
        with faults("write the definition"):
            document = await self._definitions.find_one_and_update(
                {"_id": definition.name}, _replacing(definition), upsert=True, return_document=ReturnDocument.AFTER
            )
        if document is None:
            raise InvariantBroken("an upsert returned no document")
        return document, document["rev"] == 1

    async def replace(self, definition: Definition, rev: int) -> StoredDocument | None:
        with faults("replace the definition"):
            return await self._definitions.find_one_and_update(
                {"_id": definition.name, "rev": rev}, _replacing(definition), return_document=ReturnDocument.AFTER
            )

    async def get(self, name: str) -> StoredDocument | None:
        with faults("read the definition"):
            return await self._definitions.find_one({"_id": name})

    async def list(self, after: str | None, limit: int) -> Sequence[StoredDocument]:
        which = {} if after is None else {"_id": {"$gt": after}}
        with faults("list the definitions"):
            return await self._definitions.find(which).sort("_id", ASCENDING).limit(limit).to_list(None)

    async def delete(self, name: str, rev: int | None = None) -> bool:
        with faults("delete the definition"):
            answer = await self._definitions.delete_one({"_id": name} if rev is None else {"_id": name, "rev": rev})
        return answer.deleted_count == 1


def _replacing(definition: Definition) -> dict[str, Any]:
    fields = encode_definition(definition)
    del fields["_id"], fields["rev"]  # the name is the filter's, and the stored rev counts
    return {"$set": fields, "$inc": {"rev": 1}}
