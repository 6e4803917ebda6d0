"""The deployment that the home has, what each process knows of its layout, and whose a schedule's name is."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from typing import Any
from unittest.mock import AsyncMock

import pytest

from hascheduler.errors import InvalidInput, StoreUnavailable
from hascheduler.model.partition import partition_of
from hascheduler.model.values.instants import WallMs
from hascheduler.mongo.connection import Database
from hascheduler.schema.definition import ConflictScope, Definition, RateLimit
from hascheduler.schema.noun import document_of
from hascheduler.shards.gateways import GatewayBoard
from hascheduler.shards.home import (
    LayoutStore,
    LayoutWatch,
    agreed_layout,
    stored_layout,
)
from hascheduler.shards.layout import Layout, encode_layout
from hascheduler.shards.names import Names
from tests.doubles.databases import mock_databases
from tests.factories import NOW

SHARDS = ("default", "0001", "0002", "0003")
SHARED = Definition(name="backup", conflict_group="disk", conflict_scope=ConflictScope.SHARED)


@pytest.fixture
def home() -> Database:
    return mock_databases("x")[0]


async def agreed(home: Database, shards: Sequence[str]) -> Layout | None:
    return await agreed_layout(home, shards, lambda: NOW)


async def test_a_home_that_was_the_only_shard_keeps_its_partitions_and_its_names_are_reserved(home: Database) -> None:
    assert await agreed(home, SHARDS[:1]) is None
    assert await LayoutStore(home).get() is None, "the only shard has no layout"
    await home["schedules"].insert_one({"_id": "tick", "job": {"tenant": "acme"}})
    assert await agreed(home, SHARDS) == Layout.all_at_home(SHARDS)
    assert await Names(home, lambda: NOW).partition_of("tick") is not None


@pytest.mark.parametrize(
    ("stored", "shards", "error"),
    [
        (SHARDS, SHARDS[:2], ("HASCHEDULER_SHARDS: 2, ", "; expected 4")),
        (SHARDS, SHARDS[:1], ("HASCHEDULER_SHARDS: 1, ", "; expected 4")),
        (SHARDS[:2], ("other", "0001"), ("HASCHEDULER_SHARD: 'other', ", "; expected default")),
        (SHARDS[:2], ("other", "0001", "0002"), ("HASCHEDULER_SHARDS: 3, ", "; expected 2")),
    ],
)
async def test_fewer_shards_and_others_are_refused(
    home: Database, stored: Sequence[str], shards: Sequence[str], error: tuple[str, str]
) -> None:
    await agreed(home, stored)
    with pytest.raises(InvalidInput) as refused:
        await agreed(home, shards)
    first, last = error
    assert str(refused.value).startswith(first)
    assert "the deployment in the database 'x'" in str(refused.value)
    assert str(refused.value).endswith(last)
    assert await LayoutStore(home).get() == Layout.even(stored)


async def test_a_process_that_only_reads_the_layout_waits_until_there_is_one(home: Database) -> None:
    assert await stored_layout(LayoutStore(home), 1) is None
    with pytest.raises(StoreUnavailable, match="'x' has no layout yet"):
        await stored_layout(LayoutStore(home), 2)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"partitions": [9] * 256}, "layout.partitions: partition 0, shard 9"),
        ({"partitions": "all"}, "layout.partitions: all"),
        ({"shards": ["a", "a"]}, "layout.shards: a name occurs twice"),
        ({"moving": [[1, 2]]}, "layout.moving: "),
        ({"v": 1_000}, "layout.v: "),
    ],
)
async def test_a_layout_that_cannot_be_read_is_refused_in_a_sentence_that_names_the_database(
    home: Database, changed: dict[str, Any], said: str
) -> None:
    await home["routing"].insert_one(encode_layout(Layout.even(SHARDS)) | changed)
    for reading in (agreed(home, SHARDS), stored_layout(LayoutStore(home), 4)):
        with pytest.raises(InvalidInput, match="in the layout of the database 'x'") as refused:
            await reading
        assert str(refused.value).startswith(said)


# What several shards can't keep


@pytest.mark.parametrize(
    ("definition", "error"),
    [
        (SHARED, "HASCHEDULER_SHARDS: 4, .*'backup' has a conflict_scope .*; expected tenant"),
        (
            Definition(name="mail", rate_limit=RateLimit(count=3, per_ms=1_000)),
            "HASCHEDULER_SHARDS: 4, .*'mail' has a rate_limit .*; expected 4 or more",
        ),
    ],
)
@pytest.mark.parametrize("grows", [False, True])
async def test_a_deployment_does_not_grow_while_a_stored_definition_needs_one_shard(
    home: Database, definition: Definition, error: str, *, grows: bool
) -> None:
    if grows:
        await agreed(home, SHARDS[:2])
    kept = Definition(name="log", max_concurrency=1, tier=2)
    stored = [{"_id": "broken", "rev": "?"}, document_of(kept), document_of(definition)]
    await home["definitions"].insert_many(stored)
    with pytest.raises(InvalidInput, match=error):
        await agreed(home, SHARDS)
    assert await LayoutStore(home).get() == (Layout.even(SHARDS[:2]) if grows else None)


# The newest one


async def test_an_older_layout_than_the_known_one_changes_nothing(home: Database) -> None:
    first = await agreed(home, SHARDS)
    assert first is not None
    store, newer = LayoutStore(home), first.beginning({0: 1})
    watch = LayoutWatch(store, newer)
    assert await watch.read_again() == newer
    assert await store.replace(first.epoch, newer)
    assert not await store.replace(first.epoch, first.beginning({0: 2}))
    arrived = newer.arrived(0)
    assert await store.replace(newer.epoch, arrived)
    assert await watch.read_again() == arrived == watch.now
    assert watch.is_busy


class Ended(Exception):
    """There are no more looks."""


async def test_an_outage_or_a_broken_document_ends_no_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_READ_EVERY_S", "_BUSY_READ_EVERY_S"):
        monkeypatch.setattr(f"hascheduler.shards.home.{name}", 0.0)
    first = Layout.even(SHARDS)
    looks = [StoreUnavailable("gone"), InvalidInput(("layout",), "broken"), first.beginning({0: 1}), Ended()]
    watch = LayoutWatch(AsyncMock(get=AsyncMock(side_effect=looks)), first)
    with pytest.raises(Ended):
        await watch.run()
    assert watch.now == first.beginning({0: 1})


class Gateway:
    def __init__(self, home: Database, id: str, shards: int = 2) -> None:
        self.epoch = 1
        watch = LayoutWatch(LayoutStore(home), Layout.even(["default", "0001"]))
        self.board = GatewayBoard(
            home, id, watch, shards=shards, acknowledged=lambda: self.epoch, is_leading=lambda: id == "r1"
        )

    async def has(self, epoch: int) -> None:
        self.epoch = epoch
        await self.board.beat()


async def died(home: Database, id: str, ago_s: int) -> None:
    stored: Any = await home["gateways"].find_one({"_id": id})
    await home["gateways"].update_one({"_id": id}, {"$set": {"at": stored["at"] - timedelta(seconds=ago_s)}})


async def test_all_know_a_shard_once_each_replica_has_published_it(home: Database) -> None:
    one, other = Gateway(home, "r1"), Gateway(home, "r2", shards=1)
    assert one.board.leading
    assert not other.board.leading
    await other.board.beat()
    assert await one.board.all_know(0)
    assert not await one.board.all_know(1)
    await Gateway(home, "r2").board.beat()
    assert await one.board.all_know(1)
    assert not await one.board.all_know(2)


async def test_a_replica_that_tells_nothing_knows_nothing_for_as_long_as_its_heartbeat_is_kept(home: Database) -> None:
    one = Gateway(home, "r1")
    at = await one.board.beat()
    for id in ("r1", "earlier"):
        await home["replicas"].insert_one({"_id": id, "expire_at": at + timedelta(seconds=60)})
    assert not await one.board.all_know(1)
    await home["replicas"].update_one({"_id": "earlier"}, {"$set": {"expire_at": at - timedelta(seconds=1)}})
    assert await one.board.all_know(1)


@pytest.mark.parametrize("shards", [1, 2])
async def test_one_that_died_is_waited_for_by_nobody_and_forgotten_in_the_end(home: Database, shards: int) -> None:
    one, dead = Gateway(home, "r1"), Gateway(home, "r2", shards)
    await one.has(5)
    at = await dead.board.beat()
    if shards == 2:  # it knew the shard, and its heartbeat is kept
        await home["replicas"].insert_one({"_id": "r2", "expire_at": at + timedelta(seconds=50)})
    await died(home, "r2", 6)
    assert await one.board.all_know(1)
    assert await one.board.all_have(5, 9)
    await home["replicas"].delete_many({})
    await died(home, "r2", 200)
    assert await Gateway(home, "r1").board.all_know(1)
    assert await home["gateways"].find_one({"_id": "r2"}) is None


async def test_each_that_lives_is_waited_for_so_long_and_one_that_left_not_at_all(home: Database) -> None:
    one, other = Gateway(home, "r1"), Gateway(home, "r2")
    await one.has(4)
    await other.has(3)
    assert await one.board.all_have(3, 9)
    assert not await one.board.all_have(4, 9)
    assert await one.board.all_have(4, 0)
    await other.has(4)
    assert await one.board.all_have(4, 9)
    await one.has(5)
    assert not await one.board.all_have(5, 9)
    await other.board.leave()
    assert await one.board.all_have(5, 9)


async def test_a_document_that_was_broken_by_hand_knows_nothing_and_ends_nothing(home: Database) -> None:
    one = Gateway(home, "r1")
    await one.has(4)
    await home["gateways"].insert_many([{"_id": "x"}, {"_id": "y", "at": "now", "shards": "9", "epoch": None}])
    assert await one.board.all_know(1)
    assert await one.board.all_have(4, 9)


async def test_a_newer_epoch_is_told_before_the_next_beat(home: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hascheduler.shards.gateways._CHECK_EVERY_S", 0.0)
    monkeypatch.setattr("hascheduler.shards.gateways._BEAT_S", 1_000.0)
    one, told = Gateway(home, "r1"), asyncio.Queue[int]()
    beat = one.board.beat

    async def beating() -> datetime:
        at = await beat()
        told.put_nowait((await home["gateways"].find_one({"_id": "r1"}) or {})["epoch"])
        return at

    monkeypatch.setattr(one.board, "beat", beating)
    running = asyncio.create_task(one.board.run())
    for epoch in (1, 2, 7):
        one.epoch = epoch
        assert await told.get() == epoch
    running.cancel()


# Names of schedules


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
