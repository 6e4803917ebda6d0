"""Schedules of all shards as one store: names are unique in the whole deployment.

::

    create    reserve the name in the home ─► look that no other shard has it ─► insert in the tenant's shard
              ─► look that the name is still reserved
    delete    read the reservation ─► delete in the shard ─► release the reservation as it was read

Each step is one compare-and-set, and any of them may be the last of a process that dies:

* after a reservation alone the name is its tenant's: a repeat reserves it again, with a higher ``use``, and goes on.
  Another tenant gets it after `UNUSED_FOR_MS`, which is longer than the insert may take;
* a release names the ``use`` that was read before the delete, so a create that reserves after that keeps its name. One
  that reserved before, and inserts after, finds it released when it looks again, and reserves it once more; where
  another tenant has it by then, it takes its schedule back. That other one looked for a schedule after it had reserved:
  of two at least one gives way;
* two creates of one tenant end at the insert, which takes one of them; of two tenants one gets the reservation.

A schedule without a reservation (written by hand, or made while one of its name was deleted) is found all the same, as
every shard is asked, and its name is taken. So is that of a deleted schedule while another shard keeps jobs of it:
their ids are made of the name and the time, and an id is in one shard alone.
"""

import heapq
from collections.abc import Callable, Coroutine, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, TypeVar

from hascheduler.ports import Clock, JobSelection, JobStore, ScheduleStore, StoredDocument
from hascheduler.ports.sharding import UNUSED_FOR_MS, NameStore, ReservedName
from hascheduler.sharding.asking import ask_all
from hascheduler.sharding.places import ShardPlaces

_Answer = TypeVar("_Answer")
_TRIES = 3


class ShardedScheduleStore:
    """`hascheduler.ports.ScheduleStore`."""

    def __init__(
        self,
        places: ShardPlaces,
        names: NameStore,
        shards: Sequence[ScheduleStore],
        jobs: Sequence[JobStore],
        clock: Clock,
    ) -> None:
        self._places = places
        self._names = names
        self._shards = shards
        self._jobs = jobs
        self._clock = clock

    async def create(self, document: StoredDocument) -> StoredDocument | None:
        name, tenant = document["_id"], _tenant(document)
        if await self._reserved(name, tenant) is None:
            return None
        shard = self._places.of_tenant(tenant)
        others = (index for index in range(len(self._shards)) if index != shard)
        if any(await ask_all(self._has_something(index, name) for index in others)):
            return None
        created = await self._shards[shard].create(document)
        if created is not None and not await self._is_still_reserved(name, tenant):
            await self._shards[shard].delete(name, created["rev"])
            return None
        return created

    async def _is_still_reserved(self, name: str, tenant: str) -> bool:
        """Whether the name is that tenant's; one that a delete has released since is reserved again."""
        reserved = await self._names.get(name)
        if reserved is None:
            reserved = await self._names.reserve(name, tenant, None, self._clock.wall_ms())
        return reserved is not None and reserved.tenant == tenant

    async def _has_something(self, shard: int, name: str) -> bool:
        """Whether that shard has a schedule of that name, or jobs of one."""
        if await self._shards[shard].get(name) is not None:
            return True
        return bool((await self._jobs[shard].list(JobSelection(schedule=name), None, 1)).documents)

    async def _reserved(self, name: str, tenant: str) -> ReservedName | None:
        """The reservation for that tenant; None: the name is another's."""
        for _ in range(_TRIES):
            before, now = await self._names.get(name), self._clock.wall_ms()
            if before is not None and before.tenant != tenant:
                is_used = await self._shards[self._places.of_tenant(before.tenant)].get(name) is not None
                if is_used or now - before.at_ms < UNUSED_FOR_MS:
                    return None
            reserved = await self._names.reserve(name, tenant, before, now)
            if reserved is not None:
                return reserved
        return None

    async def edit(self, name: str, rev: int, fields: Mapping[str, Any]) -> StoredDocument | None:
        job = fields.get("job")
        if isinstance(job, Mapping):
            before = await self.get(name)
            if before is not None and _tenant(before) != _tenant(fields):
                self._places.require_one_slot(_tenant(before), _tenant(fields), ("job", "tenant"))
                await self._reserved_again(name, _tenant(fields))
        return await self._first(name, lambda shard: shard.edit(name, rev, fields))

    async def _reserved_again(self, name: str, tenant: str) -> None:
        """It makes jobs of another tenant of its slot from now on; where that write comes to nothing, it is as good."""
        before = await self._names.get(name)
        await self._names.reserve(name, tenant, before, self._clock.wall_ms())

    async def get(self, name: str) -> StoredDocument | None:
        return await self._first(name, lambda shard: shard.get(name))

    async def delete(self, name: str, rev: int | None = None) -> bool:
        reserved = await self._names.get(name)
        deleted = await self._first(name, lambda shard: _true_or_none(shard.delete(name, rev)))
        if deleted and reserved is not None:
            await self._names.release(reserved)
        return bool(deleted)

    async def list(
        self, after: str | None, limit: int, labels: Mapping[str, str] | None = None, *, tenant: str | None = None
    ) -> Sequence[StoredDocument]:
        pages = await self._of(tenant, lambda shard: shard.list(after, limit, labels, tenant=tenant))
        return _by_name(pages)[:limit]

    async def among(
        self, names: Sequence[str], labels: Mapping[str, str], limit: int, *, tenant: str | None = None
    ) -> Sequence[StoredDocument]:
        pages = await self._of(tenant, lambda shard: shard.among(names, labels, limit, tenant=tenant))
        return _by_name(pages)[:limit]

    async def names_among(
        self, names: Sequence[str], labels: Mapping[str, str], *, tenant: str | None = None
    ) -> Sequence[str]:
        found = await self._of(tenant, lambda shard: shard.names_among(names, labels, tenant=tenant))
        return list(chain.from_iterable(found))

    async def count(self, tenant: str, limit: int) -> int:
        return await self._shards[self._places.of_tenant(tenant)].count(tenant, limit)

    async def _of(
        self, tenant: str | None, ask: Callable[[ScheduleStore], Coroutine[Any, Any, _Answer]]
    ) -> Sequence[_Answer]:
        shards = self._shards if tenant is None else [self._shards[self._places.of_tenant(tenant)]]
        return await ask_all(ask(shard) for shard in shards)

    async def _first(
        self, name: str, ask: Callable[[ScheduleStore], Coroutine[Any, Any, _Answer | None]]
    ) -> _Answer | None:
        likely = await self._places.of_schedule(name)
        others = (index for index in range(len(self._shards)) if index != likely)
        for index in others if likely is None else (likely, *others):
            answer = await ask(self._shards[index])
            if answer is not None:
                return answer
        return None


async def _true_or_none(asked: Coroutine[Any, Any, bool]) -> bool | None:
    return await asked or None


def _by_name(pages: Sequence[Sequence[StoredDocument]]) -> list[StoredDocument]:
    return list(heapq.merge(*pages, key=itemgetter("_id")))


def _tenant(document: Mapping[str, Any]) -> str:
    return str(document["job"]["tenant"])
