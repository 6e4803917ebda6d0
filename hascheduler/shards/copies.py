"""Copies of what people define, from the home into every other shard.

A shard decides on its own, so it has its own copy of each definition, lane, calendar, tenant and pause, and its core
gets them through its own stream. Two ways bring them there:

* the request that writes one copies it at once, before it is answered: who submits after a ``PUT`` finds it in place;
* the leader of each shard compares what its mirror shows with what the home's shows, and copies what differs. So a
  copy that did not come about (its shard was away, the replica died) is made when both are there again.

*No older document overtakes a newer one.* A copy reads the shard first and the home second, so what it writes is at
least as new as what it replaces, and it replaces only the revision that it read. Then it compares once more: if another
request wrote and copied in between, and the copy undid that, the same copy mends it. A document that can't be read is
copied too, and set aside by each shard alike.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import structlog
from pymongo.errors import DuplicateKeyError

from hascheduler.errors import StoreUnavailable
from hascheduler.model.collection import Collection
from hascheduler.model.definition import Definition
from hascheduler.mongo.connection import Database
from hascheduler.mongo.faults import faults
from hascheduler.ports import ResourceStore, StoredDocument
from hascheduler.shards.home import why_not_keepable
from hascheduler.shards.place import ask_all
from hascheduler.shards.repeating import repeat

log = structlog.get_logger(__name__)

COPIED = (
    Collection.DEFINITIONS,
    Collection.LANES,
    Collection.CALENDARS,
    Collection.TENANTS,
    Collection.PAUSES,
)
_AT_ONCE_MAX = 500
"""Copies of one comparison; what is left comes with the next."""
_COMPARE_EVERY_S = 1.0
_TRIES = 4
_AT_ONCE_LIMIT_S = 2.0

Nouns = Callable[[Collection], Mapping[str, Any]]
"""Returns what a replica's mirror has of a collection, by name."""


async def copy(home: Database, shard: Database, collection: Collection, name: str) -> bool:
    """Make the shard's document of that name equal to the home's; False if others wrote it meanwhile, each time."""
    originals, copies = home[collection.value], shard[collection.value]
    for _ in range(_TRIES):
        with faults("copy what people define"):
            there = await copies.find_one({"_id": name})
            wanted = await originals.find_one({"_id": name})
            if wanted == there:
                return True
            version = {"_id": name, "rev": None if there is None else there.get("rev")}
            if there is not None and wanted is not None and _is_newer(wanted, there):
                await copies.replace_one(version, wanted)
                continue
            # Deleted and made again in the home: a mirror takes a lower revision for an echo, unless it saw the end.
            if there is not None and not (await copies.delete_one(version)).deleted_count:
                continue
            try:
                if wanted is not None:
                    await copies.insert_one(wanted)
            except DuplicateKeyError:
                continue
    return False


def _is_newer(wanted: Mapping[str, Any], there: Mapping[str, Any]) -> bool:
    revs = (wanted.get("rev"), there.get("rev"))
    return isinstance(revs[0], int) and isinstance(revs[1], int) and revs[0] > revs[1]


class Copies:
    """Copies what a request has written in the home into all other shards, before the request is answered."""

    def __init__(self, home: Database, others: Sequence[Database]) -> None:
        self._home = home
        self._others = others

    async def written(self, collection: Collection, name: str) -> None:
        """Copy that document now; a shard that does not answer within a moment gets it from its leader later."""
        await ask_all(self._copied(shard, collection, name) for shard in self._others)

    async def _copied(self, shard: Database, collection: Collection, name: str) -> None:
        try:
            async with asyncio.timeout(_AT_ONCE_LIMIT_S):
                await copy(self._home, shard, collection, name)
        except (StoreUnavailable, TimeoutError) as error:
            log.warning("copy_delayed", collection=str(collection), name=name, error=str(error) or "no answer in time")


class Copier:
    """Keeps the copies of one shard while this replica leads it, for as long as both mirrors are ``fresh``."""

    def __init__(
        self,
        home: Database,
        shard: Database,
        *,
        wanted: Nouns,
        there: Nouns,
        leading: Callable[[], bool],
        fresh: Callable[[], bool],
    ) -> None:
        self._home = home
        self._shard = shard
        self._wanted = wanted
        self._there = there
        self._leading = leading
        self._fresh = fresh

    async def run(self) -> None:
        async def compare() -> None:
            if self._leading() and self._fresh():
                await self.compare()

        await repeat(compare, lambda: _COMPARE_EVERY_S, "copies_delayed")

    async def compare(self) -> None:
        """Copy what differs in the two mirrors."""
        differing = [(collection, name) for collection in COPIED for name in self._differing(collection)]
        for collection, name in differing[:_AT_ONCE_MAX]:
            await copy(self._home, self._shard, collection, name)

    def _differing(self, collection: Collection) -> list[str]:
        wanted, there = self._wanted(collection), self._there(collection)
        names = [name for name, noun in wanted.items() if there.get(name) != noun]
        return names + [name for name in there if name not in wanted]


class KeepableDefinitions:
    """`hascheduler.ports.ResourceStore` of the home's definitions: refuses what ``shards`` shards can't keep."""

    def __init__(self, home: ResourceStore[Definition], shards: int) -> None:
        self._home = home
        self._shards = shards

    async def create(self, noun: Definition) -> StoredDocument | None:
        return await self._home.create(self._keepable(noun))

    async def put(self, noun: Definition) -> tuple[StoredDocument, bool]:
        return await self._home.put(self._keepable(noun))

    async def replace(self, noun: Definition, rev: int) -> StoredDocument | None:
        return await self._home.replace(self._keepable(noun), rev)

    async def get(self, name: str) -> StoredDocument | None:
        return await self._home.get(name)

    async def list(self, after: str | None, limit: int) -> Sequence[StoredDocument]:
        return await self._home.list(after, limit)

    async def delete(self, name: str, rev: int | None = None) -> bool:
        return await self._home.delete(name, rev)

    def _keepable(self, definition: Definition) -> Definition:
        broken = why_not_keepable(definition, self._shards)
        if broken is not None:
            raise broken
        return definition
