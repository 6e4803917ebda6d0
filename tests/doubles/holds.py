"""The holds of one shard, in memory."""

from collections.abc import Mapping
from dataclasses import replace

from hascheduler.model.collection import Collection
from hascheduler.model.documents.hold import decode_hold, encode_hold, readable_holds
from hascheduler.model.hold import Hold
from hascheduler.model.values.fields import is_integer
from hascheduler.testing.memory.database import MemoryStore


class HeldInMemory:
    """`hascheduler.ports.holds.HoldStore`, and the release that a leader writes."""

    def __init__(self) -> None:
        self.stored: dict[str, Hold] = {}

    async def get(self, key: str) -> Hold | None:
        return self.stored.get(key)

    async def all(self) -> Mapping[str, Hold]:
        return dict(self.stored)

    async def put(self, hold: Hold) -> bool:
        before = self.stored.get(hold.key)
        if before is not None and before.rev >= hold.rev:
            return False
        self.stored[hold.key] = hold
        return True

    def release(self, seen: Hold) -> None:
        """The leader that saw that hold releases it; a later one stays as it is."""
        if self.stored.get(seen.key) == seen:
            self.stored[seen.key] = replace(seen, released=seen.rev)


class MemoryHoldStore(MemoryStore):
    """`hascheduler.ports.holds.HoldStore`."""

    async def get(self, key: str) -> Hold | None:
        async with self._connection.exchange("holds.get") as database:
            found = database.find(Collection.HOLDS, key)
            return None if found is None else decode_hold(key, found)

    async def all(self) -> Mapping[str, Hold]:
        async with self._connection.exchange("holds.all") as database:
            return readable_holds(database.documents(Collection.HOLDS))

    async def put(self, hold: Hold) -> bool:
        async with self._connection.exchange("holds.put") as database:
            found = database.find(Collection.HOLDS, hold.key) or {}
            rev = found.get("rev")
            if is_integer(rev) and rev >= hold.rev:
                return False
            database.replace(Collection.HOLDS, encode_hold(hold))
            return True
