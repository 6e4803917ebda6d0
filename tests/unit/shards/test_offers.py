"""How a processor of several shards divides its slots between them."""

from collections.abc import Mapping

import pytest

from hascheduler.shards.offers import ShardLoad, SlotOffers


@pytest.mark.parametrize(
    ("slots", "loads", "offers"),
    [
        pytest.param(8, {0: (8, 2, 8), 1: (1, 1, 1)}, {0: 4, 1: 4}, id="both halves"),
        pytest.param(8, {0: (1, 1, 1), 1: (1, 1, 1), 2: (1, 1, 1)}, {0: 2, 1: 3, 2: 3}, id="the remainder goes last"),
        pytest.param(8, {0: (3, 1, 3), 1: (1, 1, 1), 2: (2, 1, 2)}, {0: 3, 1: 2, 2: 3}, id="the least offered first"),
        pytest.param(9, {0: (1, 1, 1), 1: (7, 7, 7)}, {0: 2, 1: 5}, id="no more than has room beside what runs"),
        pytest.param(10, {0: (1, 1, 1), 1: (1, 1, 1), 2: (6, 6, 6)}, {0: 3, 1: 1, 2: 4}, id="room is given once"),
        pytest.param(8, {0: (8, 0, 0), 1: (4, 4, 4)}, {0: 2, 1: 8}, id="an idle shard keeps half of what is spare"),
        pytest.param(8, {0: (5, 0, 2), 1: (4, 0, 1)}, {0: 5, 1: 4}, id="nothing changes while none wants more"),
    ],
)
def test_free_slots_are_divided_between_the_shards_that_want_more(
    slots: int, loads: Mapping[int, tuple[int, int, int]], offers: Mapping[int, int]
) -> None:
    divided = SlotOffers(slots).next(0, {shard: ShardLoad(*load) for shard, load in loads.items()}, freed=0)
    assert divided == offers
