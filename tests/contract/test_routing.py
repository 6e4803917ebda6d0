"""`RoutingStore`: one document, which changes by compare-and-set on its epoch."""

from dataclasses import replace

import pytest

from hascheduler.errors import InvalidInput
from hascheduler.model.collection import Collection
from hascheduler.model.documents.routing import ROUTING_ID, encode_routing
from hascheduler.model.routing import Routing
from tests.contract.backends import Backend, on
from tests.contract.racing import RACERS, raced

pytestmark = on("memory", "mongomock", "pymongo", "motor")

FIRST = Routing.even(("default", "0001"))
SECOND = replace(FIRST, epoch=2, shard_of_slot=(1,) * len(FIRST.shard_of_slot))


async def test_a_deployment_has_none_until_it_is_created(backend: Backend) -> None:
    assert await backend.routing.get() is None
    assert await backend.routing.create(FIRST) is True
    assert await backend.routing.get() == FIRST


async def test_the_first_one_is_created_once(backend: Backend) -> None:
    await backend.routing.create(FIRST)
    assert await backend.routing.create(Routing.even(("default", "0001", "0002"))) is False
    assert await backend.routing.get() == FIRST


async def test_it_is_replaced_at_its_epoch_alone(backend: Backend) -> None:
    assert await backend.routing.replace(1, SECOND) is False
    assert await backend.routing.get() is None
    await backend.routing.create(FIRST)
    assert await backend.routing.replace(2, replace(SECOND, epoch=3)) is False
    assert await backend.routing.replace(1, SECOND) is True
    assert await backend.routing.replace(1, replace(FIRST, epoch=2)) is False
    assert await backend.routing.get() == SECOND


async def test_of_racing_replacements_of_one_epoch_one_wins(backend: Backend) -> None:
    await backend.routing.create(FIRST)
    moved = [replace(SECOND, shard_of_slot=(0,) * n + SECOND.shard_of_slot[n:]) for n in range(RACERS)]
    answers = await raced(backend.routing.replace(1, each) for each in moved)
    assert answers.count(True) == 1
    assert await backend.routing.get() == moved[answers.index(True)]


async def test_one_that_was_broken_by_hand_is_told_and_nothing_is_put_in_its_place(backend: Backend) -> None:
    broken = {**encode_routing(FIRST), "slots": [0, 1]}
    await backend.behind.insert(Collection.ROUTING, broken)
    with pytest.raises(InvalidInput, match="2 slots"):
        await backend.routing.get()
    assert await backend.routing.create(FIRST) is False
    assert await backend.behind.find(Collection.ROUTING, ROUTING_ID) == broken
