"""The indexes of each collection, and the creation of missing collections and indexes.

Idempotent, and safe from several replicas at once. The collections are created explicitly because the stream takes a
dropped one for lost history, and a resync needs something to read. The server refuses an index if one of another shape
has its name, or one of another name has its shape: both raise `DatabaseUnfit`, which names the two indexes and the
command that drops the existing one. A person has to decide which of the two is right.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pymongo import ASCENDING, IndexModel
from pymongo.errors import OperationFailure

from hascheduler.errors import DatabaseUnfit
from hascheduler.model.collection import Collection
from hascheduler.mongo.connection import Database, awaited
from hascheduler.mongo.faults import faults
from hascheduler.mongo.queries import DEPENDS_ON
from hascheduler.mongo.unreachable import require_replica_set

_REACH_LIMIT_S = 2.0
_BUILD_LIMIT_S = 60.0
_NAMESPACE_EXISTS = 48
_SHAPING = ("unique", "sparse", "partialFilterExpression", "expireAfterSeconds")
"""The options that make an index a different one."""
_ORDER = [("submitted_at_ms", ASCENDING), ("_id", ASCENDING)]
"""The order in which jobs are listed, see `hascheduler.mongo.jobs.lists`."""


def _listed_by(attribute: str, *, where_given: bool = False) -> IndexModel:
    """Return the index for lists by that attribute; with ``where_given`` without jobs that lack it.

    The planner knows that an equality with a text implies `$gt ""`.
    """
    options = {"partialFilterExpression": {attribute: {"$gt": ""}}} if where_given else {}
    return IndexModel([(attribute, ASCENDING), *_ORDER], name=f"{attribute}_submitted", **options)


INDEXES: Mapping[Collection, tuple[IndexModel, ...]] = {
    # A move of a job touches only the index by state: the keys of the others never change.
    Collection.JOBS: (
        IndexModel(_ORDER, name="submitted"),
        # The snapshot reads the live states.
        _listed_by("state"),
        _listed_by("definition"),
        _listed_by("target"),
        _listed_by("tenant"),
        # Without submitted jobs, which are most jobs of a busy deployment.
        _listed_by("schedule", where_given=True),
        _listed_by("batch", where_given=True),
        # The job that holds an idempotency key.
        IndexModel(
            [("tenant", ASCENDING), ("idempotency_key", ASCENDING)],
            name="idempotency_key",
            unique=True,
            partialFilterExpression={"idempotency_key": {"$gt": ""}},
        ),
        # The job that holds a unique key; the key is a digest that covers tenant and definition.
        IndexModel(
            [("unique_key", ASCENDING)],
            name="unique_key",
            unique=True,
            partialFilterExpression={"unique_key": {"$gt": ""}},
        ),
        IndexModel([("depends_on", ASCENDING)], name=DEPENDS_ON, partialFilterExpression={"depends_on": {"$gt": ""}}),
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
    Collection.VERDICTS: (
        # The verdicts of all schedules, by when they were decided.
        IndexModel([("verdict", ASCENDING), ("decided_at_ms", ASCENDING), ("_id", ASCENDING)], name="verdict_decided"),
        IndexModel([("expire_at", ASCENDING)], name="expire_at", expireAfterSeconds=0),
    ),
    Collection.REPLICAS: (IndexModel([("expire_at", ASCENDING)], name="expire_at", expireAfterSeconds=0),),
    Collection.PROCESSORS: (IndexModel([("expire_at", ASCENDING)], name="expire_at", expireAfterSeconds=0),),
}

SUPERSEDED: Mapping[Collection, tuple[str, ...]] = {
    Collection.JOBS: ("state", "definition", "schedule", "target", "tenant", "batch"),
}
"""The indexes of 0.2.0, which listed jobs by id, that this release does not need.

`migrate` drops them once no replica of 0.2.0 is left: such a replica creates them at its start, and names one of them
in its queries.
"""


async def reach(database: Database) -> None:
    """Return if the primary answers and accepts our credentials; else raise `StoreUnavailable`.

    Raise `InvalidInput` if it is not a member of a replica set.
    """
    with faults("reach the database", _REACH_LIMIT_S):
        hello = await database.command("hello")
        address = await awaited(database.client.address)
    require_replica_set(hello, address)


async def ensure_collections_and_indexes(database: Database) -> None:
    """Create what is missing; raise `StoreUnavailable` if that was not possible."""
    await reach(database)
    with faults("create the collections and indexes", _BUILD_LIMIT_S):
        for collection in Collection:
            await create_collection(database, collection.value)
        for collection, models in INDEXES.items():
            # Quorum majority: a member that is down must not hold up the start of a replica.
            await database[collection.value].create_indexes(list(models), commitQuorum="majority")


async def create_collection(database: Database, name: str) -> None:
    """Create the collection unless it exists."""
    command: dict[str, Any] = {"create": name, "writeConcern": {"w": "majority"}}
    try:
        await database.command(command)
    except OperationFailure as error:
        if error.code != _NAMESPACE_EXISTS:
            raise


def require_compatible(
    collection: Collection, models: Sequence[IndexModel], existing: Mapping[str, Mapping[str, Any]]
) -> None:
    """Raise `DatabaseUnfit` if one of the ``existing`` indexes (by name) prevents the creation of one of ``models``."""
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
                    f"the index {name!r} of {collection} takes the place of {index_name(model)!r};"
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
