"""A processor that is told to move: it drains, whatever it says of itself, through any replica."""

from typing import Any

import pytest

from hascheduler.model.collection import Collection
from hascheduler.model.documents.processor import encode_processor
from tests.contract.backends import Backend, on
from tests.factories import make_processor

pytestmark = on("memory", "sharded", "pymongo", "motor")


async def _stored(backend: Backend) -> Any:
    return await backend.behind.find(Collection.PROCESSORS, "p1")


@pytest.mark.parametrize("said", [None, False, True])
async def test_one_that_moves_drains_whatever_it_says(backend: Backend, said: bool | None) -> None:
    await backend.work.register(make_processor(beat=7))
    assert await backend.work.set_moving("p1", moving=True)
    assert await backend.work.touch("p1", draining=said)
    stored = await _stored(backend)
    assert (stored["moving"], stored["draining"], stored["beat"]) == (True, True, 9)


async def test_one_that_stays_after_all_says_itself_whether_it_drains(backend: Backend) -> None:
    await backend.work.register(make_processor(beat=7))
    for moving in (True, False):
        assert await backend.work.set_moving("p1", moving=moving)
    assert (await _stored(backend))["draining"] is False
    for said in (True, False):
        assert await backend.work.touch("p1", draining=said)
        stored = await _stored(backend)
        assert (stored["moving"], stored["draining"]) == (False, said)


async def test_a_registration_of_the_release_before_drains_as_it_says(backend: Backend) -> None:
    """It has no such field."""
    before = encode_processor(make_processor())
    del before["moving"]
    await backend.behind.insert(Collection.PROCESSORS, before)
    for said in (True, False):
        assert await backend.work.touch("p1", draining=said)
        assert (await _stored(backend))["draining"] is said


async def test_one_that_is_gone_is_told_nothing(backend: Backend) -> None:
    assert not await backend.work.set_moving("p1", moving=True)
    assert await _stored(backend) is None
