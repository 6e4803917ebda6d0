"""Copies of what people define: what the home has, each shard has soon, whatever was overtaken or broken off."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from random import Random
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock

import pytest

from hascheduler.errors import InvalidInput, StoreUnavailable
from hascheduler.model.collection import Collection
from hascheduler.mongo.connection import Database
from hascheduler.mongo.resources import MongoResourceStore
from hascheduler.schema.definition import ConflictScope, Definition, RateLimit
from hascheduler.schema.noun import document_of
from hascheduler.shards.copies import Copier, Copies, copy, encode_keepable
from tests.doubles.databases import mock_databases
from tests.tiers import examples
from tests.unit.shards.rounds import Gate

DEFINITIONS = Collection.DEFINITIONS
Copy = Callable[[Database, Database, Collection, str], Awaitable[Any]]


@pytest.fixture
def shards() -> Sequence[Database]:
    return mock_databases("x", "x-0001", "x-0002")


async def put(database: Database, rev: int, name: str = "log", **fields: Any) -> None:
    stored = document_of(Definition(name=name, rev=rev, **fields))
    await database["definitions"].replace_one({"_id": name}, stored, upsert=True)


async def found(database: Database, name: str = "log") -> Any:
    return await database["definitions"].find_one({"_id": name})


async def test_what_is_written_is_in_every_shard_and_so_is_its_end(shards: Sequence[Database]) -> None:
    home, *others = shards
    copies = Copies(home, others)
    for rev in (1, 2):
        await put(home, rev, max_concurrency=rev)
        await copies.written(DEFINITIONS, "log")
        for each in others:
            assert await found(each) == await found(home) is not None
    await home["definitions"].delete_one({"_id": "log"})
    await copies.written(DEFINITIONS, "log")
    assert [await found(each) for each in others] == [None, None]


async def test_one_that_is_made_again_is_deleted_and_inserted_in_a_shard(
    shards: Sequence[Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    home, shard, _ = shards
    await put(shard, 7)
    await put(home, 1)
    # A mirror takes a lower revision for an echo, unless it saw the end of the one before.
    monkeypatch.setattr(type(shard["definitions"]), "replace_one", AsyncMock(side_effect=AssertionError), raising=False)
    assert await copy(home, shard, DEFINITIONS, "log")
    assert await found(shard) == await found(home)


# Two requests at once


class Gated:
    """A database whose exchanges wait until the test lets them go."""

    def __init__(self, gate: Gate, database: Database) -> None:
        self._gate = gate
        self._database = database

    def __getitem__(self, name: str) -> Any:
        return self._gate.through(self._database[name])


async def both_answered(
    shards: Sequence[Database], requests: Sequence[int | None], order: Callable[[int], int], by: Copy = copy
) -> None:
    """Each request puts that revision in the home, or deletes it, and copies it; exchange by exchange, in an order."""
    gates = [Gate() for _ in requests]

    async def request(rev: int | None, gate: Gate) -> None:
        home, shard = (cast(Any, Gated(gate, each)) for each in shards[:2])
        if rev is None:
            await home["definitions"].delete_one({"_id": "log"})
        else:
            await put(home, rev, max_concurrency=rev)
        await by(home, shard, DEFINITIONS, "log")

    tasks = [asyncio.create_task(request(rev, gate)) for rev, gate in zip(requests, gates, strict=True)]
    while not all(task.done() for task in tasks):
        await asyncio.sleep(0)
        ready = [gate for gate, task in zip(gates, tasks, strict=True) if not task.done() and gate.waiting]
        if ready:
            ready[order(len(ready))].waiting.pop(0).set_result(None)
            for _ in range(4):
                await asyncio.sleep(0)
    for task in tasks:
        task.result()


async def home_first(home: Database, shard: Database, collection: Collection, name: str) -> None:
    """A planted bug, which releases had: the home is read before the shard, and the write is the last word."""
    wanted = await home[collection.value].find_one({"_id": name})
    there = await shard[collection.value].find_one({"_id": name})
    version = {"_id": name, "rev": None if there is None else there["rev"]}
    if there is not None and wanted is not None and wanted["rev"] > there["rev"]:
        await shard[collection.value].replace_one(version, wanted)
    elif there != wanted:
        if there is not None:
            await shard[collection.value].delete_one(version)
        if wanted is not None:
            await shard[collection.value].insert_one(wanted)


OVERTAKEN = {
    "a put by a put": (5, 6),
    "a delete by a put": (None, 5),
    "a put by a delete": (5, None),
}


def slow_first(reads: int) -> Callable[[int], int]:
    """The first request writes and makes so many reads, and stands still until the other one is answered."""
    steps = 0

    def order(ready: int) -> int:
        nonlocal steps
        steps += 1
        return 0 if steps <= 1 + reads or ready == 1 else 1

    return order


@pytest.mark.parametrize("requests", OVERTAKEN.values(), ids=OVERTAKEN.keys())
@pytest.mark.parametrize("reads", [0, 1, 2])
async def test_a_copy_that_was_overtaken_leaves_the_newer_one(
    shards: Sequence[Database], requests: Sequence[int | None], reads: int
) -> None:
    for each in shards[:2]:
        await put(each, 4)
    await both_answered(shards, requests, slow_first(reads))
    assert await found(shards[1]) == await found(shards[0])


@pytest.mark.parametrize("requests", [(5, 6), (None, 1)])
async def test_a_planted_copy_that_reads_the_home_first_puts_an_older_one_over_a_newer(
    shards: Sequence[Database], requests: Sequence[int | None]
) -> None:
    for each in shards[:2]:
        await put(each, 4)
    await both_answered(shards, requests, slow_first(1), home_first)
    assert await found(shards[1]) != await found(shards[0])


@pytest.mark.parametrize("seed", range(examples(60)))
async def test_in_whatever_order_requests_come_the_shard_has_what_the_home_has_once_all_are_answered(
    shards: Sequence[Database], seed: int
) -> None:
    random = Random(seed)
    if random.random() < 0.7:
        for each in shards[:2]:
            await put(each, 4)
    requests = [random.choice([None, 1, 5, 6]) for _ in range(random.randint(2, 3))]
    await both_answered(shards, requests, random.randrange)
    assert await found(shards[1]) == await found(shards[0])


# A shard that is away, and what makes it good


class Away:
    def __getitem__(self, name: str) -> Any:
        raise StoreUnavailable("it is away")


def copier(home: Database, shard: Database, nouns: Mapping[int, Mapping[str, Any]], **at: bool) -> Copier:
    replicas: list[Any] = [
        SimpleNamespace(
            view=SimpleNamespace(leading=at.get("leading", True), ready=at.get(name, True)),
            nouns=lambda collection, index=index: nouns[index] if collection is DEFINITIONS else {},
        )
        for index, name in enumerate(("home_ready", "shard_ready"))
    ]
    hosting: Any = SimpleNamespace(home=replicas[0])
    hosted: Any = SimpleNamespace(replica=replicas[1])
    return Copier(home, shard, hosting, hosted)


async def test_a_shard_that_is_away_holds_up_no_other_and_is_made_good_later(shards: Sequence[Database]) -> None:
    home, shard, other = shards
    await put(home, 1)
    await Copies(home, [cast(Any, Away()), other]).written(DEFINITIONS, "log")
    assert await found(other) == await found(home)
    nouns = {0: {"log": 1}, 1: {"mail": 1}}
    await put(shard, 1, "mail")
    with pytest.raises(StoreUnavailable):
        await copier(home, cast(Any, Away()), nouns).compare()
    await copier(home, shard, nouns).compare()
    assert await found(shard) == await found(home)
    assert await found(shard, "mail") is None


@pytest.mark.parametrize("at", [{"leading": False}, {"home_ready": False}, {"shard_ready": False}, {}])
async def test_a_copier_copies_while_it_leads_and_sees_both(
    shards: Sequence[Database], monkeypatch: pytest.MonkeyPatch, at: Mapping[str, bool]
) -> None:
    monkeypatch.setattr("hascheduler.shards.copies._COMPARE_EVERY_S", 0.0)
    await put(shards[0], 1)
    running = asyncio.create_task(copier(shards[0], shards[1], {0: {"log": 1}, 1: {}}, **at).run())
    for _ in range(20):
        await asyncio.sleep(0)
    running.cancel()
    assert (await found(shards[1]) is not None) is (not at)


# What several shards can't keep

RATE, GROUP = RateLimit(count=3, per_ms=1_000), {"conflict_group": "db"}


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"rate_limit": RATE}, ("rate_limit", "count")),
        ({**GROUP, "conflict_scope": ConflictScope.SHARED}, ("conflict_scope",)),
        ({"max_concurrency": 1, "tier": 1, "rate_limit": RATE.model_copy(update={"count": 4})}, None),
        (GROUP, None),
    ],
)
async def test_a_limit_that_shards_can_not_keep_is_refused_before_anything_is_written(
    shards: Sequence[Database], fields: Mapping[str, Any], path: tuple[str, ...] | None
) -> None:
    store: MongoResourceStore[Definition]
    store = MongoResourceStore(shards[0], DEFINITIONS, partial(encode_keepable, 4))
    definition = Definition(name="log", **fields)
    for write in (store.create(definition), store.replace(definition, 1)):
        if path is None:
            assert await write is not None
        else:
            with pytest.raises(InvalidInput) as refused:
                await write
            assert refused.value.path == path
    assert (await found(shards[0]) is None) is (path is not None)
