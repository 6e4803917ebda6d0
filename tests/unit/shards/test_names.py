"""The partition of each schedule's name: one at a time, for as long as anything has the name."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from unittest.mock import AsyncMock

import pytest

from hascheduler.model.partition import partition_of
from hascheduler.model.values.instants import WallMs
from hascheduler.mongo.connection import Database
from hascheduler.shards.layout import Layout
from hascheduler.shards.names import Names
from tests.doubles.databases import mock_databases
from tests.factories import NOW

LATER_MS = 61_000


@dataclass
class Deployment:
    """A home and another shard; partition 0 is in the first, 1 in the second."""

    shards: Sequence[Database] = field(default_factory=lambda: mock_databases("x", "x-0001"))
    layout: Layout = field(default_factory=lambda: Layout.even(["default", "0001"]))
    now: WallMs = NOW

    def __post_init__(self) -> None:
        self.names = Names(self.shards[0], lambda: self.now)

    async def get(self) -> Layout:
        return self.layout

    def passes(self, ms: int = LATER_MS) -> None:
        self.now = WallMs(self.now + ms)

    async def sweep(self) -> int:
        return await self.names.sweep(self.get, self.shards)

    async def stored(self, name: str) -> Any:
        return await self.shards[0]["names"].find_one({"_id": name})


@pytest.fixture
def deployment() -> Deployment:
    return Deployment()


async def test_a_name_is_bound_to_one_partition_and_confirmed_for_it_alone(deployment: Deployment) -> None:
    names = deployment.names
    assert await names.partition_of("tick") is None
    assert await names.reserve("tick", 1)
    assert await names.reserve("tick", 1)
    assert not await names.reserve("tick", 0)
    assert await names.partition_of("tick") == 1
    assert await deployment.stored("tick") == {"_id": "tick", "partition": 1, "use": 2, "at_ms": NOW}


async def test_a_broken_document_gives_its_name_to_nobody(deployment: Deployment) -> None:
    await deployment.shards[0]["names"].insert_many(
        [{"_id": "tick", "partition": "1"}, {"_id": "tock", "partition": 256}, {"_id": "tack"}]
    )
    deployment.passes()
    for name in ("tick", "tock", "tack"):
        assert await deployment.names.partition_of(name) is None
        assert not await deployment.names.reserve(name, 1)
    assert await deployment.sweep() == 0


async def test_a_sweep_frees_what_nothing_has_any_more(deployment: Deployment) -> None:
    for name in ("schedule", "job", "unused", "elsewhere", "young"):
        if name == "young":
            deployment.passes()
        await deployment.names.reserve(name, 1)
    there = deployment.shards[1]
    await there["schedules"].insert_one({"_id": "schedule"})
    await there["jobs"].insert_one({"_id": "job@1", "schedule": "job"})
    await deployment.shards[0]["schedules"].insert_one({"_id": "elsewhere"})
    assert await deployment.sweep() == 2
    left = [each["_id"] async for each in deployment.shards[0]["names"].find({})]
    assert sorted(left) == ["job", "schedule", "young"]


async def test_a_sweep_goes_through_all_names_some_at_a_time(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hascheduler.shards.names._AT_ONCE", 2)
    for number in range(5):
        await deployment.names.reserve(f"n{number}", 1)
    deployment.passes()
    assert [await deployment.sweep() for _ in range(4)] == [2, 2, 1, 0]


async def test_a_sweep_leaves_alone_what_moves(deployment: Deployment) -> None:
    await deployment.names.reserve("tick", 1)
    deployment.passes()
    deployment.layout = deployment.layout.beginning({1: 0})
    assert await deployment.sweep() == 0
    deployment.layout = deployment.layout.arrived(1)
    assert await deployment.sweep() == 0
    deployment.layout = deployment.layout.emptied(1)
    assert await deployment.sweep() == 1


async def test_a_sweep_that_looked_where_a_partition_was_frees_nothing_after_its_move(deployment: Deployment) -> None:
    await deployment.names.reserve("tick", 1)
    await deployment.shards[0]["schedules"].insert_one({"_id": "tick"})  # it moves there
    deployment.passes()
    before, after = deployment.layout, deployment.layout.beginning({1: 0}).arrived(1).emptied(1)
    read = AsyncMock(side_effect=[before, after])
    assert await deployment.names.sweep(read, deployment.shards) == 0
    assert await deployment.names.partition_of("tick") == 1


async def test_a_create_that_reserved_since_the_sweep_read_keeps_its_name(deployment: Deployment) -> None:
    await deployment.names.reserve("tick", 1)
    deployment.passes()
    looks = count(1)

    async def read() -> Layout:
        if next(looks) == 2:  # the sweep has looked into the shard
            assert await deployment.names.reserve("tick", 1)
        return deployment.layout

    assert await deployment.names.sweep(read, deployment.shards) == 0
    assert await deployment.names.partition_of("tick") == 1


async def test_a_create_that_stood_still_for_a_minute_learns_that_its_name_is_anothers(deployment: Deployment) -> None:
    assert await deployment.names.reserve("tick", 1)
    deployment.passes()
    assert await deployment.sweep() == 1
    assert await deployment.names.reserve("tick", 0)  # another create, of another partition
    await deployment.shards[1]["schedules"].insert_one({"_id": "tick"})
    assert not await deployment.names.reserve("tick", 1)  # so the first one deletes what it made


async def test_the_only_shard_of_a_deployment_has_all_its_names_reserved(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hascheduler.shards.names._AT_ONCE", 2)
    home = deployment.shards[0]
    await deployment.names.reserve("known", 7)
    await home["schedules"].insert_many(
        [
            *({"_id": f"s{number}", "job": {"tenant": f"t{number}"}} for number in range(5)),
            {"_id": "known", "job": {"tenant": "t1"}},
            {"_id": "broken", "job": "?"},
        ]
    )
    await home["jobs"].insert_many(
        [
            *({"_id": f"old@{number}", "schedule": "old", "tenant": "t9"} for number in range(4)),
            {"_id": "s1@1", "schedule": "s1", "tenant": "t8"},
            {"_id": "job:1", "tenant": "t7"},
        ]
    )
    await deployment.names.reserve_all(home)
    bound = {each["_id"]: each["partition"] async for each in home["names"].find({})}
    assert bound == {
        **{f"s{number}": partition_of(f"t{number}") for number in range(5)},
        "known": 7,
        "old": partition_of("t9"),
    }
