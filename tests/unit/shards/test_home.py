"""Whether a process means the deployment that the home has, and what each knows of its layout."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from unittest.mock import AsyncMock

import pytest

from hascheduler.errors import InvalidInput, StoreUnavailable
from hascheduler.mongo.connection import Database
from hascheduler.schema.definition import ConflictScope, Definition, RateLimit
from hascheduler.schema.noun import document_of
from hascheduler.shards.gateways import GatewayBoard
from hascheduler.shards.home import (
    LayoutStore,
    LayoutWatch,
    agreed_layout,
    require_keepable,
    stored_layout,
    why_not_keepable,
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


async def test_the_only_shard_has_no_layout_and_nothing_is_written(home: Database) -> None:
    assert await agreed(home, SHARDS[:1]) is None
    assert await LayoutStore(home).get() is None


async def test_a_home_that_was_the_only_shard_keeps_its_partitions_and_its_names_are_reserved(home: Database) -> None:
    await home["schedules"].insert_one({"_id": "tick", "job": {"tenant": "acme"}})
    assert await agreed(home, SHARDS) == Layout.all_at_home(SHARDS)
    assert await Names(home, lambda: NOW).partition_of("tick") is not None


async def test_shards_that_are_added_have_no_partitions_yet(home: Database) -> None:
    first = await agreed(home, SHARDS[:2])
    assert first is not None
    assert await agreed(home, SHARDS) == first.extended(SHARDS)


@pytest.mark.parametrize(
    ("stored", "shards", "error"),
    [
        (SHARDS, SHARDS[:2], "HASCHEDULER_SHARDS: 2, and the deployment in the database 'x' has 4 shards; expected 4"),
        (SHARDS, SHARDS[:1], "HASCHEDULER_SHARDS: 1, and the deployment in the database 'x' has 4 shards; expected 4"),
        (
            SHARDS[:2],
            ("other", "0001"),
            "HASCHEDULER_SHARD: 'other', and the deployment in the database 'x' calls its first shard 'default';"
            " expected default",
        ),
        (
            SHARDS[:2],
            ("other", "0001", "0002"),
            "HASCHEDULER_SHARDS: 3, and the deployment in the database 'x' has 2 shards; expected 2",
        ),
    ],
)
async def test_fewer_shards_and_others_are_refused(
    home: Database, stored: Sequence[str], shards: Sequence[str], error: str
) -> None:
    await agreed(home, stored)
    with pytest.raises(InvalidInput) as refused:
        await agreed(home, shards)
    assert str(refused.value) == error
    assert await LayoutStore(home).get() == Layout.even(stored)


@pytest.mark.parametrize("shards", [1, 2, 8])
async def test_a_process_that_only_reads_the_layout_refuses_another_number(home: Database, shards: int) -> None:
    await agreed(home, SHARDS)
    with pytest.raises(InvalidInput, match=rf"HASCHEDULER_SHARDS: {shards}, and .* 'x' has 4 shards; expected 4"):
        await stored_layout(LayoutStore(home), shards)
    assert await stored_layout(LayoutStore(home), 4) == Layout.even(SHARDS)


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
        ({"epoch": 0}, "layout.epoch: 0"),
        ({"moving": [[1, 2]]}, "layout.moving: "),
        ({"partitions": None, "slots": [0] * 256}, "layout.partitions: "),
        ({"v": 1_000}, "layout.v: "),
    ],
)
async def test_a_layout_that_cannot_be_read_is_refused_in_a_sentence_that_names_the_database(
    home: Database, changed: dict[str, Any], said: str
) -> None:
    await home["routing"].insert_one(encode_layout(Layout.even(SHARDS)) | changed)
    for reading in (agreed(home, SHARDS), stored_layout(LayoutStore(home), 4)):
        with pytest.raises(InvalidInput, match="in the layout that the database 'x' has") as refused:
            await reading
        assert str(refused.value).startswith(said)


# What several shards can't keep


@pytest.mark.parametrize(
    ("definition", "error"),
    [
        (
            SHARED,
            "HASCHEDULER_SHARDS: 4, and the definition 'backup' has a conflict_scope that several shards can't keep:"
            " jobs of different tenants may be in different ones of 4 shards, which do not exclude each other;"
            " expected tenant",
        ),
        (
            Definition(name="mail", rate_limit=RateLimit(count=3, per_ms=1_000)),
            "HASCHEDULER_SHARDS: 4, and the definition 'mail' has a rate_limit that several shards can't keep:"
            " 3 can't be divided between 4 shards; expected 4 or more: each keeps one at least",
        ),
    ],
)
@pytest.mark.parametrize("grows", [False, True])
async def test_a_deployment_does_not_grow_while_a_stored_definition_needs_one_shard(
    home: Database, definition: Definition, error: str, *, grows: bool
) -> None:
    if grows:
        await agreed(home, SHARDS[:2])
    await home["definitions"].insert_one(document_of(definition))
    with pytest.raises(InvalidInput) as refused:
        await agreed(home, SHARDS)
    assert str(refused.value) == error
    assert await LayoutStore(home).get() == (Layout.even(SHARDS[:2]) if grows else None)


async def test_a_group_that_was_stored_without_a_scope_is_shared(home: Database) -> None:
    stored = document_of(SHARED)
    del stored["conflict_scope"]
    await home["definitions"].insert_one(stored)
    with pytest.raises(InvalidInput, match="'backup' has a conflict_scope"):
        await agreed(home, SHARDS)


async def test_what_each_shard_keeps_on_its_own_is_no_obstacle(home: Database) -> None:
    kept = [
        Definition(name="log", max_concurrency=1, tier=2),
        Definition(name="mail", rate_limit=RateLimit(count=4, per_ms=1_000)),
        Definition(name="disk", conflict_group="disk", conflict_scope=ConflictScope.TENANT),
    ]
    await home["definitions"].insert_many([*map(document_of, kept), {"_id": "broken", "rev": "?"}])
    await require_keepable(home, 4)
    assert [why_not_keepable(each, 4) for each in kept] == [None] * 3


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
    for name in ("_LOOK_S", "_BUSY_LOOK_S"):
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


async def test_all_know_a_shard_once_each_replica_tells_so(home: Database) -> None:
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


async def test_a_newer_epoch_is_told_before_the_next_beat(home: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hascheduler.shards.gateways._LOOK_S", 0.0)
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


async def test_a_document_that_was_broken_by_hand_knows_nothing_and_ends_nothing(home: Database) -> None:
    one = Gateway(home, "r1")
    await one.has(4)
    await home["gateways"].insert_many([{"_id": "x"}, {"_id": "y", "at": "now", "shards": "9", "epoch": None}])
    assert await one.board.all_know(1)
    assert await one.board.all_have(4, 9)
