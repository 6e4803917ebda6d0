"""Stored holds."""

from collections.abc import Mapping
from contextlib import suppress

from pymongo.errors import DuplicateKeyError

from hascheduler.model.collection import Collection
from hascheduler.model.documents.hold import decode_hold, encode_hold, readable_holds
from hascheduler.model.hold import Hold
from hascheduler.mongo.connection import MAJORITY, Database
from hascheduler.mongo.faults import faults


class MongoHoldStore:
    """`hascheduler.ports.holds.HoldStore`."""

    def __init__(self, database: Database) -> None:
        self._holds = database[Collection.HOLDS.value].with_options(write_concern=MAJORITY)

    async def get(self, key: str) -> Hold | None:
        # A majority read, as the database is opened: it must not be rolled back.
        with faults("read a hold"):
            found = await self._holds.find_one({"_id": key})
        return None if found is None else decode_hold(key, found)

    async def all(self) -> Mapping[str, Hold]:
        with faults("read the holds"):
            return readable_holds(await self._holds.find().to_list(None))

    async def put(self, hold: Hold) -> bool:
        older = {"_id": hold.key, "$or": [{"rev": {"$lt": hold.rev}}, {"rev": {"$not": {"$type": "number"}}}]}
        with faults("put a hold"):
            for _ in range(2):  # the first may have met an older one that was just being inserted
                with suppress(DuplicateKeyError):
                    await self._holds.replace_one(older, encode_hold(hold), upsert=True)
                    return True
        return False
