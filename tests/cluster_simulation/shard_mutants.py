"""Bugs planted where partitions move, caps go round, and replicas begin to host shards and leave them again.

As `tests.cluster_simulation.mutants`, in the clusters of `tests.cluster_simulation.shards` and `following`. What only a
mover that was asleep, or a write at one exchange, brings to light is planted in `tests.unit.shards.test_moves`, at each
exchange.
"""

from collections.abc import Collection as SomeOf
from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from typing import Any

from hascheduler.daemon.replica import Replica
from hascheduler.model.partition import Hold
from hascheduler.model.values.instants import WallMs
from hascheduler.shards.hosting import HostedShard, Hosting
from hascheduler.shards.layout import Layout
from hascheduler.shards.moves import PartitionMover
from hascheduler.shards.turns import CapTurn, CapTurns
from tests.cluster_simulation.following import CANDIDATES
from tests.cluster_simulation.mutants import Planted
from tests.cluster_simulation.shard_cast import ShardBugs
from tests.mutants.everywhere import LeaseUpdateWithoutCompare


def _releases_what_is_used(replica: Replica) -> None:
    core: Any = replica.view.core
    released = core._released

    def at_once(now: WallMs) -> Any:
        limits = core.state.limits
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
        rules = core.state.rules
        rules.part_of = lambda key, cap: cap if rules.has_turns(cap) else rules._even(cap)

    core.forget = forget_and_plant
    forget_and_plant()


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


@dataclass(frozen=True)
class PlantedInShards(Planted):
    bugs: ShardBugs


PLANTED_IN_SHARDS: Mapping[str, PlantedInShards] = {
    "copy-before-the-hold": PlantedInShards(ShardBugs(mover=_CopiesBeforeTheHold), ("kill_leader",)),
    "flip-before-the-release": PlantedInShards(
        ShardBugs(mover=_FlipsBeforeTheRelease), ("slow_majority", "kill"), first=8
    ),
    "open-before-the-take": PlantedInShards(ShardBugs(mover=_OpensBeforeTheTake), ("kill_leader",)),
    "cap-released-while-used": PlantedInShards(ShardBugs(replica=_releases_what_is_used), ("kill_leader",)),
    "cap-given-before-the-release": PlantedInShards(ShardBugs(turns=_gives_before_the_release), ("kill_leader",)),
    "hold-on-a-cap-ignored": PlantedInShards(ShardBugs(replica=_starts_what_is_held), ("kill_leader",)),
    "rank-instead-of-the-lease": PlantedInShards(ShardBugs(leases=LeaseUpdateWithoutCompare), ("pause_leader",)),
}


# Of those who host


def _leaves_before_others_are_ready(hosting: Hosting) -> None:
    """It has waited long enough."""

    def may_leave(shard: HostedShard, candidates: SomeOf[str], now: int) -> bool:
        return shard.replica is not None and now - shard.since_ms >= hosting._leave_after_ms

    hosting._may_leave = may_leave  # type: ignore[method-assign]


def _two_leave_at_once(hosting: Hosting) -> None:
    """Each leaves if enough others are ready, whichever they are."""

    def may_leave(shard: HostedShard, candidates: SomeOf[str], now: int) -> bool:
        if shard.replica is None or not shard.replica.view.ready:
            return False
        ready = {status.name for status in shard.replica.live_replicas() if status.ready}
        return len(ready - {hosting.name}) >= CANDIDATES

    hosting._may_leave = may_leave  # type: ignore[method-assign]


def _leads_what_it_left(hosting: Hosting) -> None:
    """What runs there is not ended: it is only asked no more."""
    for shard in hosting._others:
        _leave_unended(shard)


def _leave_unended(shard: HostedShard) -> None:
    def leave() -> None:
        shard._is_ending = True

    shard.leave = leave  # type: ignore[method-assign]


def _begins_at_once(hosting: Hosting) -> None:
    hosting._begin_after_ms = 0


def _begins_alone(hosting: Hosting) -> None:
    """Only if nobody else hosts it."""

    async def alone(shard: HostedShard, living: Set[str], now: int) -> bool:
        return living.isdisjoint(await hosting.hosts_of(shard.index))

    hosting._may_begin = alone  # type: ignore[method-assign]


PLANTED_IN_FOLLOWING: Mapping[str, PlantedInShards] = {
    "left-before-others-are-ready": PlantedInShards(
        ShardBugs(hosting=_leaves_before_others_are_ready), ("kill", "fail_over"), first=1
    ),
    "two-leave-at-once": PlantedInShards(
        ShardBugs(hosting=_two_leave_at_once), ("kill_leader", "slow_majority"), first=7
    ),
    "leads-what-it-left": PlantedInShards(ShardBugs(hosting=_leads_what_it_left), ("kill", "kill_leader"), first=1),
    "begins-at-once": PlantedInShards(ShardBugs(hosting=_begins_at_once), ("kill", "kill_leader")),
    "begins-only-alone": PlantedInShards(ShardBugs(hosting=_begins_alone), ("kill",)),
}
