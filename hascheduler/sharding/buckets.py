"""The token buckets of tenants: each is in the shard of its tenant, and in no other."""

from collections.abc import Sequence

from hascheduler.model.definition import RateLimit
from hascheduler.ports import BucketStore
from hascheduler.sharding.places import ShardPlaces
from hascheduler.sharding.shards import Shards


class ShardedBucketStore:
    """`hascheduler.ports.BucketStore`."""

    def __init__(self, places: ShardPlaces, stores: Sequence[BucketStore]) -> None:
        self._places = places
        self._shards = Shards(places, stores)

    async def take(self, tenant: str, limit: RateLimit, tokens: int) -> int:
        return await self._shards.one(self._places.of_tenant(tenant), lambda store: store.take(tenant, limit, tokens))
