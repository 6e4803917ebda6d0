"""Bugs planted where replicas begin to host shards and leave them again.

As `tests.cluster_simulation.mutants`, in the cluster of `tests.cluster_simulation.following`.
"""

from collections.abc import Collection, Mapping, Set

from hascheduler.shards.hosting import HostedShard, Hosting
from tests.cluster_simulation.following import CANDIDATES
from tests.cluster_simulation.shard_cast import ShardBugs
from tests.cluster_simulation.shard_mutants import PlantedInShards


def _leaves_before_others_are_ready(hosting: Hosting) -> None:
    """It has waited long enough."""

    def may_leave(shard: HostedShard, candidates: Collection[str], now: int) -> bool:
        return shard.replica is not None and now - shard.since_ms >= hosting._leave_after_ms

    hosting._may_leave = may_leave  # type: ignore[method-assign]


def _two_leave_at_once(hosting: Hosting) -> None:
    """Each leaves if enough others are ready, whichever they are."""

    def may_leave(shard: HostedShard, candidates: Collection[str], now: int) -> bool:
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
