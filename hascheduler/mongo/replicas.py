"""The heartbeats of replicas, one document each.

They are acknowledged by a majority, not because a lost one would do harm, but because their echo measures the stream's
lag: the server holds back a write without a majority until its next flush (100 ms) before the stream delivers it.
"""

from collections.abc import Collection
from typing import Any

from pymongo import ReturnDocument

from hascheduler.model.collection import Collection as Stored
from hascheduler.model.values.instants import WallMs, from_datetime
from hascheduler.mongo.connection import MAJORITY, Database
from hascheduler.mongo.faults import faults
from hascheduler.schema.noun import document_of
from hascheduler.schema.replica import ReplicaStatus

REPLICA_KEPT_MS = 60_000


class MongoReplicaBoard:
    """`hascheduler.ports.ReplicaBoard`."""

    def __init__(self, database: Database) -> None:
        self._replicas = database[Stored.REPLICAS.value].with_options(write_concern=MAJORITY)

    async def beat(self, status: ReplicaStatus) -> WallMs | None:
        # The server's clock, as it is the server that lets the record expire.
        expiry: dict[str, Any] = {"expire_at": {"$add": ["$$NOW", REPLICA_KEPT_MS]}}
        status_fields = {"$literal": document_of(status)}
        with faults("write the replica's account"):
            written = await self._replicas.find_one_and_update(
                {"_id": status.id},
                [{"$replaceWith": {"$mergeObjects": [status_fields, expiry]}}],
                {"expire_at": True},
                upsert=True,
                return_document=ReturnDocument.AFTER,
            )
        assert written is not None, "an upsert returned no document"
        return WallMs(from_datetime(written["expire_at"]) - REPLICA_KEPT_MS)

    async def remove(self, replica_id: str) -> None:
        with faults("remove the replica's account"):
            await self._replicas.delete_one({"_id": replica_id})


async def ready_replicas(database: Database) -> Collection[str]:
    """Return the ids of the replicas whose last heartbeat said that they are ready; that may be a minute ago."""
    replicas = database[Stored.REPLICAS.value]
    with faults("read which replicas are ready"):
        return {str(each["_id"]) for each in await replicas.find({"ready": True}, ["_id"]).to_list(None)}
