"""What each replica knows of the layout: a mover waits for all that live, and for no longer than it has patience."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest

from hascheduler.mongo.connection import Database
from hascheduler.shards.gateways import GatewayBoard
from hascheduler.shards.home import LayoutStore, LayoutWatch
from hascheduler.shards.layout import Layout
from tests.doubles.databases import mock_databases


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


@pytest.fixture
def home() -> Database:
    return mock_databases("x")[0]


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
