"""The heartbeats of replicas."""

from hascheduler.model.collection import Collection
from hascheduler.model.documents.replica import encode_replica
from hascheduler.model.instants import WallMs
from hascheduler.model.replica import ReplicaStatus
from hascheduler.testing.memory.connection import MemoryConnection

REPLICA_KEPT_MS = 60_000


class MemoryReplicaBoard:
    """`hascheduler.ports.ReplicaBoard`."""

    def __init__(self, connection: MemoryConnection) -> None:
        self._connection = connection

    async def beat(self, status: ReplicaStatus) -> WallMs | None:
        async with self._connection.exchange("replicas.beat") as database:
            expiry = {"expire_at": database.instant_in(REPLICA_KEPT_MS)}
            database.replace(Collection.REPLICAS, {**encode_replica(status), **expiry})
        # None: tests set the time of this database, so no clock may be compared with it.
        return None

    async def remove(self, replica_id: str) -> None:
        async with self._connection.exchange("replicas.remove") as database:
            database.delete(Collection.REPLICAS, replica_id)
