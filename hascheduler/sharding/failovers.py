"""The changes of leadership of all shards, each in the database of its own.

A term is a shard's: it tells nothing of the others. So those of one shard are by term, the latest first, and where
several shards are told of together, by when each leader began, as far as the clocks of two replicas agree.
"""

from collections.abc import Sequence
from functools import partial
from heapq import merge
from itertools import islice

from hascheduler.model.failover import Failover
from hascheduler.ports import FailoverStore
from hascheduler.sharding.places import ShardPlaces
from hascheduler.sharding.shards import Shards


class ShardedFailoverStore:
    """`hascheduler.ports.FailoverStore`. The home's name, which is that of an only shard too, stands for all shards.

    Reports of a shard that is none of these are the home's.
    """

    def __init__(self, places: ShardPlaces, stores: Sequence[FailoverStore]) -> None:
        self._places = places
        self._shards = Shards(places, stores)

    async def save(self, failover: Failover) -> None:
        here = self._places.index_of(failover.shard)
        await self._shards.one(here or 0, lambda store: store.save(failover))

    async def newest(self, shard: str, limit: int) -> Sequence[Failover]:
        here = self._places.index_of(shard)
        if here != 0:
            return await self._shards.one(here or 0, lambda store: store.newest(shard, limit))
        found = await self._shards.each(
            {index: partial(_newest, name, limit) for index, name in enumerate(self._places.shards)}
        )
        # Each shard keeps its own order, even where a clock went back between two of its terms.
        together = merge(*found.values(), key=lambda failover: failover.began_at_ms, reverse=True)
        return list(islice(together, limit))


async def _newest(shard: str, limit: int, store: FailoverStore) -> Sequence[Failover]:
    return await store.newest(shard, limit)
