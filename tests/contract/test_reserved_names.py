"""`NameStore`: whose each schedule's name is, by compare-and-set on the whole reservation."""

from dataclasses import replace
from typing import Any

import pytest

from hascheduler.errors import InvalidInput
from hascheduler.model.collection import Collection
from hascheduler.model.values.instants import WallMs
from hascheduler.ports.sharding import ReservedName
from tests.contract.backends import Backend, on
from tests.contract.racing import RACERS, raced
from tests.factories import NOW

pytestmark = on("memory", "mongomock", "pymongo", "motor")

LATER = WallMs(NOW + 1)


async def reserved(backend: Backend, tenant: str = "$acme", name: str = "tick") -> ReservedName:
    made = await backend.names.reserve(name, tenant, None, NOW)
    assert made is not None
    return made


async def test_a_reservation_is_read_back(backend: Backend) -> None:
    assert await backend.names.get("tick") is None
    made = await reserved(backend)
    assert made == ReservedName("tick", "$acme", 1, NOW)
    assert await backend.names.get("tick") == made
    assert await backend.names.get("tick-2") is None


async def test_a_name_that_is_reserved_is_not_free(backend: Backend) -> None:
    made = await reserved(backend)
    assert await backend.names.reserve("tick", "other", None, LATER) is None
    assert await backend.names.get("tick") == made


async def test_each_reservation_of_a_name_has_a_later_use_whichever_tenant_makes_it(backend: Backend) -> None:
    first = await reserved(backend)
    second = await backend.names.reserve("tick", "$acme", first, LATER)
    assert second == ReservedName("tick", "$acme", 2, LATER)
    third = await backend.names.reserve("tick", "other", second, LATER)
    assert third == ReservedName("tick", "other", 3, LATER)
    for stale in (first, second):
        assert await backend.names.reserve("tick", "$acme", stale, LATER) is None
        assert await backend.names.release(stale) is False
    assert await backend.names.get("tick") == third


async def test_a_released_name_is_free(backend: Backend) -> None:
    made = await reserved(backend)
    assert await backend.names.release(made) is True
    assert await backend.names.release(made) is False
    assert await backend.names.get("tick") is None
    assert await backend.names.reserve("tick", "other", made, LATER) is None
    assert (await reserved(backend, "other")).tenant == "other"


@pytest.mark.parametrize("now", [{"tenant": "other"}, {"at_ms": LATER}])
async def test_after_a_release_the_use_begins_anew_and_is_no_earlier_one(backend: Backend, now: Any) -> None:
    before = await reserved(backend)
    await backend.names.release(before)
    again = replace(before, **now)
    assert await backend.names.reserve("tick", again.tenant, None, again.at_ms) == again
    assert await backend.names.release(before) is False
    assert await backend.names.reserve("tick", "third", before, LATER) is None
    assert await backend.names.get("tick") == again


async def test_of_racing_reservations_one_wins(backend: Backend) -> None:
    answers = await raced(backend.names.reserve("tick", f"t{n}", None, NOW) for n in range(RACERS))
    [first] = [each for each in answers if each is not None]
    answers = await raced(backend.names.reserve("tick", f"t{n}", first, NOW) for n in range(RACERS))
    [second] = [each for each in answers if each is not None]
    assert await backend.names.get("tick") == second


@pytest.mark.parametrize("broken", [{"tenant": 7}, {"use": 0}, {"use": "1"}, {"at_ms": None}])
async def test_one_that_was_broken_by_hand_tells_nothing_and_is_not_replaced(backend: Backend, broken: Any) -> None:
    stored = {"_id": "tick", "tenant": "acme", "use": 1, "at_ms": NOW, **broken}
    await backend.behind.insert(Collection.NAMES, stored)
    assert await backend.names.get("tick") is None
    with pytest.raises(InvalidInput):
        await backend.names.reserve("tick", "acme", None, NOW)
    assert await backend.behind.find(Collection.NAMES, "tick") == stored
