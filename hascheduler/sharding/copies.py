"""Copies of what people define, from the home into every other shard.

A shard decides on its own, so it has its own copy of each definition, lane, calendar, tenant and pause, and its core
gets them through its own stream. Two ways bring them there:

* the request that writes one copies it at once, before it is answered: who submits after a ``PUT`` finds it in place;
* the leader of each shard compares what its mirror shows with what the home's shows, and copies what differs. So a
  copy that did not come about (its shard was away, the replica died) is made when both are there again.

Each copy reads the document in the home and in the shard, and swaps the one for the other by compare-and-set. A copier
that was overtaken swaps nothing, or is made good by the next comparison: copies follow the home as a stream does, soon
and in the end, and need no fence. A document that can't be read is copied too, and set aside by each shard alike.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import structlog

from hascheduler.errors import StoreUnavailable
from hascheduler.model.collection import Collection
from hascheduler.ports.sharding import CopyStore
from hascheduler.telemetry.log_lines import Reminders

log = structlog.get_logger(__name__)

COPIED = (
    Collection.DEFINITIONS,
    Collection.LANES,
    Collection.CALENDARS,
    Collection.TENANTS,
    Collection.PAUSES,
)
AT_ONCE_MAX = 500
"""Copies of one comparison; what is left comes with the next."""
_COMPARE_EVERY_S = 1.0
_TRIES = 3
_AT_ONCE_LIMIT_S = 2.0

Nouns = Callable[[Collection], Mapping[str, Any]]
"""What a replica's mirror has of a collection, by name."""


async def copy(home: CopyStore, shard: CopyStore, collection: Collection, name: str) -> bool:
    """Make the shard's document of that name that of the home; False: others wrote it meanwhile, time after time."""
    for _ in range(_TRIES):
        wanted, there = await home.get(collection, name), await shard.get(collection, name)
        if wanted == there:
            return True
        if there is None:
            done = wanted is None or await shard.insert(collection, wanted)
        elif wanted is None:
            done = await shard.delete(collection, there)
        elif _is_newer(wanted, there):
            done = await shard.replace(collection, there, wanted)
        else:
            # Deleted and made again in the home: a mirror takes a lower revision for an echo, unless it saw the end.
            done = await shard.delete(collection, there) and await shard.insert(collection, wanted)
        if done:
            return True
    return False


def _is_newer(wanted: Mapping[str, Any], there: Mapping[str, Any]) -> bool:
    revs = (wanted.get("rev"), there.get("rev"))
    return isinstance(revs[0], int) and isinstance(revs[1], int) and revs[0] > revs[1]


class CopiesAtOnce:
    """Copies what a request has written into all other shards, before the request is answered."""

    def __init__(self, home: CopyStore, others: Sequence[CopyStore]) -> None:
        self._home = home
        self._others = others

    async def written(self, collection: Collection, name: str) -> None:
        """At most for a moment; a shard that does not answer gets it from its leader later."""
        copies = [self._copied(shard, collection, name) for shard in self._others]
        await asyncio.gather(*copies)

    async def _copied(self, shard: CopyStore, collection: Collection, name: str) -> None:
        try:
            async with asyncio.timeout(_AT_ONCE_LIMIT_S):
                await copy(self._home, shard, collection, name)
        except (StoreUnavailable, TimeoutError) as error:
            log.warning("copy_delayed", collection=str(collection), name=name, error=str(error) or "no answer in time")


class CopyKeeper:
    """Keeps the copies of one shard while this replica leads it, for as long as both mirrors are ``fresh``."""

    def __init__(
        self,
        home: CopyStore,
        shard: CopyStore,
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
        self._reminders = Reminders()

    async def run(self) -> None:
        while True:
            if self._leading() and self._fresh():
                await self._compare()
            await asyncio.sleep(_COMPARE_EVERY_S)

    async def _compare(self) -> None:
        differing = [(collection, name) for collection in COPIED for name in self._differing(collection)]
        try:
            for collection, name in differing[:AT_ONCE_MAX]:
                await copy(self._home, self._shard, collection, name)
            self._reminders.over()
        except StoreUnavailable as error:
            if self._reminders.is_due(str(error), int(asyncio.get_running_loop().time() * 1_000)):
                log.warning("copies_delayed", copies=len(differing), error=str(error))

    def _differing(self, collection: Collection) -> list[str]:
        wanted, there = self._wanted(collection), self._there(collection)
        names = [name for name, noun in wanted.items() if there.get(name) != noun]
        return names + [name for name in there if name not in wanted]
