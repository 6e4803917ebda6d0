"""`MongoTurnStore`: whose turn it is with a cap below the number of shards, by compare-and-set on a revision."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from hascheduler.mongo.connection import Client, open_database
from hascheduler.shards.turns import CapTurn, MongoTurnStore
from tests.contract.checks import RACERS, raced
from tests.doubles.databases import mock_databases
from tests.doubles.turns import MemoryTurnStore

KEY = "cap/definition/$log"
SHARDS = ("default", "0001", "0002")


@dataclass
class Stored:
    store: MemoryTurnStore | MongoTurnStore
    put: Any = None
    """Inserts a document past the store; None of one in memory."""

    async def get(self, key: str = KEY) -> CapTurn | None:
        return next(iter(await self.store.read([key], [])), None)


@pytest.fixture(params=["memory", "mongomock", pytest.param("pymongo", marks=pytest.mark.real)])
def turns(request: pytest.FixtureRequest) -> Stored:
    if request.param == "memory":
        return Stored(MemoryTurnStore())
    if request.param == "mongomock":
        home = mock_databases("x")[0]
    else:
        client: Client = request.getfixturevalue("pymongo_client")
        home = open_database(client, request.getfixturevalue("ready_database"))
    return Stored(MongoTurnStore(home), home["turns"].insert_one)


async def test_the_first_that_wants_a_cap_makes_its_document_and_the_first_shard_has_it(turns: Stored) -> None:
    assert await turns.get() is None
    for _ in range(2):
        await turns.store.want(KEY, "0002", "default")
    assert await turns.get() == CapTurn(KEY, 1, "default", wanted=frozenset({"0002"}))


async def test_all_that_want_a_cap_at_once_are_noted(turns: Stored) -> None:
    await raced(turns.store.want(KEY, SHARDS[number % 3], "default") for number in range(RACERS))
    assert await turns.get() == CapTurn(KEY, 1, "default", wanted=frozenset(SHARDS))


async def test_it_changes_by_compare_and_set_and_its_new_owner_wants_it_no_more(turns: Stored) -> None:
    for shard in ("0001", "0002"):
        await turns.store.want(KEY, shard, "default")
    first = await turns.get()
    assert first is not None
    giving = replace(first, rev=2, is_giving=True)
    assert sorted(await raced(turns.store.replace(first, giving) for _ in range(RACERS)))[-2:] == [False, True]
    assert await turns.get() == giving
    assert not await turns.store.replace(first, giving)
    # Another that wants it meanwhile changes no revision, and is not lost.
    await turns.store.want(KEY, "default", "default")
    assert await turns.store.replace(giving, replace(giving, rev=3, owner="0001", is_giving=False))
    assert await turns.get() == CapTurn(KEY, 3, "0001", wanted=frozenset({"default", "0002"}))


async def test_read_are_those_of_the_keys_and_those_that_others_want_of_the_owners(turns: Stored) -> None:
    for key in ("cap/all", "cap/tier/1", "cap/tier/2"):
        await turns.store.want(key, "0001", "default")
    turn = await turns.get("cap/tier/2")
    assert turn is not None
    await turns.store.replace(turn, replace(turn, rev=2, owner="0001"))

    async def read(keys: list[str], owners: list[str]) -> list[str]:
        return sorted(each.key for each in await turns.store.read(keys, owners))

    assert await read([], []) == []
    assert await read([], ["default", "0001"]) == ["cap/all", "cap/tier/1"]
    assert await read(["cap/tier/2", "cap/tier/3"], ["0002"]) == ["cap/tier/2"]


@pytest.mark.parametrize(
    "changed", [{"rev": 0}, {"rev": "1"}, {"owner": 7}, {"owner": ""}, {"wanted": 5}, {"wanted": [5]}, {"wanted": ""}]
)
async def test_what_was_broken_by_hand_stands_in_nobodys_way(turns: Stored, changed: Mapping[str, Any]) -> None:
    if turns.put is None:
        return
    await turns.put({"_id": KEY, "rev": 1, "owner": "default", "giving": False, "wanted": ["0001"]} | dict(changed))
    await turns.store.want("cap/all", "0001", "default")
    expected = ["cap/all", KEY] if changed == {"wanted": ""} else ["cap/all"]
    assert sorted(each.key for each in await turns.store.read([KEY, "cap/all"], ["default"])) == expected
