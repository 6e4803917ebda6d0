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


def test_few_shards_move_when_a_replica_goes() -> None:
    shards, replicas = [f"{index:04d}" for index in range(64)], [f"replica-{number}" for number in range(8)]
    before, after = preferred_leaders(shards, replicas), preferred_leaders(shards, replicas[:-1])
    of_the_lost = sum(order[0] == "replica-7" for order in before.values())
    moved = sum(before[shard][0] != after[shard][0] for shard in shards)
    assert of_the_lost == 8
    # Those of the one that went, and some that were kept from their first choice by its bound.
    assert of_the_lost <= moved < 64 * 2 // 3


@given(SHARDS, NAMES, st.integers(2, 5))
def test_each_shard_has_its_candidates_or_all_that_live_and_all_are_candidates_of_the_home(
    shards: list[str], replicas: set[str], most: int
) -> None:
    candidates = candidates_of(shards, replicas, most)
    assert set(candidates[shards[0]]) == replicas
    for shard in shards[1:]:
        assert len(set(candidates[shard])) == len(candidates[shard]) == min(most, len(replicas))
    assert all(set(order) == replicas for order in candidates_of(shards, replicas, 0).values())


@given(SHARDS, NAMES, st.integers(2, 5))
def test_one_that_comes_or_goes_changes_one_candidate_of_a_shard_at_most(
    shards: list[str], replicas: set[str], most: int
) -> None:
    before, after = candidates_of(shards, replicas, most), candidates_of(shards, {*replicas, "new"}, most)
    for shard in shards:
        assert set(after[shard]) - set(before[shard]) <= {"new"}
        assert len(set(before[shard]) - set(after[shard])) <= 1


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


def test_without_replicas_none_is_preferred() -> None:
    assert preferred_leaders(["default"], ()) == {"default": ()}


def test_leaders_of_64_shards_with_2_candidates_each_are_spread() -> None:
    orders = preferred_leaders([f"{index:04d}" for index in range(64)], [f"replica-{n}" for n in range(20)], 2)
    led = Counter(order[0] for order in orders.values())
    assert max(led.values()) <= 6  # of 3.2 on average
