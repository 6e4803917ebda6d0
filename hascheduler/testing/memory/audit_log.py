"""The audit log, one document a request."""

from collections.abc import Sequence
from copy import deepcopy

from hascheduler.model.collection import Collection
from hascheduler.model.instants import to_datetime
from hascheduler.ports import AuditFilter, AuditRecord, StoredDocument, encode_audit_record
from hascheduler.testing.memory.connection import MemoryConnection
from hascheduler.testing.memory.database import Document


class MemoryAuditStore:
    """`hascheduler.ports.AuditStore`; records are kept for ``retention_ms``."""

    def __init__(self, connection: MemoryConnection, retention_ms: int) -> None:
        self._connection = connection
        self._retention_ms = retention_ms

    async def append(self, records: Sequence[AuditRecord]) -> None:
        async with self._connection.exchange("audit.append") as database:
            for record in records:
                expire_at = to_datetime(record.at_ms + self._retention_ms)
                database.insert(Collection.AUDIT, encode_audit_record(record) | {"expire_at": expire_at})

    async def trim(self, records_max: int) -> int:
        async with self._connection.exchange("audit.trim") as database:
            ids = sorted(str(record["_id"]) for record in database.documents(Collection.AUDIT))
            excess = ids[: max(0, len(ids) - records_max)]
            for id in excess:
                database.delete(Collection.AUDIT, id)
            return len(excess)

    async def list(self, which: AuditFilter, after: str | None, limit: int) -> Sequence[StoredDocument]:
        async with self._connection.exchange("audit.list") as database:
            return deepcopy(
                database.page(
                    Collection.AUDIT, after, limit, newest_first=True, which=lambda record: _matches(record, which)
                )
            )


def _matches(record: Document, which: AuditFilter) -> bool:
    return (
        (which.since_ms is None or record["at_ms"] >= which.since_ms)
        and which.who in (None, record["who"], record["token_id"])
        and which.tenant in (None, record["tenant"])
        and (which.path is None or record["path"].startswith(which.path))
    )
