"""The audit log, one document a request. Records expire by their TTL index; `trim` deletes the oldest of too many."""

import re
from collections.abc import Sequence
from typing import Any

from pymongo import ASCENDING, DESCENDING
from pymongo.errors import BulkWriteError

from hascheduler.model.collection import Collection
from hascheduler.model.values.instants import to_datetime
from hascheduler.mongo.connection import MAJORITY, Database
from hascheduler.mongo.faults import faults
from hascheduler.ports import AuditFilter, StoredDocument
from hascheduler.schema.audit import AuditRecord
from hascheduler.schema.noun import document_of

_DUPLICATE_KEY = 11_000
_TRIMMED_MAX = 5_000


class MongoAuditStore:
    """`hascheduler.ports.AuditStore`; records are kept for ``retention_ms``."""

    def __init__(self, database: Database, retention_ms: int) -> None:
        self._records = database[Collection.AUDIT.value].with_options(write_concern=MAJORITY)
        self._retention_ms = retention_ms

    async def append(self, records: Sequence[AuditRecord]) -> None:
        if not records:
            return
        documents = [
            document_of(record) | {"expire_at": to_datetime(record.at_ms + self._retention_ms)} for record in records
        ]
        with faults("write the audit log"):
            try:
                await self._records.insert_many(documents, ordered=False)
            except BulkWriteError as error:
                # Duplicates are records of an earlier try whose answer got lost.
                if any(failure["code"] != _DUPLICATE_KEY for failure in error.details["writeErrors"]):
                    raise

    async def trim(self, records_max: int) -> int:
        with faults("trim the audit log"):
            excess = min(await self._records.estimated_document_count() - records_max, _TRIMMED_MAX)
            if excess <= 0:
                return 0
            oldest = self._records.find({}, {"_id": True}).sort("_id", ASCENDING)
            last = await oldest.skip(excess - 1).limit(1).to_list(None)
            if not last:
                return 0
            return (await self._records.delete_many({"_id": {"$lte": last[0]["_id"]}})).deleted_count

    async def list(self, which: AuditFilter, after: str | None, limit: int) -> Sequence[StoredDocument]:
        conditions: list[dict[str, Any]] = []
        if after is not None:
            conditions.append({"_id": {"$lt": after}})
        if which.since_ms is not None:
            # Ids begin with the instant.
            conditions.append({"_id": {"$gte": f"{max(0, which.since_ms):013d}"}})
        if which.who is not None:
            conditions.append({"$or": [{"who": which.who}, {"token_id": which.who}]})
        if which.tenant is not None:
            conditions.append({"tenant": which.tenant})
        if which.path is not None:
            conditions.append({"path": {"$regex": f"^{re.escape(which.path)}"}})
        with faults("read the audit log"):
            return await (
                self._records.find({"$and": conditions} if conditions else {})
                .sort("_id", DESCENDING)
                .limit(limit)
                .to_list(None)
            )
