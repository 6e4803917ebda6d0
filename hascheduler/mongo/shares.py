"""Caps over several shards: what each shard has of them in the home, and in its own database."""

from collections.abc import Mapping
from contextlib import suppress

from pymongo.errors import DuplicateKeyError

from hascheduler.model.collection import Collection
from hascheduler.model.documents.share import encode_share, encode_shared_cap
from hascheduler.model.share import Share, SharedCap
from hascheduler.mongo.connection import MAJORITY, Database
from hascheduler.mongo.faults import faults
from hascheduler.ports.sharding import StoredCaps, read_caps, read_shares


class MongoCapStore:
    """`hascheduler.ports.sharding.CapStore`."""

    def __init__(self, home: Database) -> None:
        self._caps = home[Collection.CAPS.value].with_options(write_concern=MAJORITY)

    async def all(self) -> StoredCaps:
        # A majority read, as the database is opened: it must not be rolled back. It may lag; a write decides.
        with faults("read the caps over all shards"):
            return read_caps(await self._caps.find().to_list(None))

    async def create(self, cap: SharedCap) -> bool:
        with faults("create a cap over all shards"):
            try:
                await self._caps.insert_one(encode_shared_cap(cap))
            except DuplicateKeyError:
                return False
        return True

    async def replace(self, rev: int, cap: SharedCap) -> bool:
        with faults("change a cap over all shards"):
            done = await self._caps.replace_one({"_id": cap.key, "rev": rev}, encode_shared_cap(cap))
        return done.matched_count == 1


class MongoShareStore:
    """`hascheduler.ports.sharding.ShareStore`."""

    def __init__(self, database: Database) -> None:
        self._shares = database[Collection.SHARES.value].with_options(write_concern=MAJORITY)

    async def all(self) -> Mapping[str, Share]:
        with faults("read the shares of a shard"):
            return read_shares(await self._shares.find().to_list(None))

    async def put(self, share: Share) -> bool:
        older = {"_id": share.key, "$or": [{"rev": {"$lt": share.rev}}, {"rev": {"$not": {"$type": "number"}}}]}
        with faults("change a share"):
            for _ in range(2):  # the first may have met an older one that was just being inserted
                with suppress(DuplicateKeyError):
                    await self._shares.replace_one(older, encode_share(share), upsert=True)
                    return True
        return False
