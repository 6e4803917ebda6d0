"""The holds of one shard, in memory."""

from collections.abc import Mapping
from dataclasses import replace

from hascheduler.model.hold import Hold


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
