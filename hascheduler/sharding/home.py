"""Which routing a process goes by: that of the home, which the first replica of a deployment of several shards makes,
and which each process reads at its start.
"""

from collections.abc import Sequence

from hascheduler.errors import InvalidInput, StoreUnavailable
from hascheduler.model.routing import Routing
from hascheduler.model.values.error_texts import quoted
from hascheduler.ports.sharding import RoutingStore

_SETTING = ("HASCHEDULER_SHARDS",)


async def agreed_routing(store: RoutingStore, names: Sequence[str], database: str) -> Routing | None:
    """The routing of the shards ``names``, the home's first; None: there is one shard, and no routing.

    `InvalidInput` where the home has another number of shards, or one that was used without any: what it has can't be
    divided. Of several replicas that start at once, one makes the routing and the others find it.
    """
    stored = await store.get()
    if stored is None and len(names) > 1:
        if not await store.is_unused():
            raise InvalidInput(
                _SETTING,
                f"{len(names)}, and the database {quoted(database)} has jobs or schedules of a deployment of one shard",
                "1, or a database that was not used: what is there can't be divided",
            )
        await store.create(Routing.even(names))
        stored = await store.get()
    require_same_shards(stored, names, database)
    return stored


def require_same_shards(stored: Routing | None, names: Sequence[str], database: str) -> None:
    """`InvalidInput` unless the home has these shards; without a routing it has one."""
    if (stored is None and len(names) == 1) or (stored is not None and stored.shards == tuple(names)):
        return
    there = 1 if stored is None else len(stored.shards)
    if stored is not None and there == len(names):
        raise InvalidInput(
            ("HASCHEDULER_SHARD",),
            f"{quoted(names[0])}, and the deployment in the database {quoted(database)} calls its first shard"
            f" {quoted(stored.shards[0])}",
            stored.shards[0],
        )
    raise InvalidInput(
        _SETTING, f"{len(names)}, and the deployment in the database {quoted(database)} has {there}", f"{there}"
    )


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
        raise InvalidInput(_SETTING, f"{shards}, and the deployment in the database {where} has {has}", f"{there}")
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
