"""`migrate` brings a database to what this release needs; each process starts with `require_readable` or `prepare`.

The protocol between releases is in `hascheduler.model.schema_version`. The steps, in this order::

    collections ─► indexes, one by one ─► superseded indexes, unless an older replica that uses them lives
                ─► do all live processes read the new version? ─► the version

Each step is checked on its own and changes nothing if it is done. So a killed migration continues where it stopped, and
several at once share the work. If a person has to decide, a `DatabaseUnfit` names what: before any change, a version
that this release does not read, or an index of another shape; before the last step, the processes that would not read
the new version. No earlier step does anything that the older release would notice.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from pymongo.errors import DuplicateKeyError, OperationFailure

from hascheduler.errors import DatabaseUnfit, InvalidInput
from hascheduler.model import schema_version
from hascheduler.model.collection import Collection
from hascheduler.model.schema_version import (
    SCHEMA_ID,
    UNSTATED_VERSION,
    Migration,
    MigrationStep,
    StepKind,
    decode_schema_version,
    why_unreadable,
)
from hascheduler.mongo.connection import MAJORITY, Database
from hascheduler.mongo.faults import EXCHANGE_LIMIT_S, faults
from hascheduler.mongo.replicas import REPLICA_KEPT_MS
from hascheduler.mongo.schema.indexes import (
    INDEXES,
    SUPERSEDED,
    create_collection,
    ensure_collections_and_indexes,
    index_name,
    reach,
    require_compatible,
)
from hascheduler.mongo.work.store import REGISTRATION_KEPT_MS

_UNAUTHORIZED = 13
_INDEX_NOT_FOUND = 27
_BUILD_LIMIT_S = 7 * 86_400.0
"""An index of a large collection takes long to build, and the operator who waits for it has asked for it."""
_REPORT_EVERY_S = 10.0
_LIVE_FOR_MS = 60_000

ReportStep = Callable[[str, MigrationStep, Mapping[str, Any]], None]
"""Reports progress: the event (``migrating``, ``still_migrating`` or ``migrated``), its step, and its fields."""


async def require_readable(database: Database) -> None:
    """Raise `DatabaseUnfit` if the database has a version that this release does not read."""
    await reach(database)
    await _readable_version(database)


async def prepare(database: Database) -> None:
    """Prepare the database for a replica's start: as `migrate`, but never raise the version."""
    await reach(database)
    await _missing(database)
    await ensure_collections_and_indexes(database)


async def migrate(database: Database, report: ReportStep, *, dry_run: bool = False) -> Migration:
    """Bring the database to what this release needs, or (``dry_run``) only list what is missing.

    Raise `DatabaseUnfit` if a person has to decide, or a right is missing. `StoreUnavailable` may be raised after some
    of the steps, and the next migration continues from there.
    """
    before = await _readable_version(database)
    steps = await _missing(database)
    superseded = await _superseded(database)
    is_complete = not superseded or not await _older_replicas(database)
    kept_because = "" if is_complete else "a replica of the older release uses them; run migrate again once it is gone"
    if is_complete:
        # Before the version, which is the last step.
        steps = sorted([*steps, *superseded], key=lambda step: step.kind is StepKind.VERSION)
    for step in list(steps):
        if step.kind is StepKind.VERSION:
            await _require_all_read_it(database)
        if not dry_run and not await _carry_out(step, database, report):
            kept_because = "this MongoDB user may not drop them; grant it dropIndex and run migrate again"
            steps.remove(step)
    after = UNSTATED_VERSION if before is None else before
    kept = [step for step in superseded if step not in steps]
    after = after if dry_run else max(after, schema_version.NEWEST_VERSION)
    return Migration(before, after, steps, kept, kept_because, is_complete)


async def _carry_out(step: MigrationStep, database: Database, report: ReportStep) -> bool:
    """Take the step; return False if a superseded index may not be dropped, which costs only speed."""
    match step.kind:
        case StepKind.COLLECTION:
            report("migrating", step, {})
            with _exchange(f"create the {step}"):
                await create_collection(database, step.name)
        case StepKind.INDEX:
            await _build(step, database, report)
        case StepKind.SUPERSEDED:
            collection, _, name = step.name.partition(".")
            with faults(f"drop the {step}"):
                try:
                    await database[collection].drop_index(name)
                except OperationFailure as error:
                    if error.code == _UNAUTHORIZED:
                        return False
                    if error.code != _INDEX_NOT_FOUND:  # another migration was first
                        raise
        case StepKind.VERSION:
            report("migrating", step, {})
            await _raise_version(database, int(step.name))
    report("migrated", step, {})
    return True


# Reads


async def _readable_version(database: Database) -> int | None:
    """Return the database's version, None if it has none; raise `DatabaseUnfit` if this release can't read it."""
    with _exchange("read the schema version"):
        document = await database[Collection.META.value].find_one({"_id": SCHEMA_ID})
    if document is None:
        return None
    try:
        version = decode_schema_version(document["_id"], document).version
    except InvalidInput as error:
        raise DatabaseUnfit(f"the schema version in {Collection.META}: {error}") from None
    problem = why_unreadable(version)
    if problem:
        raise DatabaseUnfit(problem)
    return version


