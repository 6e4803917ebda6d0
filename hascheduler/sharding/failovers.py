"""Reports of changes of leadership of all shards, the newest first; those of one shard in the order of its terms."""

from collections.abc import Sequence
from heapq import merge
from itertools import islice

from hascheduler.model.failover import Failover
from hascheduler.ports import FailoverStore
from hascheduler.sharding.asking import ask_all, naming_outages
from hascheduler.sharding.places import ShardPlaces


class ShardedFailoverStore:
    """`hascheduler.ports.FailoverStore`, for reading: each shard's leader saves its own."""

    def __init__(self, places: ShardPlaces, shards: Sequence[FailoverStore]) -> None:
        self._by_name = dict(zip(places.shards, naming_outages(places.shards, shards), strict=True))

    async def save(self, failover: Failover) -> None:
        await self._by_name[failover.shard].save(failover)

    async def newest(self, shard: str, limit: int) -> Sequence[Failover]:
        """Of all shards, whichever is named: a client that knows of one sees them all."""
        found = await ask_all(store.newest(name, limit) for name, store in self._by_name.items())
        together = merge(*found, key=lambda failover: failover.deciding_at_ms, reverse=True)
        return list(islice(together, limit))
