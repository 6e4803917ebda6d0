"""What the home of several shards keeps: the routing, and the names of schedules."""

from contextlib import suppress

from hascheduler.errors import InvalidInput
from hascheduler.model.collection import Collection
from hascheduler.model.documents.routing import ROUTING_ID, decode_routing, encode_routing
from hascheduler.model.routing import Routing
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import StoredDocument
from hascheduler.ports.sharding import ReservedName, decode_reserved_name, encode_reserved_name, next_use
from hascheduler.testing.memory.connection import MemoryConnection


class MemoryRoutingStore:
    """`hascheduler.ports.sharding.RoutingStore`."""

    def __init__(self, connection: MemoryConnection) -> None:
        self._connection = connection

    async def get(self) -> Routing | None:
        async with self._connection.exchange("routing.get") as database:
            found = database.find(Collection.ROUTING, ROUTING_ID)
            return None if found is None else decode_routing(found)

    async def is_unused(self) -> bool:
        async with self._connection.exchange("routing.is_unused") as database:
            return not any(any(database.documents(used)) for used in (Collection.JOBS, Collection.SCHEDULES))

    async def create(self, routing: Routing) -> bool:
        async with self._connection.exchange("routing.create") as database:
            return database.insert(Collection.ROUTING, encode_routing(routing))

    async def replace(self, epoch: int, routing: Routing) -> bool:
        async with self._connection.exchange("routing.replace") as database:
            found = database.find(Collection.ROUTING, ROUTING_ID)
            if found is None or found["epoch"] != epoch:
                return False
            database.replace(Collection.ROUTING, encode_routing(routing))
            return True


class MemoryNameStore:
    """`hascheduler.ports.sharding.NameStore`."""

    def __init__(self, connection: MemoryConnection) -> None:
        self._connection = connection

    async def get(self, name: str) -> ReservedName | None:
        async with self._connection.exchange("names.get") as database:
            found = database.find(Collection.NAMES, name)
            with suppress(InvalidInput):
                return None if found is None else decode_reserved_name(found)
            return None

    async def reserve(self, name: str, tenant: str, before: ReservedName | None, at_ms: WallMs) -> ReservedName | None:
        async with self._connection.exchange("names.reserve") as database:
            found = database.find(Collection.NAMES, name)
            if (None if found is None else decode_reserved_name(found)) != before:
                return None
            reserved = next_use(name, tenant, before, at_ms)
            database.replace(Collection.NAMES, encode_reserved_name(reserved))
            return reserved

    async def release(self, reserved: ReservedName) -> bool:
        async with self._connection.exchange("names.release") as database:
            if database.find(Collection.NAMES, reserved.name) != encode_reserved_name(reserved):
                return False
            return database.delete(Collection.NAMES, reserved.name)


class MemoryCopyStore:
    """`hascheduler.ports.sharding.CopyStore`."""

    def __init__(self, connection: MemoryConnection) -> None:
        self._connection = connection

    async def get(self, collection: Collection, name: str) -> StoredDocument | None:
        async with self._connection.exchange("copies.get") as database:
            return database.find(collection, name)

    async def insert(self, collection: Collection, document: StoredDocument) -> bool:
        async with self._connection.exchange("copies.insert") as database:
            return database.insert(collection, document)

    async def replace(self, collection: Collection, before: StoredDocument, document: StoredDocument) -> bool:
        async with self._connection.exchange("copies.replace") as database:
            if not _is_still(database.find(collection, before["_id"]), before):
                return False
            database.replace(collection, document)
            return True

    async def delete(self, collection: Collection, before: StoredDocument) -> bool:
        async with self._connection.exchange("copies.delete") as database:
            return _is_still(database.find(collection, before["_id"]), before) and database.delete(
                collection, before["_id"]
            )


def _is_still(found: StoredDocument | None, before: StoredDocument) -> bool:
    return found is not None and found.get("rev") == before.get("rev")
