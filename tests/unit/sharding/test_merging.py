"""Pages of several shards as one: every item once, in order, whatever the limits and wherever pages end."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from hascheduler.ports import ListPosition
from hascheduler.sharding.merging import Place, ShardPage, merged, newest_first, position_of
from tests.tiers import examples


def page_of(items: list[Place], after: Place | None, limit: int, chance: random.Random) -> ShardPage[Place]:
    """What a shard answers: at most a full page, perhaps less, up to some item or to right before an instant."""
    left = [item for item in items if after is None or item < after]
    looked_at = chance.choice([len(left), chance.randrange(len(left) + 1)])
    some = left[: min(limit, looked_at)]
    if len(some) == len(left):
        return ShardPage(some, None)
    if len(some) == limit:
        return ShardPage(some, some[-1])
    # Everything before the instant of the first that was not looked at; of that instant nothing.
    instant = left[len(some)][0]
    end: Place = (instant, True, "")
    if after is not None and end >= after:
        return ShardPage(left[:1], left[0])  # no page ends before it begins
    return ShardPage([item for item in some if item[0] != instant], end)


@given(st.lists(st.lists(st.integers(0, 30), max_size=12), min_size=1, max_size=4), st.integers(1, 9), st.integers())
@settings(max_examples=examples(300))
def test_every_item_comes_once_and_in_order(instants: list[list[int]], limit: int, seed: int) -> None:
    chance = random.Random(seed)
    shards = [
        sorted(((at, False, f"{shard}-{number:02d}") for number, at in enumerate(some)), reverse=True)
        for shard, some in enumerate(instants)
    ]
    everything = sorted((item for shard in shards for item in shard), reverse=True)
    seen: list[Place] = []
    after: Place | None = None
    for _ in range(2_000):
        pages = [page_of(shard, after, limit, chance) for shard in shards]
        items, end = merged(pages, lambda item: item, limit)
        assert len(items) <= limit
        seen += items
        if end is None:
            break
        after = end
    assert seen == everything


def test_positions_are_places_and_back() -> None:
    for position in (ListPosition(7, "a"), ListPosition(7), None):
        assert position_of(newest_first(position)) == position


def test_a_position_without_an_id_is_before_all_of_its_instant() -> None:
    item, before = newest_first(ListPosition(7, "zzz")), newest_first(ListPosition(7))
    assert item is not None
    assert before is not None
    assert before > item
