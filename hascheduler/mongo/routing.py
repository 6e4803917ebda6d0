"""What a deployment of several shards keeps in the database of its home: the routing, and the names of schedules."""

from contextlib import suppress

from pymongo.errors import BulkWriteError, DuplicateKeyError

from hascheduler.errors import InvalidInput
from hascheduler.model.collection import Collection
from hascheduler.model.documents.routing import ROUTING_ID, decode_routing, encode_routing
from hascheduler.model.routing import Routing
from hascheduler.model.values.instants import WallMs
from hascheduler.mongo.connection import MAJORITY, Database
from hascheduler.mongo.faults import faults, local_faults
from hascheduler.ports.sharding import ReservedName, decode_reserved_name, encode_reserved_name, next_use

_NAMES_AT_ONCE = 1_000


class MongoRoutingStore:
    """`hascheduler.ports.sharding.RoutingStore`."""

    def __init__(self, database: Database) -> None:
        self._used = [database[collection.value] for collection in (Collection.JOBS, Collection.SCHEDULES)]
        self._schedules = database[Collection.SCHEDULES.value]
        self._names = database[Collection.NAMES.value].with_options(write_concern=MAJORITY)
        self._routing = database[Collection.ROUTING.value].with_options(write_concern=MAJORITY)

    async def get(self) -> Routing | None:
        with faults("read the routing"):
            found = await self._routing.find_one({"_id": ROUTING_ID})
        return None if found is None else decode_routing(found)

    async def is_unused(self) -> bool:
        with faults("look for jobs and schedules"):
            return all([await documents.find_one({}, {"_id": True}) is None for documents in self._used])

    async def reserve_names(self, at_ms: WallMs) -> None:
        found = self._schedules.find({}, {"job.tenant": True}, batch_size=_NAMES_AT_ONCE)
        while True:
            async with local_faults("read the names of schedules"):
                schedules = await found.to_list(_NAMES_AT_ONCE)
            reserved = [
                encode_reserved_name(next_use(schedule["_id"], schedule["job"]["tenant"], None, at_ms))
                for schedule in schedules
                if isinstance(schedule.get("job"), dict) and isinstance(schedule["job"].get("tenant"), str)
            ]
            # Those that are reserved already stay so.
            with faults("reserve the names of schedules"), suppress(BulkWriteError):
                if reserved:
                    await self._names.insert_many(reserved, ordered=False)
            if len(schedules) < _NAMES_AT_ONCE:
                return

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
        self._names = database[Collection.NAMES.value].with_options(write_concern=MAJORITY)

    async def get(self, name: str) -> ReservedName | None:
        # A majority read: what a reservation compares must not be rolled back. It may lag; the write decides.
        with faults("read a reserved name"):
            found = await self._names.find_one({"_id": name})
        with suppress(InvalidInput):
            return None if found is None else decode_reserved_name(found)
        return None

    async def reserve(self, name: str, tenant: str, before: ReservedName | None, at_ms: WallMs) -> ReservedName | None:
        reserved = next_use(name, tenant, before, at_ms)
        document = encode_reserved_name(reserved)
        with faults("reserve a name"):
            if before is not None:
                done = await self._names.replace_one(encode_reserved_name(before), document)
                return reserved if done.matched_count else None
            try:
                await self._names.insert_one(document)
            except DuplicateKeyError:
                found = await self._names.find_one({"_id": name})
                if found is not None:
                    decode_reserved_name(found)
                return None
        return reserved

    async def release(self, reserved: ReservedName) -> bool:
        with faults("release a name"):
            done = await self._names.delete_one(encode_reserved_name(reserved))
        return done.deleted_count == 1
