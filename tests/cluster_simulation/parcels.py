"""Slots that move between shards in two MongoDBs, as `hascheduler.mongo.slots.parcels` moves them: out of the one in a
transaction, into the other in another. In between a mover may be asleep or dead, and either server without a primary.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from collections.abc import Collection as SomeOf
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from hascheduler.errors import StoreUnavailable
from hascheduler.model.collection import Collection
from hascheduler.model.documents.hold import encode_hold
from hascheduler.model.hold import Hold
from hascheduler.model.values.instants import WallMs
from hascheduler.ports.sharding import MOVED, MovedDocuments, Passage, SlotStore
from hascheduler.testing.memory.database import Document, MemoryConnection, MemoryDatabase
from tests.cluster_simulation.network import Link, Network
from tests.doubles.shards import MemorySlotStore

_Answer = TypeVar("_Answer")


@dataclass
class ParcelBugs:
    """What is planted in the steps of a parcel."""

    forgets_first: bool = False
    """What has departed is forgotten before it has arrived."""
    brings_own_alone: bool = False
    """What another mover has sent stays on its way."""


class SimParcels:
    """`hascheduler.ports.sharding.SlotStore`. ``together`` moves what is between shards of one MongoDB; those of
    ``elsewhere`` are in another one."""

    def __init__(
        self,
        together: SlotStore,
        shards: Sequence[Any],
        network: Network,
        host: str,
        *,
        elsewhere: SomeOf[int],
        retention_ms: int,
        bugs: ParcelBugs,
    ) -> None:
        self._together = together
        self._shards = shards
        self._links = [Link(network, shard.server, host) for shard in shards]
        self._chance = network.chance
        self._elsewhere = elsewhere
        self._retention_ms = retention_ms
        self._bugs = bugs
        self._sent = 0
        self._host = host

    async def move_first(self, passage: Passage, limit: int, at_ms: WallMs) -> MovedDocuments:
        return await self._moved("move_first", passage, limit, at_ms)

    async def move_rest(self, passage: Passage, limit: int, at_ms: WallMs) -> MovedDocuments:
        return await self._moved("move_rest", passage, limit, at_ms)

    async def underway(self, index: int) -> frozenset[int]:
        if not self._elsewhere:
            return frozenset()

        async def look() -> frozenset[int]:
            parcels = (each["parcel"] for each in self._database(index).documents(Collection.DEPARTURES))
            return frozenset(int(parcel.split("/")[1], 16) for parcel in parcels)

        return await self._call(index, look)

    async def deliver(self, passage: Passage, at_ms: WallMs) -> int:
        return await self._deliver(passage, at_ms) or 0

    async def _moved(self, part: str, passage: Passage, limit: int, at_ms: WallMs) -> MovedDocuments:
        if (passage.source in self._elsewhere) == (passage.target in self._elsewhere):
            moved: MovedDocuments = await getattr(self._together, part)(passage, limit, at_ms)
            return moved
        delivered = await self._deliver(passage, at_ms)
        if delivered != 0:
            return MovedDocuments(delivered or 0, 1)
        self._sent += 1
        parcel = f"{passage.closed.key}/{self._host}/{self._sent:06}"
        departed = await self._call(passage.source, lambda: self._depart(part, parcel, passage, min(limit, 3), at_ms))
        if not departed.documents:
            return departed
        return MovedDocuments(await self._deliver(passage, at_ms) or 0, 1)

    async def _call(self, index: int, step: Callable[[], Awaitable[_Answer]]) -> _Answer:
        if self._chance.random() < 0.03:
            await asyncio.sleep(self._chance.uniform(0.5, 4))  # it was asleep, and others went on

        async def transaction() -> _Answer:
            shard = self._shards[index]
            database = shard.server.database
            if not shard.server.is_up:
                raise StoreUnavailable("there is no primary")
            database.commit(database.version)
            shard.is_moving = True
            try:
                return await step()
            finally:
                database.commit(database.version)
                shard.is_moving = False

        return await self._links[index].call("slots", transaction)

    def _database(self, index: int) -> MemoryDatabase:
        database: MemoryDatabase = self._shards[index].server.database
        return database

    async def _depart(self, part: str, parcel: str, passage: Passage, limit: int, at_ms: WallMs) -> MovedDocuments:
        """As the store moves them into an empty database, which is the parcel."""
        here, there = self._database(passage.source), MemoryDatabase()
        if not _is_still(self._database(passage.target), passage.there):
            return MovedDocuments(0, 1)
        there.insert(Collection.HOLDS, encode_hold(passage.there))
        store = MemorySlotStore([_Now(here), _Now(there)], self._retention_ms)
        way = Passage(0, 1, passage.closed, passage.there)
        moved: MovedDocuments = await getattr(store, part)(way, limit, at_ms)
        for collection in MOVED:
            for document in list(there.documents(collection)):
                id = f"{parcel}/{collection}/{document['_id']}"
                of_it = {"parcel": parcel, "collection": collection.value, "document": document}
                here.insert(Collection.DEPARTURES, {"_id": id, **of_it})
        return moved

    async def _deliver(self, passage: Passage, at_ms: WallMs) -> int | None:
        async def underway() -> dict[str, list[tuple[Collection, Document]]]:
            found: dict[str, list[tuple[Collection, Document]]] = {}
            for each in self._database(passage.source).documents(Collection.DEPARTURES):
                is_own = each["parcel"].endswith(f"/{self._host}/{self._sent:06}")
                if each["parcel"].startswith(f"{passage.closed.key}/") and (is_own or not self._bugs.brings_own_alone):
                    what = Collection(each["collection"]), each["document"]
                    found.setdefault(each["parcel"], []).append(what)
            return found

        brought = 0
        for parcel, documents in (await self._call(passage.source, underway)).items():
            steps = [
                (passage.target, partial(self._arrive, parcel, documents, passage, at_ms)),
                (passage.source, partial(self._forget, parcel, passage)),
            ]
            for index, step in reversed(steps) if self._bugs.forgets_first else steps:
                if not await self._call(index, step):
                    return None
            brought += len(documents)
        return brought

    async def _arrive(
        self, parcel: str, documents: Sequence[tuple[Collection, Document]], passage: Passage, at_ms: WallMs
    ) -> bool:
        there = self._database(passage.target)
        if not _is_still(there, passage.there):
            return False
        if there.find(Collection.ARRIVALS, parcel) is not None:
            return True
        there.insert(Collection.ARRIVALS, {"_id": parcel, "rev": passage.there.rev})
        for old in list(there.documents(Collection.ARRIVALS)):
            if old["_id"].startswith(f"{passage.closed.key}/") and old["rev"] < passage.there.rev:
                there.delete(Collection.ARRIVALS, old["_id"])
        store = MemorySlotStore([], self._retention_ms)
        for collection, document in documents:
            if collection is Collection.JOBS:
                store._move_job(MemoryDatabase(), there, document, at_ms)
            else:
                there.insert(collection, document)
        return True

    async def _forget(self, parcel: str, passage: Passage) -> bool:
        here = self._database(passage.source)
        for each in list(here.documents(Collection.DEPARTURES)):
            if each["parcel"] == parcel:
                here.delete(Collection.DEPARTURES, each["_id"])
        return True


class _Now(MemoryConnection):
    """Of one transaction: nothing else happens while it lasts."""

    @asynccontextmanager
    async def exchange(self, name: str) -> AsyncIterator[MemoryDatabase]:  # faults have names
        yield self.database


def _is_still(database: MemoryDatabase, hold: Hold) -> bool:
    stored = database.find(Collection.HOLDS, hold.key) or {}
    return (stored.get("rev"), stored.get("held")) == (hold.rev, hold.is_held)
