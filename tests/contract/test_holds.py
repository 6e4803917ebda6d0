"""`HoldStore`, and the release of a hold by the leader."""

from dataclasses import replace
from typing import Any

import pytest

from hascheduler.dispatch.decisions import ReleaseHold
from hascheduler.errors import InvalidInput
from hascheduler.model.collection import Collection
from hascheduler.model.documents.leadership import encode_hold
from hascheduler.model.partition import Hold
from tests.contract.backends import Backend, on
from tests.contract.checks import DONE, LOST, applied

pytestmark = on("memory", "mongomock", "pymongo", "motor")

KEY = "cap/definition/$log"
HOLD = Hold(KEY, 4, is_held=True, is_silent=True)


async def stored(backend: Backend) -> Any:
    return await backend.behind.find(Collection.HOLDS, KEY)


async def test_a_hold_that_was_broken_by_hand_is_refused_alone_and_left_out_of_many(backend: Backend) -> None:
    await backend.holds.put(HOLD)
    await backend.behind.insert(Collection.HOLDS, {**encode_hold(HOLD), "_id": "cap/all", "held": 1})
    assert await backend.holds.all() == {KEY: HOLD}
    with pytest.raises(InvalidInput):
        await backend.holds.get("cap/all")


async def test_a_hold_is_put_in_the_place_of_an_earlier_one_alone(backend: Backend) -> None:
    assert await backend.holds.put(HOLD)
    assert await stored(backend) == encode_hold(HOLD)
    assert not await backend.holds.put(replace(HOLD, is_held=False))
    assert not await backend.holds.put(replace(HOLD, rev=3, is_held=False))
    assert await stored(backend) == encode_hold(HOLD)
    later = replace(HOLD, rev=9, is_held=False)
    assert await backend.holds.put(later)
    assert await stored(backend) == encode_hold(later)


async def test_a_release_names_the_revision_that_it_is_of(backend: Backend) -> None:
    await backend.holds.put(HOLD)
    for _ in range(2):
        assert await applied(backend.claims, ReleaseHold(KEY, 4)) == [DONE]
        assert await stored(backend) == encode_hold(replace(HOLD, released=4))
    assert await applied(backend.claims, ReleaseHold(KEY, 3), ReleaseHold("cap/all", 4)) == [LOST, LOST]
    await backend.holds.put(replace(HOLD, rev=5))
    assert await applied(backend.claims, ReleaseHold(KEY, 4)) == [LOST]
    assert await stored(backend) == encode_hold(replace(HOLD, rev=5))
