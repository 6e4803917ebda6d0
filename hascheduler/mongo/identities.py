"""Check that a database is the one that the deployment knows as a shard's.

Two replicas that disagreed about where a shard is would lead it twice. So each database gets a random identity once,
and the home remembers the identity of each shard. A copy of a database that people moved has its identity too.
"""

from pymongo.errors import DuplicateKeyError

from hascheduler.errors import InvalidInput, StoreUnavailable
from hascheduler.model.collection import Collection
from hascheduler.model.values.error_texts import quoted
from hascheduler.mongo.connection import MAJORITY, Database
from hascheduler.mongo.faults import faults

_OWN = "own"


async def require_own_database(home: Database, database: Database, shard: str, new_identity: str) -> None:
    """Raise `InvalidInput` if the home knows another database as that of ``shard``; let it remember the first one.

    ``new_identity`` is for a database that has none.
    """
    with faults("read the identity of a database"):
        known, here = await _identity(home, shard), await _identity(database, _OWN)
        if known is None:
            here = here or await _recorded(database, _OWN, new_identity)
            known = await _recorded(home, shard, here)
    _require_same(here, known, database, shard)


async def require_known_database(home: Database, database: Database, shard: str, *, new: bool = False) -> None:
    """Raise as `require_own_database`, without a write; `StoreUnavailable` if the home knows none, unless ``new``."""
    with faults("read the identity of a database"):
        known, here = await _identity(home, shard), await _identity(database, _OWN)
    if known is not None:
        _require_same(here, known, database, shard)
    elif not new:
        raise StoreUnavailable(
            f"no replica has reached the database of shard {shard} yet; the first one to do so creates it"
        )


def _require_same(here: str | None, known: str, database: Database, shard: str) -> None:
    if here != known:
        raise InvalidInput(
            ("HASCHEDULER_SHARD_MONGODB_URIS",),
            f"the database {quoted(database.name)} is not the one that shard {shard} has used so far",
            "the MongoDB that holds the shard's documents",
        )


async def _identity(database: Database, key: str) -> str | None:
    found = await database[Collection.IDENTITIES.value].find_one({"_id": key})
    return None if found is None else str(found.get("identity"))


async def _recorded(database: Database, key: str, identity: str) -> str:
    """Record ``identity`` under that key unless there is one, and return what is recorded."""
    identities = database[Collection.IDENTITIES.value].with_options(write_concern=MAJORITY)
    try:
        await identities.insert_one({"_id": key, "identity": identity})
    except DuplicateKeyError:
        return await _identity(database, key) or ""
    return identity
