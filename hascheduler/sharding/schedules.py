"""Schedules of all shards as one store: each is in the shard of its tenant, its name is unique in the whole deployment.

`reservations` says whose a name is, how that is kept, and which interleavings are covered. Here a schedule is found by
its reserved name, in that shard first. One without a reservation is looked for in all shards, as is one that the shard
of its reservation does not have.

A schedule stays in its slot: an edit that would give its jobs to a tenant of another one is refused.
"""

import heapq
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from operator import itemgetter
from typing import Any, TypeVar

from hascheduler.errors import CallerError, StoreUnavailable
from hascheduler.ports import Clock, JobStore, ScheduleStore, StoredDocument
from hascheduler.ports.sharding import NameStore, ReservedName, looks_at_live_jobs
from hascheduler.sharding.asking import ask_all, naming_outages
from hascheduler.sharding.places import ShardPlaces
from hascheduler.sharding.reservations import Reservations, tenant_of

_Answer = TypeVar("_Answer")


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
        self._shards = naming_outages(places.shards, shards)
        self._reservations = Reservations(places, names, self._shards, naming_outages(places.shards, jobs), clock)

    async def create(self, document: StoredDocument) -> StoredDocument | None:
        name, tenant = str(document["_id"]), tenant_of(document)
        self._places.require_at_rest(tenant)
        reserved = await self._reservations.gain(name, tenant)
        if reserved is None:
            return None
        shard = self._shards[self._places.of_tenant(tenant)]
        try:
            created = await shard.create(document)
        except CallerError:
            # Nothing was written, and nobody has to wait for it.
            with suppress(StoreUnavailable):
                await self._reservations.release(reserved)
            raise
        if created is None:
            # Another request of this shard was first, perhaps for another tenant.
            met = await shard.get(name)
            if met is not None:
                await self._reservations.give(met, reserved)
            return None
        if await self._reservations.confirm(reserved):
            return created
        await shard.delete(name, created["rev"])
        return None

    async def edit(self, name: str, rev: int, fields: Mapping[str, Any]) -> StoredDocument | None:
        """`InvalidInput` about the tenant where its jobs would be in another slot; `Moving` where it would come to look
        at its live jobs while they may be in either of two shards."""
        found = await self._found(name)
        if found is None:
            return None
        shard, stored = found
        if not looks_at_live_jobs(stored) and looks_at_live_jobs(fields):
            self._places.require_at_rest(tenant_of(stored))
        tenant = _tenant_in(fields)
        if tenant is not None and tenant != tenant_of(stored):
            if stored["rev"] != rev:
                return None
            self._places.require_one_slot(tenant_of(stored), tenant, ("job", "tenant"))
        edited = await shard.edit(name, rev, fields)
        if edited is not None and tenant is not None:
            # A reservation for the tenant before tells the same shard: if it stays, nothing is found elsewhere.
            with suppress(StoreUnavailable):
                await self._reservations.give(edited, await self._reservations.read(name))
        return edited

    async def get(self, name: str) -> StoredDocument | None:
        found = await self._found(name)
        return None if found is None else found[1]

    async def delete(self, name: str, rev: int | None = None) -> bool:
        # Read before the deletion: what is reserved after it is another's.
        reserved = await self._reservations.read(name)
        for index in self._order(reserved):
            shard = self._shards[index]
            if await shard.delete(name, rev):
                if reserved is not None and index == self._places.of_tenant(reserved.tenant):
                    # If it stays, it is one without a schedule, which may be taken over.
                    with suppress(StoreUnavailable):
                        await self._reservations.release(reserved)
                return True
            if rev is not None and await shard.get(name) is not None:
                return False
        await self._places.require_schedule_found(name)
        return False

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
        return await ask_all(ask(shard) for shard in self._places.meant(self._shards, tenant))

    async def _found(self, name: str) -> tuple[ScheduleStore, StoredDocument] | None:
        for index in self._order(await self._reservations.read(name)):
            stored = await self._shards[index].get(name)
            if stored is not None:
                return self._shards[index], stored
        await self._places.require_schedule_found(name)
        return None

    def _order(self, reserved: ReservedName | None) -> Sequence[int]:
        if reserved is None:
            return range(self._places.count)
        return self._places.from_there(self._places.of_tenant(reserved.tenant))


def _by_name(pages: Sequence[Sequence[StoredDocument]]) -> list[StoredDocument]:
    return list(heapq.merge(*pages, key=itemgetter("_id")))


def _tenant_in(fields: Mapping[str, Any]) -> str | None:
    """The tenant that an edit gives, in either form that the stores take; None: it stays."""
    job = fields.get("job")
    tenant = job.get("tenant") if isinstance(job, Mapping) else fields.get("job.tenant")
    return None if tenant is None else str(tenant)
