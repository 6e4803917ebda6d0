"""Bugs planted where partitions move and caps go round.

As `tests.cluster_simulation.mutants`, in the cluster of `tests.cluster_simulation.shards`.
"""

from collections.abc import Collection as SomeOf
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from hascheduler.daemon.replica import Replica
from hascheduler.model.collection import Collection
from hascheduler.model.hold import Hold
from hascheduler.model.job import OCCUPYING
from hascheduler.model.values.instants import WallMs
from hascheduler.ports.tenants import Key, Version
from hascheduler.shards import moves
from hascheduler.shards.layout import Layout
from hascheduler.shards.moves import PartitionMover
from hascheduler.shards.turns import CapTurn, CapTurns
from tests.cluster_simulation.mutants import Planted
from tests.cluster_simulation.shard_cast import ShardBugs
from tests.doubles.tenants import MemoryTenantStore
from tests.mutants.everywhere import LeaseUpdateWithoutCompare


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


def _decides_copies(replica: Replica) -> None:
    """What runs in another shard is taken for what runs here."""
    core: Any = replica.view.core
    core._has_slot_here = lambda job, partition: job.state in OCCUPYING


def _gives_before_the_release(turns: CapTurns) -> None:
    step = turns._step

    async def step_early(turn: CapTurn, hold: Hold | None, short: SomeOf[str]) -> None:
        await step(turn, None if hold is None else replace(hold, released=hold.rev), short)

    turns._step = step_early  # type: ignore[method-assign]


class _CopiesBeforeTheHold(PartitionMover):
    async def _advance(self, layout: Layout, way: Any, here: Hold | None, there: Hold | None) -> None:
        if there is None or not there.is_held:
            here = here or await self._put(way.source, way, None, is_held=False)
            there = await self._put(way.target, way, there, is_held=False)
            await self._equalize(way, here, there)
        await super()._advance(layout, way, here, there)


class _FlipsBeforeTheRelease(PartitionMover):
    async def _advance(self, layout: Layout, way: Any, here: Hold | None, there: Hold | None) -> None:
        early = None if here is None else replace(here, released=here.rev)
        await super()._advance(layout, way, early, there)


class _OpensBeforeTheTake(PartitionMover):
    async def _take(self, way: Any, here: Hold, there: Hold, *, live_only: bool) -> bool:
        return live_only or await super()._take(way, here, there, live_only=live_only)


class _IgnoresTheMark(PartitionMover):
    """What the target alone has came late, be it a copy or not."""

    async def _equalize(self, way: Any, here: Hold, there: Hold) -> tuple[int, bool]:
        is_late = moves._is_late
        moves._is_late = lambda there, here: here is None or is_late(there, here)
        try:
            return await super()._equalize(way, here, there)
        finally:
            moves._is_late = is_late


class _TakesWithoutTheVersion(MemoryTenantStore):
    async def take(self, hold: Hold, versions: Mapping[Key, Version]) -> int:
        return await super().take(hold, await self.versions_of(versions.keys()))


class _UnderAnyHold(MemoryTenantStore):
    """A mover that was asleep goes on where it was."""

    def _stored(self, hold: Hold) -> Hold:
        found = self._connection.database.find(Collection.HOLDS, hold.key)
        return hold if found is None else replace(hold, rev=found["rev"], is_held=found["held"])

    async def put(self, hold: Hold, documents: Any, *, mark: int) -> Any:
        return await super().put(self._stored(hold), documents, mark=mark)

    async def take(self, hold: Hold, versions: Mapping[Key, Version]) -> int:
        return await super().take(self._stored(hold), versions)


class _LayoutWithoutEpoch:
    """The layout is replaced whichever it is by now."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.get = store.get

    async def replace(self, _epoch: int, layout: Layout) -> bool:
        newest = await self._store.get()
        return bool(await self._store.replace(newest.epoch, replace(layout, epoch=newest.epoch + 1)))


@dataclass(frozen=True)
class PlantedInShards(Planted):
    bugs: ShardBugs


PLANTED_IN_SHARDS: Mapping[str, PlantedInShards] = {
    "copy-before-the-hold": PlantedInShards(ShardBugs(mover=_CopiesBeforeTheHold), ("kill_leader",)),
    "flip-before-the-release": PlantedInShards(ShardBugs(mover=_FlipsBeforeTheRelease), ("slow_majority", "kill")),
    "open-before-the-take": PlantedInShards(ShardBugs(mover=_OpensBeforeTheTake), ("kill_leader",)),
    "take-without-the-version": PlantedInShards(
        ShardBugs(tenants=_TakesWithoutTheVersion), ("lossy_network", "slow_majority")
    ),
    "put-under-any-hold": PlantedInShards(
        ShardBugs(tenants=_UnderAnyHold, moved_by_all=True), ("pause", "lossy_network")
    ),
    "mark-ignored": PlantedInShards(ShardBugs(mover=_IgnoresTheMark), ("kill_leader",)),
    "layout-epoch-not-checked": PlantedInShards(
        ShardBugs(layouts=_LayoutWithoutEpoch, moved_by_all=True), ("lossy_network",)
    ),
    "copies-decided": PlantedInShards(ShardBugs(replica=_decides_copies), ("kill_leader",)),
    "cap-released-while-used": PlantedInShards(ShardBugs(replica=_releases_what_is_used), ("kill_leader",)),
    "cap-given-before-the-release": PlantedInShards(ShardBugs(turns=_gives_before_the_release), ("kill_leader",)),
    "hold-on-a-cap-ignored": PlantedInShards(ShardBugs(replica=_starts_what_is_held), ("kill_leader",)),
    "rank-instead-of-the-lease": PlantedInShards(ShardBugs(leases=LeaseUpdateWithoutCompare), ("pause_leader",)),
}
