"""Reports of the changes of leadership, the newest `FAILOVERS_MAX` of each shard: ``_id = {shard, term}``, not in the
stream."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from bson import MaxKey, MinKey
from pymongo import DESCENDING

from hascheduler.errors import InvalidInput
from hascheduler.model.collection import Collection
from hascheduler.model.documents.failover import decode_failover, encode_failover
from hascheduler.model.failover import Failover
from hascheduler.mongo.connection import MAJORITY, Database
from hascheduler.mongo.faults import faults
from hascheduler.ports import FAILOVERS_MAX


class MongoFailoverStore:
    """`hascheduler.ports.FailoverStore`."""

    def __init__(self, database: Database) -> None:
        self._failovers = database[Collection.FAILOVERS.value].with_options(write_concern=MAJORITY)

    async def save(self, failover: Failover) -> None:
        document = encode_failover(failover)
        with faults("keep the account of a failover"):
            await self._failovers.replace_one({"_id": document["_id"]}, document, upsert=True)
            kept = self._failovers.find({"_id": _reports_of(failover.shard)}, {"_id": True}).sort("_id", DESCENDING)
            for oldest in await kept.skip(FAILOVERS_MAX - 1).limit(1).to_list(None):
                await self._failovers.delete_many({"_id": {**_reports_of(failover.shard), "$lt": oldest["_id"]}})

    async def newest(self, shard: str, limit: int) -> Sequence[Failover]:
        with faults("read the accounts of failovers"):
            found = self._failovers.find({"_id": _reports_of(shard)}).sort("_id", DESCENDING).limit(limit)
            documents = await found.to_list(None)
        failovers: list[Failover] = []
        for document in documents:
            with suppress(InvalidInput):
                failovers.append(decode_failover(document))
        return failovers


def _reports_of(shard: str) -> dict[str, Any]:
    """The range of ``_id`` that holds the shard's reports."""
    return {"$gt": {"shard": shard, "term": MinKey()}, "$lte": {"shard": shard, "term": MaxKey()}}
