"""Bugs planted where slots of tenants move and caps are passed on, and one thing that is none.

As `tests.cluster_simulation.mutants`, in the cluster of `tests.cluster_simulation.shards`.
"""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import Any

from hascheduler.daemon.replica import Replica
from hascheduler.model.collection import Collection
from hascheduler.model.hold import Hold, partition_key
from hascheduler.model.routing import Routing, slot_of
from hascheduler.model.values.instants import WallMs
from hascheduler.ports.sharding import MovedDocuments, Passage
from hascheduler.sharding.moves import SlotMover
from hascheduler.testing.memory.database import Document
from tests.cluster_simulation.mutants import Planted
from tests.cluster_simulation.parcels import ParcelBugs
from tests.cluster_simulation.shards import ShardBugs, SimSlots
from tests.doubles.shards import MemorySlotStore
from tests.mutants.everywhere import LeaseUpdateWithoutCompare


class _Leading:
    """Of a shard's view, as if this replica led it."""

    leading = True

    def __init__(self, view: Any) -> None:
        self._view = view

    @property
    def ready(self) -> bool:
        return bool(self._view.ready)


class _LedByAll:
    """A shard that each replica leads, as far as it knows."""

    def __init__(self, shard: Any) -> None:
        self._shard = shard
        self.view = _Leading(shard.view)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._shard, name)


def _releases_what_is_used(replica: Replica) -> None:
    core: Any = replica.view.core
    released = core._released

    def at_once(now: WallMs) -> Any:
        limits = core._state.limits
        in_use, limits.in_use = limits.in_use, lambda key: 0
        try:
            return released(now)
        finally:
            limits.in_use = in_use

    core._released = at_once


def _starts_what_is_held(replica: Replica) -> None:
    """It has each small cap, whatever the holds say."""
    core: Any = replica.view.core
    forget = core.forget

    def forget_and_plant() -> None:
        forget()
        rules = core._state.rules
        rules.part_of = lambda key, cap: cap if rules.has_turns(cap) else rules._even(cap)

    core.forget = forget_and_plant
    forget_and_plant()


def slots_moved_by_all(mover: SlotMover) -> None:
    """Every replica moves slots, all the time. That is no bug."""
    home: Any = _LedByAll(mover._shards[0])
    mover._shards = [home, *mover._shards[1:]]


def _moves_without_release(mover: SlotMover) -> None:
    """A slot is drained once it was asked to close."""
    closed = mover._closed

    async def at_once(routing: Routing, slot: int, index: int) -> Hold | None:
        hold = await closed(routing, slot, index) or Hold(partition_key(slot), routing.epoch, is_held=True)
        return replace(hold, released=hold.rev)

    mover._closed = at_once  # type: ignore[method-assign]


class _MovesFirst:
    """What goes over before the slot is opened is found by ``move_first``."""

    def __init__(self, slots: SimSlots, move_first: Callable[..., Coroutine[Any, Any, MovedDocuments]]) -> None:
        self.move_first = slots.move_first
        self.move_rest = slots.move_rest
        store: Any = SimpleNamespace(move_first=partial(move_first, slots._store), move_rest=slots._store.move_rest)
        slots._store = store


def _moved(
    store: MemorySlotStore, passage: Passage, collection: Collection, which: Callable[[Document], bool], limit: int
) -> MovedDocuments:
    """Whatever the holds say."""
    here, there = (store._connections[index].database for index in (passage.source, passage.target))
    some = [
        document
        for document in here.documents(collection)
        if partition_key(slot_of(document.get("tenant") or document["job"]["tenant"])) == passage.closed.key
        and which(document)
    ][:limit]
    for document in some:
        here.delete(collection, document["_id"])
        there.replace(collection, document)
    return MovedDocuments(len(some), len(some))


async def _what_runs_too(store: MemorySlotStore, passage: Passage, limit: int, at_ms: WallMs) -> MovedDocuments:
    """It is there that it ends."""
    moved = _moved(store, passage, Collection.JOBS, lambda job: True, limit)
    return moved if moved.documents else await store.move_first(passage, limit, at_ms)


async def _schedules_alone(store: MemorySlotStore, passage: Passage, limit: int, _at_ms: WallMs) -> MovedDocuments:
    """All jobs come afterwards."""
    return _moved(store, passage, Collection.SCHEDULES, lambda schedule: True, limit)


