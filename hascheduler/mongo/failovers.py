"""Reports of the changes of leadership, one document for each name and term, not in the stream."""

from collections.abc import Sequence
from typing import Any

from bson import MaxKey, MinKey
from pymongo import DESCENDING

from hascheduler.model.collection import Collection
from hascheduler.mongo.connection import MAJORITY, Database
from hascheduler.mongo.faults import faults
from hascheduler.ports import FAILOVERS_MAX
from hascheduler.schema.failover import Failover, encode_failover, failover_id, readable_failovers


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

    async def newest(self, name: str, limit: int) -> Sequence[Failover]:
        with faults("read the accounts of failovers"):
            found = self._failovers.find({"_id": _reports_of(name)}).sort("_id", DESCENDING).limit(limit)
            return readable_failovers(await found.to_list(None))


def _reports_of(name: str) -> dict[str, Any]:
    """The range of ``_id`` that holds the reports of that name."""
    return {"$gt": failover_id(name, MinKey()), "$lte": failover_id(name, MaxKey())}
