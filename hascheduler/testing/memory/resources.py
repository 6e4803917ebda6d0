"""Definitions, lanes and tenants as the API writes them."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any, Generic, TypeVar

from hascheduler.model.collection import Collection
from hascheduler.ports import StoredDocument
from hascheduler.testing.memory.connection import MemoryConnection

Resource = TypeVar("Resource")


class MemoryResourceStore(Generic[Resource]):
    """`hascheduler.ports.ResourceStore`. ``encode`` gives a resource's document, whose ``_id`` is its name."""

    def __init__(
        self, connection: MemoryConnection, collection: Collection, encode: Callable[[Resource], dict[str, Any]]
    ) -> None:
        self._connection = connection
        self._collection = collection
        self._encode = encode

    async def create(self, resource: Resource) -> StoredDocument | None:
        async with self._connection.exchange(f"{self._collection}.create") as database:
            document = self._encode(resource) | {"rev": 1}
            return document if database.insert(self._collection, document) else None

    async def put(self, resource: Resource) -> tuple[StoredDocument, bool]:
        async with self._connection.exchange(f"{self._collection}.put") as database:
            fields = self._encode(resource)
            stored = database.find(self._collection, fields["_id"])
            document = fields | {"rev": 1 if stored is None else stored["rev"] + 1}
            if stored is None:
                database.insert(self._collection, document)
                return document, True
            return deepcopy(database.update(self._collection, stored, document)), False

    async def replace(self, resource: Resource, rev: int) -> StoredDocument | None:
        async with self._connection.exchange(f"{self._collection}.replace") as database:
            fields = self._encode(resource) | {"rev": rev + 1}
            stored = database.find(self._collection, fields["_id"])
            if stored is None or stored["rev"] != rev:
                return None
            return deepcopy(database.update(self._collection, stored, fields))

    async def get(self, name: str) -> StoredDocument | None:
        async with self._connection.exchange(f"{self._collection}.get") as database:
            return deepcopy(database.find(self._collection, name))

    async def list(self, after: str | None, limit: int) -> Sequence[StoredDocument]:
        async with self._connection.exchange(f"{self._collection}.list") as database:
            return deepcopy(database.page(self._collection, after, limit))

    async def delete(self, name: str, rev: int | None = None) -> bool:
        async with self._connection.exchange(f"{self._collection}.delete") as database:
            stored = database.find(self._collection, name)
            if stored is None or rev not in (None, stored["rev"]):
                return False
            return database.delete(self._collection, name)
