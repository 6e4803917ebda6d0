"""Heartbeats of one processor that arrive through several replicas."""

import asyncio
from typing import Any

import pytest

from hascheduler.model.collection import Collection
from tests.contract.backends import Backend, on
from tests.factories import make_processor

pytestmark = on("memory", "pymongo", "motor")


async def _stored(backend: Backend) -> Any:
    return await backend.behind.find(Collection.PROCESSORS, "p1")


async def test_each_touch_raises_the_beat_through_any_replica(backend: Backend) -> None:
    await backend.work.register(make_processor(beat=7))
    assert all(await asyncio.gather(*(backend.work.touch("p1") for _ in range(20))))
    assert (await _stored(backend))["beat"] == 27


@pytest.mark.parametrize("draining", [False, True])
async def test_a_touch_leaves_draining_as_it_is_unless_it_sets_it(backend: Backend, draining: bool) -> None:
    await backend.work.register(make_processor(draining=draining))
    for given, expected in ((None, draining), (not draining, not draining), (None, not draining)):
        assert await backend.work.touch("p1", draining=given)
        assert (await _stored(backend))["draining"] is expected


async def test_a_touch_without_a_registration_is_false_and_writes_nothing(backend: Backend) -> None:
    assert not await backend.work.touch("p1")
    assert await _stored(backend) is None
