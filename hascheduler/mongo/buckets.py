"""The token buckets of tenants: one small document each, which one exchange refills, compares and takes from.

The level is counted in ``1 / per_ms`` of a token, so all arithmetic is exact in whole numbers: each millisecond adds
``count`` of these units, and one token is ``per_ms`` of them. A full bucket equals an absent one, so each document
expires when its bucket has surely filled up.
"""

from typing import Any

from bson import Int64
from pymongo import ReturnDocument
from pymongo.errors import DuplicateKeyError

from hascheduler.model.collection import Collection
from hascheduler.mongo.connection import ONE, Database
from hascheduler.mongo.faults import faults
from hascheduler.schema.definition import RateLimit

_KEPT_LONGER_MS = 60_000


class MongoBucketStore:
    """`hascheduler.ports.BucketStore`, acknowledged by the primary alone: after a failover some tokens may be back."""

    def __init__(self, database: Database) -> None:
        self._buckets = database[Collection.BUCKETS.value].with_options(write_concern=ONE)

    async def take(self, tenant: str, limit: RateLimit, tokens: int) -> int:
        with faults("take from the bucket"):
            try:
                bucket = await self._taken(tenant, limit, tokens)
            except DuplicateKeyError:
                # Another replica has just inserted it.
                bucket = await self._taken(tenant, limit, tokens)
        if bucket["taken"]:
            return 0
        return -(-(tokens * limit.per_ms - int(bucket["level"])) // limit.count)

    async def _taken(self, tenant: str, limit: RateLimit, tokens: int) -> dict[str, Any]:
        bucket = await self._buckets.find_one_and_update(
            {"_id": tenant}, _taking(limit, tokens), upsert=True, return_document=ReturnDocument.AFTER
        )
        assert bucket is not None, "an upsert returned no document"
        return bucket


def _taking(limit: RateLimit, tokens: int) -> list[dict[str, Any]]:
    count, per_ms = Int64(limit.count), Int64(limit.per_ms)
    full, need = Int64(limit.count * limit.per_ms), Int64(tokens * limit.per_ms)
    is_same = {"$and": [{"$eq": ["$count", count]}, {"$eq": ["$per_ms", per_ms]}]}
    passed_ms = {"$max": [Int64(0), {"$subtract": ["$$NOW", "$at"]}]}
    refilled = {"$min": [full, {"$add": ["$level", {"$multiply": [passed_ms, count]}]}]}
    return [
        {
            "$set": {
                "level": {"$cond": [is_same, refilled, full]},
                "count": count,
                "per_ms": per_ms,
                # If the clock went back, refilling continues from there; otherwise it would stop until it catches up.
                "at": "$$NOW",
                "expire_at": {"$add": ["$$NOW", Int64(limit.per_ms + _KEPT_LONGER_MS)]},
            }
        },
        {"$set": {"taken": {"$gte": ["$level", need]}}},
        {"$set": {"level": {"$cond": ["$taken", {"$subtract": ["$level", need]}, "$level"]}}},
    ]
