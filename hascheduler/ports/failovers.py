"""Where the accounts of the changes of leadership are kept, for people."""

from collections.abc import Sequence
from typing import Protocol

from hascheduler.model.failover import Failover

FAILOVERS_MAX = 50
"""How many are kept of each shard."""


class FailoverStore(Protocol):
    """The newest `FAILOVERS_MAX` of each shard. Nothing that is decided rests on them."""

    async def save(self, failover: Failover) -> None:
        """Keep it, in the place of one of the same term, and forget those that are too old. May be repeated."""
        ...

    async def newest(self, shard: str, limit: int) -> Sequence[Failover]:
        """The newest ``limit``, the latest term first; those that can't be read are left out."""
        ...