async def _missing(database: Database) -> list[MigrationStep]:
    """Return the missing steps, in order; raise `DatabaseUnfit` if one of them is impossible."""
    version = await _readable_version(database)
    with _exchange("read the collections and indexes"):
        names = set(await database.list_collection_names())
        found = {name: await database[name].index_information() for name in sorted(names & set(Collection))}
    steps = [MigrationStep(StepKind.COLLECTION, name) for name in Collection if name not in names]
    for collection, models in INDEXES.items():
        existing = found.get(collection.value, {})
        require_compatible(collection, models, existing)
        missing = [name for name in map(index_name, models) if name not in existing]
        steps += [MigrationStep(StepKind.INDEX, f"{collection}.{name}") for name in missing]
    if version is None or version < schema_version.NEWEST_VERSION:
        steps.append(MigrationStep(StepKind.VERSION, str(schema_version.NEWEST_VERSION)))
    return steps


async def _superseded(database: Database) -> list[MigrationStep]:
    with _exchange("find the superseded indexes"):
        found = {collection: await database[collection.value].index_information() for collection in SUPERSEDED}
    return [
        MigrationStep(StepKind.SUPERSEDED, f"{collection}.{name}")
        for collection, names in SUPERSEDED.items()
        for name in names
        if name in found[collection]
    ]


async def _older_replicas(database: Database) -> bool:
    """Return True if there was a heartbeat within a minute of a replica that may use superseded indexes."""
    uses_them = {"$lt": [{"$ifNull": ["$indexes", 1]}, schema_version.INDEX_GENERATION]}
    query = {"$expr": {"$and": [_recently_alive(REPLICA_KEPT_MS), uses_them]}}
    with _exchange("read the heartbeats in replicas"):
        return await database[Collection.REPLICAS.value].find_one(query, {"_id": True}) is not None


def _recently_alive(kept_ms: int) -> dict[str, Any]:
    # By the server's clock, as the server lets the records expire.
    return {"$gt": ["$expire_at", {"$add": ["$$NOW", kept_ms - _LIVE_FOR_MS]}]}


async def _require_all_read_it(database: Database) -> None:
    """Raise `DatabaseUnfit` if a live process does not read the new version.

    A process that starts after this check refuses the new version, or learns of it through its stream.
    """
    behind: list[str] = []
    for collection, kept_ms in ((Collection.REPLICAS, REPLICA_KEPT_MS), (Collection.PROCESSORS, REGISTRATION_KEPT_MS)):
        reads_it = {"$gte": [{"$ifNull": ["$reads", UNSTATED_VERSION]}, schema_version.NEWEST_VERSION]}
        query = {"$expr": {"$and": [_recently_alive(kept_ms), {"$not": [reads_it]}]}}
        with _exchange(f"read the heartbeats in {collection}"):
            found = await database[collection.value].find(query, {"_id": True}).to_list(None)
        behind += [str(document["_id"]) for document in found]
    if behind:
        who = ", ".join(sorted(behind)[:5]) + (f" and {len(behind) - 5} more" if len(behind) > 5 else "")
        raise DatabaseUnfit(
            f"the schema version can't be raised to {schema_version.NEWEST_VERSION} yet: {who} can't read it; upgrade"
            " these processes first (one that has ended is forgotten after a minute)"
        )


# Writes


async def _build(step: MigrationStep, database: Database, report: ReportStep) -> None:
    collection, _, name = step.name.partition(".")
    [model] = [model for model in INDEXES[Collection(collection)] if index_name(model) == name]
    with _exchange("count the documents"):
        documents = await database[collection].estimated_document_count()
    report("migrating", step, {"documents": documents})
    with _exchange(f"build the {step}", _BUILD_LIMIT_S):
        # Quorum majority, as at the start of a replica: a member that is down holds up nothing.
        build = database[collection].create_indexes([model], commitQuorum="majority")
        await _reporting(build, lambda for_s: report("still_migrating", step, {"documents": documents, "for_s": for_s}))


async def _reporting(work: Coroutine[Any, Any, Any], report: Callable[[int], None]) -> None:
    """Run ``work`` to its end, and call ``report`` every `_REPORT_EVERY_S` with the seconds since its start."""
    began = asyncio.get_running_loop().time()
    task = asyncio.ensure_future(work)
    try:
        while not (await asyncio.wait([task], timeout=_REPORT_EVERY_S))[0]:
            report(int(asyncio.get_running_loop().time() - began))
    finally:
        task.cancel()
    task.result()


async def _raise_version(database: Database, version: int) -> None:
    meta = database[Collection.META.value].with_options(write_concern=MAJORITY)
    lower = {"_id": SCHEMA_ID, "version": {"$lt": version}}
    change = {"$set": {"version": version}, "$inc": {"rev": 1}, "$currentDate": {"raised_at": True}}
    # If the version is no longer lower, another migration was first, and the upsert collides with its document.
    with _exchange("raise the schema version"), suppress(DuplicateKeyError):
        await meta.update_one(lower, change, upsert=True)


@contextmanager
def _exchange(doing: str, limit_s: float = EXCHANGE_LIMIT_S) -> Iterator[None]:
    """Apply `faults`, but raise `DatabaseUnfit` for a missing right, as waiting does not help."""
    with faults(doing, limit_s):
        try:
            yield
        except OperationFailure as error:
            if error.code != _UNAUTHORIZED:
                raise
            raise DatabaseUnfit(f"{doing}: this MongoDB user is not authorized") from None
