"""The lease of each shard: who leads it."""

from hascheduler.model.collection import Collection
from hascheduler.model.documents.lease import encode_lease, readable_lease
from hascheduler.model.lease import LeaseRecord
from hascheduler.testing.memory.connection import MemoryConnection


class MemoryLeaseStore:
    """`hascheduler.ports.LeaseStore`."""

    def __init__(self, connection: MemoryConnection) -> None:
        self._connection = connection

    async def get(self, shard: str) -> LeaseRecord | None:
        async with self._connection.exchange("leases.get") as database:
            document = database.find(Collection.LEASES, shard)
            return None if document is None else readable_lease(document["_id"], document)

    async def create(self, record: LeaseRecord) -> bool:
        async with self._connection.exchange("leases.create") as database:
            there = database.find(Collection.LEASES, record.shard)
            if there is None or readable_lease(there["_id"], there) is not None:
                return database.insert(Collection.LEASES, encode_lease(record))
            database.replace(Collection.LEASES, encode_lease(record))
            return True

    async def update(self, expected: LeaseRecord, proposed: LeaseRecord) -> bool:
        async with self._connection.exchange("leases.update") as database:
            stored = database.find(Collection.LEASES, expected.shard)
            version = (expected.holder, expected.term, expected.renewals)
            if stored is None or (stored.get("holder"), stored.get("term"), stored.get("renewals")) != version:
                return False
            database.replace(Collection.LEASES, encode_lease(proposed))
            return True
