"""Copies of what people define: what the home has, each shard has soon, whatever was overtaken or broken off."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hascheduler.errors import InvalidInput, StoreUnavailable
from hascheduler.mirror.changes import Change, Operation
from hascheduler.model.collection import Collection
from hascheduler.model.definition import ConflictScope, Definition, RateLimit
from hascheduler.model.documents.definition import encode_definition
from hascheduler.ports import StoredDocument
from hascheduler.sharding.copies import CopiesAtOnce, CopyKeeper, copy
from hascheduler.sharding.resources import ShardedResourceStore, keepable_definition
from hascheduler.testing.memory.database import MemoryConnection, MemoryDatabase
from hascheduler.testing.memory.resources import MemoryResourceStore
from tests.doubles.shards import MemoryCopyStore
from tests.tiers import examples

DEFINITIONS = Collection.DEFINITIONS


class Shards:
    """A home and another shard, and direct access to what they hold."""

    def __init__(self) -> None:
        self.databases = [MemoryDatabase(), MemoryDatabase()]
        self.connections = [MemoryConnection(database) for database in self.databases]
        self.home, self.other = map(MemoryCopyStore, self.connections)
        self.is_leading, self.is_fresh = True, True

    def written(self, shard: int, name: str, rev: int, **fields: Any) -> None:
        self.databases[shard].replace(DEFINITIONS, encode_definition(Definition(name, rev=rev, **fields)))

    def found(self, shard: int, name: str = "log") -> StoredDocument | None:
        return self.databases[shard].find(DEFINITIONS, name)

    def nouns(self, shard: int, collection: Collection) -> Mapping[str, Any]:
        return {document["_id"]: document for document in self.databases[shard].documents(collection)}

    @property
    def keeper(self) -> CopyKeeper:
        return CopyKeeper(
            self.home,
            self.other,
            wanted=lambda collection: self.nouns(0, collection),
            there=lambda collection: self.nouns(1, collection),
            leading=lambda: self.is_leading,
            fresh=lambda: self.is_fresh,
        )

    def definitions(self, shards: int = 2) -> ShardedResourceStore[Definition]:
        home = MemoryResourceStore(self.connections[0], DEFINITIONS, encode_definition)
        copies = CopiesAtOnce(self.home, [self.other])
        return ShardedResourceStore(home, DEFINITIONS, lambda noun: noun.name, copies, keepable_definition(shards))


@pytest.fixture
def shards() -> Shards:
    return Shards()


async def test_what_is_written_is_in_every_shard_when_the_write_is_answered(shards: Shards) -> None:
    store = shards.definitions()
    await store.put(Definition("log", max_concurrency=4))
    assert shards.found(1) == shards.found(0) is not None
    document = await store.replace(Definition("log", max_concurrency=6), 1)
    assert document is not None
    assert shards.found(1) == document
    assert await store.replace(Definition("log", max_concurrency=9), 1) is None
    assert shards.found(1) == document
    assert await store.create(Definition("mail")) == shards.found(1, "mail")
    assert await store.delete("log")
    assert shards.found(1) is None


async def test_one_that_is_made_again_begins_anew_in_every_shard(shards: Shards) -> None:
    store = shards.definitions()
    for cap in (4, 5, 6):
        await store.put(Definition("log", max_concurrency=cap))
    shards.databases[0].delete(DEFINITIONS, "log")
    await store.create(Definition("log"))
    assert shards.found(1) == shards.found(0)
    # A mirror takes a lower revision for an echo, unless it saw the end of the one before.
    events = shards.databases[1].history.after(0, 100)
    assert [event.operation for event in events if isinstance(event, Change)][-2:] == [Operation.DELETE, Operation.PUT]


class Away(MemoryCopyStore):
    """A shard whose database does not answer."""

    async def get(self, collection: Collection, name: str) -> StoredDocument | None:
        raise StoreUnavailable("it is away")


async def test_a_shard_that_is_away_holds_up_no_write_and_is_made_good_later(shards: Shards) -> None:
    home = MemoryResourceStore(shards.connections[0], DEFINITIONS, encode_definition)
    copies = CopiesAtOnce(shards.home, [Away(shards.connections[1])])
    store = ShardedResourceStore(home, DEFINITIONS, lambda noun: noun.name, copies)
    await store.put(Definition("log"))
    assert shards.found(0) is not None
    assert shards.found(1) is None
    await shards.keeper._compare()
    assert shards.found(1) == shards.found(0)


async def test_a_keeper_copies_only_while_it_leads_and_sees_both(shards: Shards) -> None:
    shards.written(0, "log", 1)
    for shards.is_leading, shards.is_fresh in ((False, True), (True, False)):
        running = asyncio.create_task(shards.keeper.run())
        await asyncio.sleep(0.01)
        running.cancel()
        assert shards.found(1) is None
    shards.is_leading = shards.is_fresh = True
    running = asyncio.create_task(shards.keeper.run())
    for _ in range(100):
        await asyncio.sleep(0)
    running.cancel()
    assert shards.found(1) is not None


STEPS = st.lists(
    st.tuples(st.sampled_from(["put", "delete", "copy", "slow", "finish"]), st.sampled_from(["log", "mail"])),
    max_size=24,
)


@given(STEPS)
@settings(max_examples=examples(120))
def test_whatever_is_overtaken_the_shard_has_what_the_home_has_in_the_end(steps: list[tuple[str, str]]) -> None:
    """Copies begin and are held right before they write; the home changes meanwhile; then all comparisons are made."""

    async def run() -> None:
        shards = Shards()
        slow: list[asyncio.Task[bool]] = []
        gates: list[asyncio.Event] = []
        for step, name in steps:
            there = shards.found(0, name)
            if step == "put":
                shards.written(0, name, 1 if there is None else there["rev"] + 1, max_concurrency=len(slow) + 1)
            elif step == "delete":
                shards.databases[0].delete(DEFINITIONS, name)
            elif step == "copy":
                await copy(shards.home, shards.other, DEFINITIONS, name)
            elif step == "slow":
                gate = asyncio.Event()
                gates.append(gate)
                slow.append(
                    asyncio.create_task(copy(shards.home, Held(shards.connections[1], gate), DEFINITIONS, name))
                )
                await asyncio.sleep(0)
            elif gates:
                gates.pop(0).set()
                await asyncio.sleep(0)
        for gate in gates:
            gate.set()
        if slow:
            await asyncio.wait(slow)
        await shards.keeper._compare()
        for name in ("log", "mail"):
            assert shards.found(1, name) == shards.found(0, name)

    asyncio.run(run())


class Held(MemoryCopyStore):
    """Its writes wait for the gate."""

    def __init__(self, connection: MemoryConnection, gate: asyncio.Event) -> None:
        super().__init__(connection)
        self._gate = gate

    async def insert(self, collection: Collection, document: StoredDocument) -> bool:
        await self._gate.wait()
        return await super().insert(collection, document)

    async def replace(self, collection: Collection, before: StoredDocument, document: StoredDocument) -> bool:
        await self._gate.wait()
        return await super().replace(collection, before, document)

    async def delete(self, collection: Collection, before: StoredDocument) -> bool:
        await self._gate.wait()
        return await super().delete(collection, before)


# What can't be kept over several shards


@pytest.mark.parametrize(
    ("definition", "path"),
    [
        (Definition("log", rate_limit=RateLimit(3, 1_000)), ("rate_limit", "count")),
        (Definition("log", conflict_group="db"), ("conflict_scope",)),
    ],
)
async def test_a_limit_that_shards_can_not_keep_is_refused_before_anything_is_written(
    shards: Shards, definition: Definition, path: tuple[str, ...]
) -> None:
    store = shards.definitions(4)
    for write in (store.put(definition), store.create(definition), store.replace(definition, 1)):
        with pytest.raises(InvalidInput) as refused:
            await write
        assert refused.value.path == path
    assert shards.found(0) is None


async def test_limits_that_move_that_can_be_divided_or_are_of_one_tenant_are_taken(shards: Shards) -> None:
    fits = Definition("log", max_concurrency=1, tier=1, rate_limit=RateLimit(4, 1_000))
    of_tenant = Definition("mail", conflict_group="db", conflict_scope=ConflictScope.TENANT)
    for definition in (fits, of_tenant):
        await shards.definitions(4).put(definition)
        assert shards.found(1, definition.name) is not None
