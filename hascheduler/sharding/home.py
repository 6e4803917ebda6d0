"""Which routing a process goes by: that of the home, which the first replica of a deployment of several shards makes,
and which each process reads at its start.
"""

from collections.abc import Sequence

from hascheduler.errors import InvalidInput, StoreUnavailable
from hascheduler.model.routing import Routing
from hascheduler.model.values.error_texts import quoted
from hascheduler.model.values.instants import WallMs
from hascheduler.ports.sharding import RoutingStore

_SETTING = ("HASCHEDULER_SHARDS",)


async def agreed_routing(store: RoutingStore, names: Sequence[str], database: str, at_ms: WallMs) -> Routing | None:
    """The routing of the shards ``names``, the home's first; None: there is one shard, and no routing.

    Of several replicas that start at once, one makes the routing and the others find it. Where the home was used as the
    only shard it has all slots, and shards that are new have none: `hascheduler shards apply` moves some there.
    `InvalidInput` where the home has more shards than these, or others.
    """
    stored = await store.get()
    if stored is None and len(names) > 1:
        unused = await store.is_unused()
        if not unused:
            await store.reserve_names(at_ms)
        await store.create(Routing.even(names) if unused else Routing.all_at_home(names))
        stored = await store.get()
    elif stored is not None and _is_longer(names, stored):
        await store.replace(stored.epoch, stored.extended(names))
        stored = await store.get()
    require_same_shards(stored, names, database)
    return stored


def _is_longer(names: Sequence[str], stored: Routing) -> bool:
    return len(names) > len(stored.shards) and tuple(names[: len(stored.shards)]) == stored.shards


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
    serves several at once. `InvalidInput` where no shard has that name."""
    if shard == routing.shards[0]:
        return None
    if shard not in routing.shards:
        names = ", ".join(routing.shards)
        raise InvalidInput(("HASCHEDULER_SHARD",), f"the deployment has no shard {quoted(shard)}", f"one of {names}")
    return routing.shards.index(shard)