async def _dependents_alone(store: MemorySlotStore, passage: Passage, limit: int, at_ms: WallMs) -> MovedDocuments:
    """What they wait for comes afterwards."""
    moved = _moved(store, passage, Collection.JOBS, lambda job: job["state"] == "pending" and job["waits_for"], limit)
    return moved if moved.documents else await store.move_first(passage, limit, at_ms)


class _UnderAnyHolds:
    """What was seen of a slot is taken to be so still: a mover that was asleep goes on where it was."""

    def __init__(self, slots: SimSlots) -> None:
        self._slots = slots
        self.move_first = slots.move_first
        self.move_rest = slots.move_rest
        store = slots._store

        async def move_first(passage: Passage, limit: int, at_ms: WallMs) -> MovedDocuments:
            return await store.move_first(self._as_stored(passage), limit, at_ms)

        async def move_rest(passage: Passage, limit: int, at_ms: WallMs) -> MovedDocuments:
            return await store.move_rest(self._as_stored(passage), limit, at_ms)

        moves: Any = SimpleNamespace(move_first=move_first, move_rest=move_rest)
        slots._store = moves

    def _as_stored(self, passage: Passage) -> Passage:
        def stored(index: int, seen: Hold) -> Hold:
            found = self._slots._shards[index].server.database.find(Collection.HOLDS, seen.key)
            return seen if found is None else replace(seen, rev=found["rev"], is_held=found["held"])

        return replace(
            passage, closed=stored(passage.source, passage.closed), there=stored(passage.target, passage.there)
        )


class _RoutingWithoutEpoch:
    """The routing is replaced whichever it is by now."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.get = store.get

    async def replace(self, _epoch: int, routing: Routing) -> bool:
        newest = await self._store.get()
        later = replace(routing, epoch=newest.epoch + 1)
        return bool(await self._store.replace(newest.epoch, later))


def _epoch_not_checked(mover: SlotMover) -> None:
    slots_moved_by_all(mover)
    mover._routing = _RoutingWithoutEpoch(mover._routing)  # type: ignore[assignment]


def _looks_for_no_parcels(mover: SlotMover) -> None:
    async def nothing() -> tuple[()]:
        return ()

    mover._underway = nothing  # type: ignore[method-assign]


@dataclass(frozen=True)
class PlantedInShards(Planted):
    bugs: ShardBugs


PLANTED_IN_SHARDS: Mapping[str, PlantedInShards] = {
    "cap-released-while-used": PlantedInShards(ShardBugs(replica=_releases_what_is_used), ("kill_leader",)),
    "slot-moved-without-drain": PlantedInShards(
        ShardBugs(mover=_moves_without_release), ("slow_majority", "kill"), first=19
    ),
    "slot-moved-with-what-runs": PlantedInShards(
        ShardBugs(slots=partial(_MovesFirst, move_first=_what_runs_too), mover=_moves_without_release), ("kill_leader",)
    ),
    "slot-opened-before-jobs-of-schedules-are-there": PlantedInShards(
        ShardBugs(slots=partial(_MovesFirst, move_first=_schedules_alone)), ("kill_leader",), first=5
    ),
    "slot-opened-before-dependencies-are-there": PlantedInShards(
        ShardBugs(slots=partial(_MovesFirst, move_first=_dependents_alone)), ("kill_leader",)
    ),
    "slot-moved-under-any-holds": PlantedInShards(
        ShardBugs(slots=_UnderAnyHolds, mover=slots_moved_by_all), ("pause", "lossy_network"), first=55
    ),
    "parcel-forgotten-before-it-arrives": PlantedInShards(
        ShardBugs(elsewhere=frozenset({2}), parcels=ParcelBugs(forgets_first=True)),
        ("kill_leader", "lossy_network"),
        first=18,
    ),
    "parcel-left-on-its-way": PlantedInShards(
        ShardBugs(elsewhere=frozenset({2}), mover=_looks_for_no_parcels, parcels=ParcelBugs(brings_own_alone=True)),
        ("kill_leader", "lossy_network"),
    ),
    "routing-epoch-not-checked": PlantedInShards(ShardBugs(mover=_epoch_not_checked), ("lossy_network",), first=213),
    "rank-instead-of-the-lease": PlantedInShards(ShardBugs(leases=LeaseUpdateWithoutCompare), ("pause_leader",)),
    "hold-on-a-cap-ignored": PlantedInShards(ShardBugs(replica=_starts_what_is_held), ("kill_leader",)),
}
