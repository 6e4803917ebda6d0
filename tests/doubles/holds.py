"""The holds of one shard, in memory."""

from collections.abc import Mapping
from dataclasses import replace

from hascheduler.model.collection import Collection
from hascheduler.model.documents.leadership import decode_hold, encode_hold, readable_holds
from hascheduler.model.partition import Hold
from hascheduler.testing.memory.database import MemoryConnection, MemoryDatabase, MemoryStore


class MemoryHoldStore(MemoryStore):
    """A `hascheduler.ports.leadership.HoldStore` in memory, with the release that a leader writes."""

    def __init__(self, connection: MemoryConnection | None = None) -> None:
        super().__init__(connection or MemoryConnection(MemoryDatabase()))

    async def get(self, key: str) -> Hold | None:
        async with self._connection.exchange("holds.get") as database:
            found = database.find(Collection.HOLDS, key)
            return None if found is None else decode_hold(key, found)

    async def all(self) -> Mapping[str, Hold]:
        async with self._connection.exchange("holds.all"):
            return self.stored

    async def put(self, hold: Hold) -> bool:
        async with self._connection.exchange("holds.put"):
            before = self.stored.get(hold.key)
            if before is not None and before.rev >= hold.rev:
                return False
            self.write(hold)
            return True

    # Past the port

    @property
    def stored(self) -> Mapping[str, Hold]:
        return readable_holds(self._connection.database.documents(Collection.HOLDS))

    def write(self, hold: Hold) -> None:
        """Replace the stored hold, if there is one."""
        self._connection.database.replace(Collection.HOLDS, encode_hold(hold))

    def release(self, seen: Hold) -> None:
        """Release the hold if it is still ``seen``; leave a later one as it is."""
        if self.stored.get(seen.key) == seen:
            self.write(replace(seen, released=seen.rev))
