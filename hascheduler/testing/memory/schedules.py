"""Schedules as the API writes them."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from hascheduler.model.collection import Collection
from hascheduler.ports import StoredDocument
from hascheduler.testing.memory.connection import MemoryConnection
from hascheduler.testing.memory.storable import stored_form


class MemoryScheduleStore:
    """`hascheduler.ports.ScheduleStore`."""

    def __init__(self, connection: MemoryConnection) -> None:
        self._connection = connection

    async def create(self, document: StoredDocument) -> StoredDocument | None:
        async with self._connection.exchange("schedules.create") as database:
            stored = stored_form(document)
            return stored if database.insert(Collection.SCHEDULES, stored) else None

    async def edit(self, name: str, rev: int, fields: Mapping[str, Any]) -> StoredDocument | None:
        async with self._connection.exchange("schedules.edit") as database:
            stored = database.find(Collection.SCHEDULES, name)
            if stored is None or stored.get("rev") != rev:
                return None
            return deepcopy(database.update(Collection.SCHEDULES, stored, {**fields, "rev": rev + 1}))

    async def get(self, name: str) -> StoredDocument | None:
        async with self._connection.exchange("schedules.get") as database:
            return deepcopy(database.find(Collection.SCHEDULES, name))

    async def list(
        self, after: str | None, limit: int, labels: Mapping[str, str] | None = None, *, tenant: str | None = None
    ) -> Sequence[StoredDocument]:
        def matches(schedule: StoredDocument) -> bool:
            return _matches(schedule, labels or {}, tenant)

        async with self._connection.exchange("schedules.list") as database:
            return deepcopy(database.page(Collection.SCHEDULES, after, limit, which=matches))

    async def among(
        self, names: Sequence[str], labels: Mapping[str, str], limit: int, *, tenant: str | None = None
    ) -> Sequence[StoredDocument]:
        async with self._connection.exchange("schedules.among") as database:
            found = (database.find(Collection.SCHEDULES, name) for name in sorted(set(names)))
            matching = [one for one in found if one is not None and _matches(one, labels, tenant)]
            return deepcopy(matching[:limit])

    async def names_among(
        self, names: Sequence[str], labels: Mapping[str, str], *, tenant: str | None = None
    ) -> Sequence[str]:
        async with self._connection.exchange("schedules.names_among") as database:
            found = (database.find(Collection.SCHEDULES, name) for name in set(names))
            return [str(one["_id"]) for one in found if one is not None and _matches(one, labels, tenant)]

    async def count(self, tenant: str, limit: int) -> int:
        async with self._connection.exchange("schedules.count") as database:
            tenants = [schedule["job"]["tenant"] for schedule in database.documents(Collection.SCHEDULES)]
            return min(tenants.count(tenant), limit)

    async def delete(self, name: str, rev: int | None = None) -> bool:
        async with self._connection.exchange("schedules.delete") as database:
            stored = database.find(Collection.SCHEDULES, name)
            if stored is None or rev not in (None, stored.get("rev")):
                return False
            return database.delete(Collection.SCHEDULES, name)


def _matches(schedule: StoredDocument, labels: Mapping[str, str], tenant: str | None) -> bool:
    if tenant is not None and schedule["job"]["tenant"] != tenant:
        return False
    return bool(labels.items() <= schedule["labels"].items())
