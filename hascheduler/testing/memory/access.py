"""Access in memory: tokens, the audit log, the token buckets of tenants."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from hascheduler.errors import InvariantBroken
from hascheduler.model.collection import Collection
from hascheduler.model.token import sessions_of
from hascheduler.model.values.instants import WallMs, to_datetime
from hascheduler.ports import AuditFilter, StoredDocument, ended_sessions
from hascheduler.schema.audit import AuditRecord
from hascheduler.schema.definition import RateLimit
from hascheduler.schema.noun import document_of
from hascheduler.schema.token import Token
from hascheduler.testing.memory.database import Document, MemoryStore, RetainingStore, copied

_KEPT_LONGER_MS = 60_000
_MS = timedelta(milliseconds=1)


class MemoryTokenStore(MemoryStore):
    """`hascheduler.ports.TokenStore`."""

    async def create(self, token: Token) -> None:
        async with self._connection.exchange("tokens.create") as database:
            document = document_of(token)
            if database.insert(Collection.TOKENS, document):
                return
            if database.find(Collection.TOKENS, token.digest) != document:
                raise InvariantBroken("two tokens have one digest")

    async def begin_session(self, session: Token, living_max: int, now: WallMs) -> None:
        await self.create(session)
        async with self._connection.exchange("tokens.end_sessions") as database:
            alike = sessions_of(session.id)
            found = [
                each
                for each in database.documents(Collection.TOKENS)
                if each["id"].startswith(alike) and each.get("session_of") is not None
            ]
            for digest in ended_sessions(found, session.session_of, living_max, now):
                database.delete(Collection.TOKENS, digest)

    async def list(self, tenant: str | None, after: str | None, limit: int) -> Sequence[StoredDocument]:
        async with self._connection.exchange("tokens.list") as database:
            found = [
                document
                for document in database.documents(Collection.TOKENS)
                if (after is None or document["id"] > after) and tenant in (None, document["tenant"])
            ]
            return copied(sorted(found, key=lambda document: str(document["id"]))[:limit])

    async def revoke(self, id: str, tenant: str | None) -> bool:
        async with self._connection.exchange("tokens.revoke") as database:
            documents = list(database.documents(Collection.TOKENS))
            for document in documents:
                if document["id"] == id and tenant in (None, document["tenant"]):
                    for session in documents:
                        if session.get("session_of") == document["_id"]:
                            database.delete(Collection.TOKENS, session["_id"])
                    return database.delete(Collection.TOKENS, document["_id"])
            return False


class MemoryAuditStore(RetainingStore):
    """`hascheduler.ports.AuditStore`; records are kept for ``retention_ms``."""

    async def append(self, records: Sequence[AuditRecord]) -> None:
        async with self._connection.exchange("audit.append") as database:
            for record in records:
                expire_at = to_datetime(record.at_ms + self._retention_ms)
                database.insert(Collection.AUDIT, document_of(record) | {"expire_at": expire_at})

    async def trim(self, records_max: int) -> int:
        async with self._connection.exchange("audit.trim") as database:
            ids = sorted(str(record["_id"]) for record in database.documents(Collection.AUDIT))
            excess = ids[: max(0, len(ids) - records_max)]
            for id in excess:
                database.delete(Collection.AUDIT, id)
            return len(excess)

    async def list(self, which: AuditFilter, after: str | None, limit: int) -> Sequence[StoredDocument]:
        async with self._connection.exchange("audit.list") as database:
            return copied(
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


class MemoryBucketStore(MemoryStore):
    """`hascheduler.ports.BucketStore`."""

    async def take(self, tenant: str, limit: RateLimit, tokens: int) -> int:
        async with self._connection.exchange("buckets.take") as database:
            now = database.instant_in(0)
            need = tokens * limit.per_ms
            level = full = limit.count * limit.per_ms
            stored = database.find(Collection.BUCKETS, tenant)
            if stored is not None and (stored["count"], stored["per_ms"]) == (limit.count, limit.per_ms):
                passed_ms = max(0, (now - stored["at"]) // _MS)
                level = min(full, stored["level"] + passed_ms * limit.count)
            taken = level >= need
            level -= need if taken else 0
            document: dict[str, Any] = {
                "_id": tenant,
                "level": level,
                "count": limit.count,
                "per_ms": limit.per_ms,
                "at": now,
                "expire_at": database.instant_in(limit.per_ms + _KEPT_LONGER_MS),
                "taken": taken,
            }
            database.replace(Collection.BUCKETS, document)
            return 0 if taken else -(-(need - level) // limit.count)
