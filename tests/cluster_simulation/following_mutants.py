"""Bugs planted where replicas begin to follow shards and leave them again.

As `tests.cluster_simulation.mutants`, in the cluster of `tests.cluster_simulation.following`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from hascheduler.model.replica import ReplicaStatus
from hascheduler.sharding.following import Following
from hascheduler.sharding.shard import Shard
from tests.cluster_simulation.following import CANDIDATES, FollowingBugs
from tests.cluster_simulation.mutants import Planted


def _leaves_before_others_are_ready(following: Following) -> None:
    """All that live are counted on."""

    def alive(shard: str, live: Sequence[ReplicaStatus]) -> set[str]:
        return {status.name for status in live}

    following._counted_on = alive  # type: ignore[method-assign]


def _two_leave_at_once(following: Following) -> None:
    """Each leaves where enough others follow, whichever they are, and says nothing before."""

    def leave(shard: Shard, candidates: Collection[str], live: Sequence[ReplicaStatus], now: int) -> None:
        if len(following._counted_on(shard.shard, live)) >= CANDIDATES:
            shard.leave()

    following._consider_leaving = leave  # type: ignore[method-assign]


def _leads_what_it_left(following: Following) -> None:
    """What runs there is not ended: it is only asked no more."""
    for shard in following._others:
        _leave_unended(shard)


def _leave_unended(shard: Shard) -> None:
    def leave() -> None:
        shard._is_ending = True

    shard.leave = leave  # type: ignore[method-assign]


def _begins_at_once(following: Following) -> None:
    following._begin_after_ms = 0


def _begins_alone(following: Following) -> None:
    """Only where nobody else follows."""
    may_begin = following._may_begin

    def alone(shard: str, live: Sequence[ReplicaStatus], now: int) -> bool:
        return may_begin(shard, live, now) and not following._counted_on(shard, live)

    following._may_begin = alone  # type: ignore[method-assign]


@dataclass(frozen=True)
class PlantedInFollowing(Planted):
    bugs: FollowingBugs


PLANTED_IN_FOLLOWING: Mapping[str, PlantedInFollowing] = {
    "left-before-others-are-ready": PlantedInFollowing(
        FollowingBugs(following=_leaves_before_others_are_ready), ("kill", "fail_over"), first=17
    ),
    "two-leave-at-once": PlantedInFollowing(
        FollowingBugs(following=_two_leave_at_once), ("kill_leader", "slow_majority"), first=234
    ),
    "leads-what-it-left": PlantedInFollowing(FollowingBugs(following=_leads_what_it_left), ("kill",), first=4),
    "begins-at-once": PlantedInFollowing(FollowingBugs(following=_begins_at_once), ("kill", "kill_leader"), first=3),
    "begins-only-alone": PlantedInFollowing(FollowingBugs(following=_begins_alone), ("kill",)),
}
