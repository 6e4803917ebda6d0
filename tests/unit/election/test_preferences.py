"""Which replica should lead which shard: evenly, the same for all, and hardly moved by a replica that goes."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from hascheduler.election.preferences import preferred_leaders

NAMES = st.sets(st.text("abcdefgh-0123456789", min_size=1, max_size=12), min_size=1, max_size=8)
SHARDS = st.integers(1, 24).map(lambda count: [f"{index:04d}" for index in range(count)])


@given(SHARDS, NAMES)
def test_leaders_are_spread_evenly_and_each_replica_is_somewhere_in_each_order(
    shards: list[str], replicas: set[str]
) -> None:
    orders = preferred_leaders(shards, replicas)
    assert list(orders) == shards
    assert all(sorted(order) == sorted(replicas) for order in orders.values())
    led = Counter(order[0] for order in orders.values())
    assert max(led.values()) - min(led.get(replica, 0) for replica in replicas) <= 1


@given(SHARDS, NAMES)
def test_the_order_in_which_replicas_were_seen_does_not_matter(shards: list[str], replicas: set[str]) -> None:
    assert preferred_leaders(shards, sorted(replicas)) == preferred_leaders(shards, sorted(replicas, reverse=True))


def test_without_replicas_none_is_preferred() -> None:
    assert preferred_leaders(["default"], ()) == {"default": ()}


def test_few_shards_move_when_a_replica_goes() -> None:
    shards, replicas = [f"{index:04d}" for index in range(64)], [f"replica-{number}" for number in range(8)]
    before, after = preferred_leaders(shards, replicas), preferred_leaders(shards, replicas[:-1])
    of_the_lost = sum(order[0] == "replica-7" for order in before.values())
    moved = sum(before[shard][0] != after[shard][0] for shard in shards)
    assert of_the_lost == 8
    # Those of the one that went, and some that were kept from their first choice by its bound.
    assert of_the_lost <= moved < 64 * 2 // 3
