"""Schedules of all shards: each is in the shard of its tenant, and its name is unique in the deployment.

`reservations` says whose a name is, how that is kept, and which interleavings are covered. Here a schedule is found by
its reserved name, in that shard first. One without a reservation is looked for in all shards, as is one that the shard
of its reservation does not have.

A schedule stays in its slot: an edit that would give its jobs to a tenant of another one is refused.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from hascheduler.errors import CallerError, StoreUnavailable
from hascheduler.ports import Clock, ScheduleStore, StoredDocument
from hascheduler.ports.sharding import NameStore, ReservedName
from hascheduler.sharding.merging import Part, merged
from hascheduler.sharding.places import ShardPlaces
from hascheduler.sharding.reservations import Reservations, tenant_of
from hascheduler.sharding.shards import Shards

_TENANT_PATH = ("job", "tenant")


class ShardedScheduleStore:
    """`hascheduler.ports.ScheduleStore`."""

    def __init__(self, places: ShardPlaces, names: NameStore, stores: Sequence[ScheduleStore], clock: Clock) -> None:
        self._places = places
        self._shards = Shards(places, stores)
        self._reservations = Reservations(places, names, self._shards, clock)

    async def create(self, document: StoredDocument) -> StoredDocument | None:
        name, here = str(document["_id"]), self._places.of_tenant(tenant_of(document))
        reserved = await self._reservations.gain(name, tenant_of(document))
        if reserved is None:
            return None
        try:
            made = await self._shards.one(here, lambda store: store.create(document))
        except CallerError:
            # Nothing was written, and nobody has to wait for it.
            with suppress(StoreUnavailable):
                await self._reservations.release(reserved)
            raise
        if made is None:
            # Another request of this shard was first, perhaps for another tenant.
            met = await self._shards.one(here, lambda store: store.get(name))
            if met is not None:
                await self._reservations.give(met, reserved)
            return None
        if await self._reservations.confirm(reserved):
            return made
        await self._shards.one(here, lambda store: store.delete(name, document["rev"]))
        return None

    async def edit(self, name: str, rev: int, fields: Mapping[str, Any]) -> StoredDocument | None:
        """`InvalidInput` about the tenant where its jobs would be in another slot."""
        found = await self._found(name)
        if found is None:
            return None
        here, stored = found
        tenant = _tenant_in(fields)
        if tenant is not None and tenant != tenant_of(stored):
            if stored["rev"] != rev:
                return None
            self._places.require_one_slot(tenant_of(stored), tenant, _TENANT_PATH)
        edited = await self._shards.one(here, lambda store: store.edit(name, rev, fields))
        if edited is not None and tenant is not None:
            # A reservation for the tenant before tells the same shard: if it stays, nothing is found elsewhere.
            with suppress(StoreUnavailable):
                await self._reservations.give(edited, await self._reservations.read(name))
        return edited

    async def get(self, name: str) -> StoredDocument | None:
        found = await self._found(name)
        return None if found is None else found[1]

    async def list(
        self, after: str | None, limit: int, labels: Mapping[str, str] | None = None, *, tenant: str | None = None
    ) -> Sequence[StoredDocument]:
        if tenant is not None:
            here = self._places.of_tenant(tenant)
            return await self._shards.one(here, lambda store: store.list(after, limit, labels, tenant=tenant))
        return _first_by_name(await self._shards.all(lambda store: store.list(after, limit, labels)), limit)

    async def among(
        self, names: Sequence[str], labels: Mapping[str, str], limit: int, *, tenant: str | None = None
    ) -> Sequence[StoredDocument]:
        if tenant is not None:
            here = self._places.of_tenant(tenant)
            return await self._shards.one(here, lambda store: store.among(names, labels, limit, tenant=tenant))
        return _first_by_name(await self._shards.all(lambda store: store.among(names, labels, limit)), limit)

    async def names_among(
        self, names: Sequence[str], labels: Mapping[str, str], *, tenant: str | None = None
    ) -> Sequence[str]:
        if tenant is not None:
            here = self._places.of_tenant(tenant)
            return await self._shards.one(here, lambda store: store.names_among(names, labels, tenant=tenant))
        found = await self._shards.all(lambda store: store.names_among(names, labels))
        return list(dict.fromkeys(name for some in found for name in some))

    async def count(self, tenant: str, limit: int) -> int:
        return await self._shards.one(self._places.of_tenant(tenant), lambda store: store.count(tenant, limit))

    async def delete(self, name: str, rev: int | None = None) -> bool:
        # Read before the deletion: what is reserved after it is another's.
        reserved = await self._reservations.read(name)
        for index in self._order(reserved):
            if await self._shards.one(index, lambda store: store.delete(name, rev)):
                if reserved is not None and index == self._places.of_tenant(reserved.tenant):
                    # Without it, the reservation is left without a schedule, and may be taken over.
                    with suppress(StoreUnavailable):
                        await self._reservations.release(reserved)
                return True
            if rev is not None and await self._shards.one(index, lambda store: store.get(name)) is not None:
                return False
        return False

    async def _found(self, name: str) -> tuple[int, StoredDocument] | None:
        for index in self._order(await self._reservations.read(name)):
            stored = await self._shards.one(index, lambda store: store.get(name))
            if stored is not None:
                return index, stored
        return None

    def _order(self, reserved: ReservedName | None) -> Sequence[int]:
        if reserved is None:
            return range(self._places.count)
        return self._places.from_there(self._places.of_tenant(reserved.tenant))


def _tenant_in(fields: Mapping[str, Any]) -> str | None:
    """The tenant that an edit gives, whichever form the store takes it in; None: it stays."""
    job = fields.get("job")
    tenant = job.get("tenant") if isinstance(job, Mapping) else fields.get("job.tenant")
    return None if tenant is None else str(tenant)


def _first_by_name(found: Sequence[Sequence[StoredDocument]], limit: int) -> Sequence[StoredDocument]:
    parts = [Part([(str(schedule["_id"]), schedule) for schedule in some], None) for some in found]
    return merged(parts, limit).entries
