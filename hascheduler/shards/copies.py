"""Copies of what people define, from the home into every other shard.

A shard decides on its own, so it has its own copy of each definition, lane, calendar, tenant and pause, and its core
gets them through its own stream. Copies are made in two ways:

* the request that writes one copies it before it is answered, so a submit after a ``PUT`` finds it in place;
* the leader of each shard compares its mirror with the home's and copies what differs: a copy that was not made (its
  shard was unreachable, the replica died) is made once both are reachable again.

*No older document overtakes a newer one.* A copy reads the shard first and the home second, so what it writes is at
least as new as what it replaces, and it replaces only the revision that it read. Then it compares again, and repairs
what it undid of another request in between. An unreadable document is copied too: each shard quarantines it.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from pymongo.errors import DuplicateKeyError

from hascheduler.errors import StoreUnavailable
from hascheduler.model.collection import Collection
from hascheduler.mongo.connection import Database
from hascheduler.mongo.faults import faults
from hascheduler.schema.definition import Definition
from hascheduler.schema.noun import document_of
from hascheduler.shards.home import why_not_keepable
from hascheduler.shards.hosting import HostedShard, Hosting
from hascheduler.shards.peers import ask_all
from hascheduler.shards.repeating import repeat

log = structlog.get_logger(__name__)

COPIED = (
    Collection.DEFINITIONS, Collection.LANES, Collection.CALENDARS, Collection.TENANTS, Collection.PAUSES,
)  # fmt: skip
_AT_ONCE_MAX = 500
"""The most copies of one comparison; the next one makes the rest."""
_COMPARE_EVERY_S = 1.0
_TRIES = 4
_AT_ONCE_LIMIT_S = 2.0


async def copy(home: Database, shard: Database, collection: Collection, name: str) -> bool:
    """Make the shard's document of that name equal to the home's; False if others kept writing it meanwhile."""
    originals, copies = home[collection.value], shard[collection.value]
    for _ in range(_TRIES):
        with faults("copy a definition or another noun"):
            there = await copies.find_one({"_id": name})
            wanted = await originals.find_one({"_id": name})
            if wanted == there:
                return True
            version = {"_id": name, "rev": None if there is None else there.get("rev")}
            if there is not None and wanted is not None and _is_newer(wanted, there):
                await copies.replace_one(version, wanted)
                continue
            # Deleted and made again in the home: a mirror ignores a lower revision unless it saw the delete.
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
    """The copies of what a request wrote in the home, made in all other shards before the request is answered."""

    def __init__(self, home: Database, others: Sequence[Database]) -> None:
        self._home = home
        self._others = others

    async def written(self, collection: Collection, name: str) -> None:
        """Copy that document; a shard that does not answer in time gets it from its leader later."""
        await ask_all(self._copied(shard, collection, name) for shard in self._others)

    async def _copied(self, shard: Database, collection: Collection, name: str) -> None:
        try:
            async with asyncio.timeout(_AT_ONCE_LIMIT_S):
                await copy(self._home, shard, collection, name)
        except (StoreUnavailable, TimeoutError) as error:
            log.warning("copy_failed", collection=str(collection), name=name, error=str(error) or "no answer in time")


@dataclass
class Copier:
    """The loop that makes one shard's missing copies while this replica leads it and has both mirrors."""

    home: Database
    database: Database
    hosting: Hosting
    shard: HostedShard

    async def run(self) -> None:
        await repeat(self.compare, lambda: _COMPARE_EVERY_S, "copies_delayed")

    async def compare(self) -> None:
        """Copy what differs in the two mirrors."""
        home, here = self.hosting.home, self.shard.replica
        if here is None or not (here.view.leading and here.view.ready and home.view.ready):
            return
        differing: list[tuple[Collection, str]] = []
        for collection in COPIED:
            wanted, there = home.nouns(collection), here.nouns(collection)
            differing += [(collection, name) for name in {**wanted, **there} if wanted.get(name) != there.get(name)]
        for collection, name in differing[:_AT_ONCE_MAX]:
            await copy(self.home, self.database, collection, name)


def encode_keepable(shards: int, definition: Definition) -> dict[str, Any]:
    """Return the document of a definition; raise `InvalidInput` if that number of shards can't keep its limits."""
    if broken := why_not_keepable(definition, shards):
        raise broken
    return document_of(definition)
