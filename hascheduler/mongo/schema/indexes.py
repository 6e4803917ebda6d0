"""The indexes of each collection, and what creates the collections and indexes that are missing.

Idempotent, and safe from several replicas at once. The collections are created explicitly because the stream takes a
dropped one for lost history, and a resync needs something to read. The server refuses an index whose name an index of
another shape has, and one whose shape an index of another name has: both are a `DatabaseUnfit` that names the two
indexes and the command that drops the existing one. Which of the two is right is for people to decide.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pymongo import ASCENDING, IndexModel
from pymongo.errors import OperationFailure

from hascheduler.errors import DatabaseUnfit
from hascheduler.model.collection import Collection
from hascheduler.mongo.connection import Database
from hascheduler.mongo.faults import faults

_REACH_LIMIT_S = 3.0
_BUILD_LIMIT_S = 60.0
_NAMESPACE_EXISTS = 48
_SHAPING = ("unique", "sparse", "partialFilterExpression", "expireAfterSeconds")
"""The options that make an index another one."""
INDEXES: Mapping[Collection, tuple[IndexModel, ...]] = {
    Collection.JOBS: (
        # The snapshot reads the live states; a list reads one state by id.
        IndexModel([("state", ASCENDING), ("_id", ASCENDING)], name="state"),
        IndexModel([("definition", ASCENDING), ("_id", ASCENDING)], name="definition"),
        # Without submitted jobs, which are most jobs of a busy deployment. The planner knows that an equality with a
        # name implies `$gt ""`.
        IndexModel(
            [("schedule", ASCENDING), ("_id", ASCENDING)],
            name="schedule",
            partialFilterExpression={"schedule": {"$gt": ""}},
        ),
        IndexModel([("target", ASCENDING), ("_id", ASCENDING)], name="target"),
        # The jobs of a tenant, by state; and which job holds an idempotency key.
        IndexModel([("tenant", ASCENDING), ("state", ASCENDING), ("_id", ASCENDING)], name="tenant"),
        IndexModel(
            [("tenant", ASCENDING), ("idempotency_key", ASCENDING)],
            name="idempotency_key",
            unique=True,
            partialFilterExpression={"idempotency_key": {"$gt": ""}},
        ),
        IndexModel(
            [("batch", ASCENDING), ("_id", ASCENDING)],
            name="batch",
            partialFilterExpression={"batch": {"$gt": ""}},
        ),
        # Sparse: a live job has no such field, so its writes do not touch this index.
        IndexModel([("expire_at", ASCENDING)], name="expire_at", expireAfterSeconds=0, sparse=True),
    ),
    Collection.SCHEDULES: (IndexModel([("job.tenant", ASCENDING), ("_id", ASCENDING)], name="tenant"),),
    Collection.TOKENS: (
        IndexModel([("id", ASCENDING)], name="id", unique=True),
        IndexModel([("tenant", ASCENDING), ("id", ASCENDING)], name="tenant"),
    ),
    Collection.AUDIT: (
        IndexModel([("tenant", ASCENDING), ("_id", ASCENDING)], name="tenant"),
        IndexModel([("expire_at", ASCENDING)], name="expire_at", expireAfterSeconds=0),
    ),
    Collection.BUCKETS: (IndexModel([("expire_at", ASCENDING)], name="expire_at", expireAfterSeconds=0),),
    Collection.VERDICTS: (IndexModel([("expire_at", ASCENDING)], name="expire_at", expireAfterSeconds=0),),
    Collection.REPLICAS: (IndexModel([("expire_at", ASCENDING)], name="expire_at", expireAfterSeconds=0),),
    Collection.PROCESSORS: (IndexModel([("expire_at", ASCENDING)], name="expire_at", expireAfterSeconds=0),),
}


async def reach(database: Database) -> None:
    """Returns if the primary answers and accepts our credentials; else raises `StoreUnavailable`."""
    with faults("reach the database", _REACH_LIMIT_S):
        await database.command("ping")


async def ensure_collections_and_indexes(database: Database) -> None:
    """Creates what is missing; `StoreUnavailable` when that was not possible."""
    await reach(database)
    with faults("create the collections and indexes", _BUILD_LIMIT_S):
        for collection in Collection:
            await create_collection(database, collection.value)
        for collection, models in INDEXES.items():
            # Quorum majority: a member that is down must not hold up the start of a replica.
            await database[collection.value].create_indexes(list(models), commitQuorum="majority")


async def create_collection(database: Database, name: str) -> None:
    """Does nothing if the collection exists."""
    command: dict[str, Any] = {"create": name, "writeConcern": {"w": "majority"}}
    try:
        await database.command(command)
    except OperationFailure as error:
        if error.code != _NAMESPACE_EXISTS:
            raise


def require_compatible(
    collection: Collection, models: Sequence[IndexModel], existing: Mapping[str, Mapping[str, Any]]
) -> None:
    """`DatabaseUnfit` if an existing index (``existing``, by name) prevents the creation of one of ``models``."""
    for model in models:
        wanted = _shape(model.document)
        for name, info in existing.items():
            if name == index_name(model) and _shape(info) != wanted:
                raise DatabaseUnfit(
                    f"the index {name!r} of {collection} is {_shown(_shape(info))}, and should be {_shown(wanted)};"
                    f' drop it once no process needs it: db.{collection}.dropIndex("{name}")'
                )
            if name != index_name(model) and _shape(info) == wanted:
                raise DatabaseUnfit(
                    f"the index {name!r} of {collection} is in the place of {index_name(model)!r};"
                    f' drop it: db.{collection}.dropIndex("{name}")'
                )


def index_name(model: IndexModel) -> str:
    return str(model.document["name"])


def _shape(index: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    options = {name: index[name] for name in _SHAPING if name in index and index[name] not in (None, False)}
    if index.get("expireAfterSeconds") is not None:
        options["expireAfterSeconds"] = index["expireAfterSeconds"]  # 0 is one, and equals False
    return list(dict(index["key"]).items()), options


def _shown(shape: tuple[list[Any], dict[str, Any]]) -> str:
    keys, options = shape
    return ", ".join([f"on {', '.join(name for name, _ in keys)}", *(f"{name} {options[name]}" for name in options)])
