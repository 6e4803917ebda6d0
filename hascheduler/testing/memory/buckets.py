"""The token buckets of tenants, by the clock of the memory database."""

from datetime import timedelta
from typing import Any

from hascheduler.model.collection import Collection
from hascheduler.model.definition import RateLimit
from hascheduler.testing.memory.connection import MemoryConnection

_KEPT_LONGER_MS = 60_000
_MS = timedelta(milliseconds=1)


class MemoryBucketStore:
    """`hascheduler.ports.BucketStore`."""

    def __init__(self, connection: MemoryConnection) -> None:
        self._connection = connection

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
