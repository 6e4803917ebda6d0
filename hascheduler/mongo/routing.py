"""What a deployment of several shards keeps in the database of its home: the routing, and the names of schedules."""

from collections.abc import Mapping
from typing import Any

from pymongo.errors import DuplicateKeyError

from hascheduler.model.collection import Collection
from hascheduler.model.documents.routing import ROUTING_ID, decode_routing, encode_routing
from hascheduler.model.routing import Routing
from hascheduler.model.values.fields import identifier, integer, text
from hascheduler.model.values.instants import WallMs
from hascheduler.mongo.connection import Database
from hascheduler.mongo.faults import faults
from hascheduler.ports.sharding import ReservedName


class MongoRoutingStore:
    """`hascheduler.ports.sharding.RoutingStore`."""

    def __init__(self, database: Database) -> None:
        self._routing = database[Collection.ROUTING.value]

    async def get(self) -> Routing | None:
        with faults("read the routing"):
            found = await self._routing.find_one({"_id": ROUTING_ID})
        return None if found is None else decode_routing(found)

    async def create(self, routing: Routing) -> bool:
        with faults("create the routing"):
            try:
                await self._routing.insert_one(encode_routing(routing))
            except DuplicateKeyError:
                return False
        return True

    async def replace(self, epoch: int, routing: Routing) -> bool:
        with faults("change the routing"):
            done = await self._routing.replace_one({"_id": ROUTING_ID, "epoch": epoch}, encode_routing(routing))
        return done.matched_count == 1


class MongoNameStore:
    """`hascheduler.ports.sharding.NameStore`."""

    def __init__(self, database: Database) -> None:
        self._names = database[Collection.NAMES.value]

    async def get(self, name: str) -> ReservedName | None:
        with faults("read a reserved name"):
            found = await self._names.find_one({"_id": name})
        return None if found is None else _decoded(found)

    async def reserve(self, name: str, tenant: str, before: ReservedName | None, at_ms: WallMs) -> ReservedName | None:
        reserved = ReservedName(name, tenant, 1 if before is None else before.use + 1, at_ms)
        with faults("reserve a name"):
            if before is not None:
                done = await self._names.update_one({"_id": name, "use": before.use}, {"$set": _fields(reserved)})
                return reserved if done.matched_count else None
            try:
                await self._names.insert_one({"_id": name, **_fields(reserved)})
            except DuplicateKeyError:
                return None
        return reserved

    async def release(self, reserved: ReservedName) -> bool:
        with faults("release a name"):
            done = await self._names.delete_one({"_id": reserved.name, "use": reserved.use})
        return done.deleted_count == 1


def _fields(reserved: ReservedName) -> dict[str, Any]:
    return {"tenant": reserved.tenant, "use": reserved.use, "at_ms": reserved.at_ms}


def _decoded(stored: Mapping[str, Any]) -> ReservedName:
    """`InvalidInput` for one that was broken by hand."""
    return ReservedName(
        identifier(stored["_id"]), text(stored, "tenant"), integer(stored, "use"), WallMs(integer(stored, "at_ms"))
    )
