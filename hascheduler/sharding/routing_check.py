"""Whether a process means the same deployment as the home: asked once, at its start."""

from hascheduler.errors import InvalidInput, StoreUnavailable
from hascheduler.model.routing import Routing, shard_database
from hascheduler.ports.sharding import RoutingStore

_SETTING = "HASCHEDULER_SHARDS"


async def stored_routing(store: RoutingStore, shards: int, database: str) -> Routing | None:
    """The routing, once there is one; None for the only shard of a deployment, which needs none.

    `StoreUnavailable` while a deployment of several shards has none yet: a replica is about to make it. `InvalidInput`
    where the home has another number of shards than ``shards``.
    """
    routing = await store.get()
    require_same_shards(routing, shards, database)
    if routing is None and shards > 1:
        raise StoreUnavailable(f"the database {database!r} has no routing yet; a replica of {shards} shards makes it")
    return routing


def require_same_shards(routing: Routing | None, shards: int, database: str) -> None:
    """`InvalidInput` where ``routing``, as it is stored in the home ``database``, has another number of shards."""
    if routing is not None and len(routing.shards) != shards:
        has = f"{len(routing.shards)} shard{'s' if len(routing.shards) > 1 else ''}"
        problem = f"{shards}, and the deployment in the database {database!r} has {has}"
        raise InvalidInput((_SETTING,), problem, f"{len(routing.shards)}")


def pinned_shard(routing: Routing, shard: str) -> int | None:
    """The only shard that a processor serves which was given the name ``shard``; None where that is the home's: then it
    serves all, one at a time. `InvalidInput` where no shard has that name."""
    if shard == routing.shards[0]:
        return None
    if shard not in routing.shards:
        names = ", ".join(routing.shards)
        raise InvalidInput(("HASCHEDULER_SHARD",), f"the deployment has no shard {shard!r}", f"one of {names}")
    return routing.shards.index(shard)


def shard_databases(routing: Routing, home: str) -> list[str]:
    """The databases of the shards, from that of the home."""
    return [shard_database(home, index) for index in range(len(routing.shards))]
