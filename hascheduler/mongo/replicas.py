"""Heartbeats of replicas, reports of changes of leadership, and the newest checkpoint of the accounts.

Heartbeats are acknowledged by a majority, not because a lost one would do harm, but because their echo measures the
stream's lag: the server holds back a write without a majority until its next flush (100 ms) before the stream delivers
it.

Release 0.2.0 writes and reads only ``accumulated`` of the accounts, by key. A newer version replaces it together with
``by_tenant`` and ``tenants``, so all of them are of one moment in each document, and either version reads what the
other wrote.
"""

from collections.abc import Collection, Sequence
from typing import Any

from bson import MaxKey, MinKey
from pymongo import DESCENDING, ReturnDocument
from pymongo.errors import DuplicateKeyError

from hascheduler.dispatch.accounts import AccountsSnapshot, decode_accounts, encode_accounts
from hascheduler.model.collection import Collection as Stored
from hascheduler.model.values.instants import WallMs, from_datetime
from hascheduler.mongo.connection import MAJORITY, Database
from hascheduler.mongo.faults import faults
from hascheduler.ports import FAILOVERS_MAX
from hascheduler.schema.failover import Failover, encode_failover, failover_id, readable_failovers
from hascheduler.schema.noun import document_of
from hascheduler.schema.replica import ReplicaStatus

REPLICA_KEPT_MS = 60_000


class MongoReplicaBoard:
    """`hascheduler.ports.ReplicaBoard`."""

    def __init__(self, database: Database) -> None:
        self._replicas = database[Stored.REPLICAS.value].with_options(write_concern=MAJORITY)

    async def beat(self, status: ReplicaStatus) -> WallMs | None:
        # The server's clock, as the server lets the record expire.
        expiry: dict[str, Any] = {"expire_at": {"$add": ["$$NOW", REPLICA_KEPT_MS]}}
        status_fields = {"$literal": document_of(status)}
        with faults("write the replica's heartbeat"):
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
        with faults("delete the replica's record"):
            await self._replicas.delete_one({"_id": replica_id})


async def ready_replicas(database: Database) -> Collection[str]:
    """Return the ids of the replicas whose last heartbeat, up to a minute old, reported them ready."""
    replicas = database[Stored.REPLICAS.value]
    with faults("read the ready replicas"):
        return {str(each["_id"]) for each in await replicas.find({"ready": True}, ["_id"]).to_list(None)}


class MongoFailoverStore:
    """`hascheduler.ports.FailoverStore`."""

    def __init__(self, database: Database) -> None:
        self._failovers = database[Stored.FAILOVERS.value].with_options(write_concern=MAJORITY)

    async def save(self, failover: Failover) -> None:
        document = encode_failover(failover)
        with faults("write the failover report"):
            await self._failovers.replace_one({"_id": document["_id"]}, document, upsert=True)
            kept = self._failovers.find({"_id": _reports_of(failover.shard)}, {"_id": True}).sort("_id", DESCENDING)
            for oldest in await kept.skip(FAILOVERS_MAX - 1).limit(1).to_list(None):
                await self._failovers.delete_many({"_id": {**_reports_of(failover.shard), "$lt": oldest["_id"]}})

    async def newest(self, name: str, limit: int) -> Sequence[Failover]:
        with faults("read the failover reports"):
            found = self._failovers.find({"_id": _reports_of(name)}).sort("_id", DESCENDING).limit(limit)
            return readable_failovers(await found.to_list(None))


def _reports_of(name: str) -> dict[str, Any]:
    """Return the range of ``_id`` that holds the reports of that name."""
    return {"$gt": failover_id(name, MinKey()), "$lte": failover_id(name, MaxKey())}


class MongoAccountStore:
    """`hascheduler.ports.AccountStore`."""

    def __init__(self, database: Database) -> None:
        self._accounts = database[Stored.ACCOUNTS.value]

    async def save(self, name: str, term: int, accounts: AccountsSnapshot) -> bool:
        fields: dict[str, Any] = {"term": term, **encode_accounts(accounts)}
        with faults("save the accounts"):
            try:
                await self._accounts.replace_one({"_id": name, "term": {"$lte": term}}, fields, upsert=True)
            except DuplicateKeyError:
                return False
        return True

    async def load(self, name: str) -> AccountsSnapshot:
        with faults("load the accounts"):
            document = await self._accounts.find_one({"_id": name})
        return decode_accounts(document or {})
