"""Whether a process means the deployment that the home has."""

import pytest

from hascheduler.errors import InvalidInput, StoreUnavailable
from hascheduler.model.routing import Routing
from hascheduler.sharding.home import pinned_shard, stored_routing
from hascheduler.testing.memory.database import MemoryConnection, MemoryDatabase
from tests.doubles.shards import MemoryRoutingStore

TWO = Routing.even(["default", "0001"])


@pytest.mark.parametrize(
    ("stored", "shards", "error"),
    [
        (
            Routing.even([f"{index}" for index in range(8)]),
            4,
            "HASCHEDULER_SHARDS: 4, and the deployment in the database 'x' has 8 shards; expected 8",
        ),
        (TWO, 1, "HASCHEDULER_SHARDS: 1, and the deployment in the database 'x' has 2 shards; expected 2"),
        (
            Routing.even(["default"]),
            2,
            "HASCHEDULER_SHARDS: 2, and the deployment in the database 'x' has 1 shard; expected 1",
        ),
    ],
)
async def test_another_number_is_refused(stored: Routing, shards: int, error: str) -> None:
    store = MemoryRoutingStore(MemoryConnection(MemoryDatabase()))
    await store.create(stored)
    with pytest.raises(InvalidInput) as refused:
        await stored_routing(store, shards, "x")
    assert str(refused.value) == error


async def test_a_deployment_of_several_shards_is_waited_for_until_it_has_a_routing() -> None:
    store = MemoryRoutingStore(MemoryConnection(MemoryDatabase()))
    assert await stored_routing(store, 1, "x") is None
    with pytest.raises(StoreUnavailable, match="no routing yet"):
        await stored_routing(store, 2, "x")
    await store.create(TWO)
    assert await stored_routing(store, 2, "x") == TWO


def test_the_name_of_the_home_means_all_shards_and_another_one_that_alone() -> None:
    assert pinned_shard(TWO, "default") is None
    assert pinned_shard(TWO, "0001") == 1
    with pytest.raises(InvalidInput, match="no shard '0002'"):
        pinned_shard(TWO, "0002")
