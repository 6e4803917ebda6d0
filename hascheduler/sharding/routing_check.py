"""Where a processor may work, as the home says: asked once, at its start. Replicas, which make the routing, ask
`hascheduler.sharding.home`."""

from hascheduler.errors import InvalidInput, StoreUnavailable
from hascheduler.model.routing import Routing
from hascheduler.model.values.error_texts import quoted
from hascheduler.ports.sharding import RoutingStore
from hascheduler.sharding.home import SETTING


async def stored_routing(store: RoutingStore, shards: int, database: str) -> Routing | None:
    """The routing, once there is one; None for the only shard of a deployment, which needs none.

    `StoreUnavailable` while a deployment of several shards has none yet: a replica is about to make it. `InvalidInput`
    where the home has another number of shards than ``shards``.
    """
    routing, where = await store.get(), quoted(database)
    if routing is None and shards > 1:
        raise StoreUnavailable(f"the database {where} has no routing yet; a replica makes it at its start")
    there = 1 if routing is None else len(routing.shards)
    if there != shards:
        has = f"{there} shard{'s' if there > 1 else ''}"
        raise InvalidInput(SETTING, f"{shards}, and the deployment in the database {where} has {has}", f"{there}")
    return routing


def pinned_shard(routing: Routing, shard: str) -> int | None:
    """The only shard that a processor serves which was given the name ``shard``; None where that is the home's: then it
    serves all, one at a time. `InvalidInput` where no shard has that name."""
    if shard == routing.shards[0]:
        return None
    if shard not in routing.shards:
        names = ", ".join(routing.shards)
        raise InvalidInput(("HASCHEDULER_SHARD",), f"the deployment has no shard {quoted(shard)}", f"one of {names}")
    return routing.shards.index(shard)
