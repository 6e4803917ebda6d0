"""Which replica should lead which shard: evenly, the same for all, and hardly moved by a replica that goes."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from hascheduler.election.preferences import candidates_of, preferred_leaders

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


@given(SHARDS, NAMES, st.integers(2, 5))
def test_each_shard_has_its_candidates_or_all_that_live_and_all_are_candidates_of_the_home(
    shards: list[str], replicas: set[str], most: int
) -> None:
    candidates = candidates_of(shards, replicas, most)
    assert set(candidates[shards[0]]) == replicas
    for shard in shards[1:]:
        assert len(set(candidates[shard])) == len(candidates[shard]) == min(most, len(replicas))
    assert all(set(order) == replicas for order in candidates_of(shards, replicas, 0).values())


@given(SHARDS, NAMES, st.integers(2, 5), st.data())
def test_lists_that_differ_leave_no_shard_without_one_that_takes_itself_for_a_candidate(
    shards: list[str], replicas: set[str], most: int, data: st.DataObject
) -> None:
    """Whatever else a replica sees, it sees itself: the first of all for a shard is among the first of any list."""
    taken: Counter[str] = Counter()
    for name in replicas:
        seen = data.draw(st.sets(st.sampled_from(sorted(replicas)))) | {name}
        candidates = candidates_of(shards, seen, most)
        taken.update(shard for shard in shards if name in candidates[shard])
    assert all(taken[shard] >= min(most, len(replicas)) for shard in shards)


@given(SHARDS, NAMES, st.integers(2, 5))
def test_candidates_lead_and_each_shard_has_one_that_should(shards: list[str], replicas: set[str], most: int) -> None:
    orders = preferred_leaders(shards, replicas, most)
    assert {shard: set(order) for shard, order in orders.items()} == {
        shard: set(order) for shard, order in candidates_of(shards, replicas, most).items()
    }
