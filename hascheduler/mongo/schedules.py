"""Schedules as the API writes them, in the form of `hascheduler.model.documents.schedule`.

Mirrors see the trigger, the job's references and the times; payload and labels stay in the database until a fire.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pymongo import ASCENDING, ReturnDocument

from hascheduler.model.collection import Collection
from hascheduler.mongo.connection import Database
from hascheduler.mongo.faults import faults
from hascheduler.mongo.queries import has_labels
from hascheduler.mongo.resources import MongoNamedStore
from hascheduler.ports import StoredDocument

_BY_ID = "_id_"
"""The hint to read the index of the ids, whatever else the filter holds."""
_AT_ONCE = 10
"""How many schedules the server returns at once, for the driver to decode in one go: each may be a megabyte."""


class MongoScheduleStore(MongoNamedStore):
    """`hascheduler.ports.ScheduleStore`."""

    def __init__(self, database: Database) -> None:
        super().__init__(database, Collection.SCHEDULES)

    async def create(self, document: StoredDocument) -> StoredDocument | None:
        return await self._insert(dict(document))

    async def edit(self, name: str, rev: int, fields: Mapping[str, Any]) -> StoredDocument | None:
        with faults("edit the schedule"):
            return await self._documents.find_one_and_update(
                {"_id": name, "rev": rev},
                {"$set": dict(fields), "$inc": {"rev": 1}},
                return_document=ReturnDocument.AFTER,
            )

    async def list(
        self, after: str | None, limit: int, labels: Mapping[str, str] | None = None, *, tenant: str | None = None
    ) -> Sequence[StoredDocument]:
        which = _matching(labels or {}, tenant) | ({} if after is None else {"_id": {"$gt": after}})
        with faults("list the schedules"):
            found = self._documents.find(which, batch_size=_AT_ONCE).sort("_id", ASCENDING)
            return await found.limit(limit).to_list(None)

    async def among(
        self, names: Sequence[str], labels: Mapping[str, str], limit: int, *, tenant: str | None = None
    ) -> Sequence[StoredDocument]:
        which = {"_id": {"$in": list(names)}, **_matching(labels, tenant)}
        with faults("list the schedules"):
            found = self._documents.find(which, batch_size=_AT_ONCE).sort("_id", ASCENDING).hint(_BY_ID)
            return await found.limit(limit).to_list(None)

    async def names_among(
        self, names: Sequence[str], labels: Mapping[str, str], *, tenant: str | None = None
    ) -> Sequence[str]:
        which = {"_id": {"$in": list(names)}, **_matching(labels, tenant)}
        with faults("find the schedules"):
            found = await self._documents.find(which, ["_id"]).hint(_BY_ID).to_list(None)
        return [schedule["_id"] for schedule in found]

    async def count(self, tenant: str, limit: int) -> int:
        with faults("count the schedules"):
            return await self._documents.count_documents({"job.tenant": tenant}, limit=limit)


def _matching(labels: Mapping[str, str], tenant: str | None) -> dict[str, Any]:
    which = {} if tenant is None else {"job.tenant": tenant}
    return {**which, "$expr": has_labels(labels)} if labels else which
