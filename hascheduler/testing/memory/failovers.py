"""Reports of the changes of leadership, the newest of each shard."""

from collections.abc import Sequence
from contextlib import suppress

from hascheduler.errors import InvalidInput
from hascheduler.model.collection import Collection
from hascheduler.model.documents.failover import decode_failover, encode_failover
from hascheduler.model.failover import Failover
from hascheduler.ports import FAILOVERS_MAX
from hascheduler.testing.memory.connection import MemoryConnection
from hascheduler.testing.memory.database import Document, MemoryDatabase


class MemoryFailoverStore:
    """`hascheduler.ports.FailoverStore`."""

    def __init__(self, connection: MemoryConnection) -> None:
        self._connection = connection

    async def save(self, failover: Failover) -> None:
        async with self._connection.exchange("failovers.save") as database:
            database.replace(Collection.FAILOVERS, encode_failover(failover))
            for document in _newest_first(database, failover.shard)[FAILOVERS_MAX:]:
                database.delete(Collection.FAILOVERS, document["_id"])

    async def newest(self, shard: str, limit: int) -> Sequence[Failover]:
        failovers: list[Failover] = []
        async with self._connection.exchange("failovers.newest") as database:
            for document in _newest_first(database, shard)[:limit]:
                with suppress(InvalidInput):
                    failovers.append(decode_failover(document))
        return failovers


def _newest_first(database: MemoryDatabase, shard: str) -> list[Document]:
    of_shard = [one for one in database.documents(Collection.FAILOVERS) if one["_id"]["shard"] == shard]
    return sorted(of_shard, key=lambda one: one["_id"]["term"], reverse=True)
