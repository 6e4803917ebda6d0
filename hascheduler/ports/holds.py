"""The store of holds."""

from collections.abc import Mapping
from typing import Protocol

from hascheduler.model.hold import Hold


class HoldStore(Protocol):
    async def get(self, key: str) -> Hold | None:
        """Return the newest majority-committed hold of that key; `InvalidInput` if it can't be read."""
        ...

    async def all(self) -> Mapping[str, Hold]:
        """Return all readable holds by their keys."""
        ...

    async def put(self, hold: Hold) -> bool:
        """Insert the hold or replace one of an earlier revision, acknowledged by a majority; False if the stored one
        has this revision or a later one."""
        ...
