"""Read the live documents for a mirror, projected to the lean fields, in slices.

While the caller works on one slice, the server already gathers the next: its part is some ten seconds of the time that
a million documents take.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from bson import MinKey
from pymongo import DESCENDING

from hascheduler.mirror.changes import Change, Operation, batch_read
from hascheduler.model.collection import Collection
from hascheduler.model.documents.leadership import JOURNAL_NAME
from hascheduler.model.documents.lean_fields import LEAN_FIELDS, MIRRORED
from hascheduler.model.job import LIVE, TERMINAL, JobState, is_batch
from hascheduler.mongo.connection import Database, awaited
from hascheduler.mongo.faults import end_exchange, faults, local_faults

SLICE_MAX = 1_000
_BATCHES_AT_ONCE = 20
"""Batches have up to a thousand jobs each."""
_TURNS_TO_SEND = 6
"""The driver sends a request within fewer turns of the loop."""

_LIVE_ONLY: Mapping[Collection, dict[str, Any]] = {
    Collection.JOBS: {"state": {"$in": sorted(state.value for state in LIVE)}},
}
_WAITS_FOR = "waits_for"
_FEW_DEPENDENCIES = 20
"""The most of a job in a whole slice: a thousand such jobs have no more than `_SMALL_SLICE_MAX` jobs with more."""
_SMALL_SLICE_MAX = 20


async def live_documents(database: Database, session: Any) -> AsyncGenerator[Sequence[Change], None]:
    """Yield every live document as a PUT, as ``session`` sees it: all but finished jobs and older journal entries."""
    yield await _newest_journal_entries(database, session)
    for collection in MIRRORED:
        if collection is Collection.JOURNAL:
            continue
        which, projection = _LIVE_ONLY.get(collection, {}), _slice_projection(collection)
        cursor = database[collection.value].find(which, projection, session=session, batch_size=SLICE_MAX)
        next_slice = asyncio.create_task(_next_slice(cursor, collection), name="snapshot: next slice")
        large: list[object] = []
        try:
            while documents := await next_slice:
                next_slice = asyncio.create_task(_next_slice(cursor, collection), name="snapshot: next slice")
                # The caller's work begins once the request is sent.
                for _ in range(_TURNS_TO_SEND):
                    await asyncio.sleep(0)
                if collection is Collection.JOBS:
                    large += [each["_id"] for each in documents if _has_many_dependencies(each)]
                    documents = [each for each in documents if not _has_many_dependencies(each)]
                yield [_put(collection, document) for document in documents]
        finally:
            await end_exchange(next_slice)
            await cursor.close()
        # Few at once: a start must take no more memory than the documents kept.
        for start in range(0, len(large), _SMALL_SLICE_MAX):
            some = {**which, "_id": {"$in": large[start : start + _SMALL_SLICE_MAX]}}
            with faults(f"read large {collection}"):
                found = database[collection.value].find(some, _projection(collection), session=session)
                documents = await found.to_list(None)
            yield [_put(collection, document) for document in documents]


def _slice_projection(collection: Collection) -> Mapping[str, Any]:
    """Return the lean fields, with only as many dependencies of a job as show that it has many."""
    fields: dict[str, Any] = dict.fromkeys(LEAN_FIELDS[collection], True)
    return fields | ({_WAITS_FOR: {"$slice": _FEW_DEPENDENCIES + 1}} if collection is Collection.JOBS else {})


def _has_many_dependencies(job: Mapping[str, Any]) -> bool:
    waits_for = job.get(_WAITS_FOR)
    return isinstance(waits_for, list) and len(waits_for) > _FEW_DEPENDENCIES


async def _next_slice(cursor: Any, collection: Collection) -> list[dict[str, Any]]:
    async with local_faults(f"read {collection}"):
        found: list[dict[str, Any]] = await cursor.to_list(SLICE_MAX)
    return found


async def present_documents(
    database: Database, session: Any, collection: Collection, ids: Sequence[object]
) -> list[Change]:
    """Return a PUT for each document that exists and a DELETE for each that does not, in the order of ``ids``.

    For the id of a batch among the jobs, return what the database has of it (`BatchSeen`).
    """
    batches = [id for id in ids if collection is Collection.JOBS and isinstance(id, str) and is_batch(id)]
    if batches:
        others = [id for id in ids if id not in batches]
        read = await _read_batches(database, session, batches)
        return read + (await present_documents(database, session, collection, others) if others else [])
    with faults(f"read some {collection}"):
        documents = await (
            database[collection.value]
            .find({"_id": {"$in": list(ids)}}, _projection(collection), session=session)
            .to_list(None)
        )
    found = [_put(collection, document) for document in documents]
    # By comparison, not by hash: an id written by hand may be an object.
    present = [change.id for change in found]
    return found + [Change(collection, Operation.DELETE, id, {}) for id in ids if id not in present]


async def _read_batches(database: Database, session: Any, batches: Sequence[str]) -> list[Change]:
    ended = {"$in": ["$state", sorted(state.value for state in TERMINAL)]}
    is_bad = {"$in": ["$state", [JobState.FAILED.value, JobState.CANCELLED.value]]}
    failed = {"$cond": [is_bad, ["$_id", "$state"], None]}
    found: dict[str, dict[str, Any]] = {}
    for start in range(0, len(batches), _BATCHES_AT_ONCE):
        some: list[dict[str, Any]] = [
            {"$match": {"batch": {"$in": batches[start : start + _BATCHES_AT_ONCE]}}},
            {"$group": {"_id": "$batch", "is_live": {"$max": {"$not": ended}}, "failed": {"$min": failed}}},
        ]
        with faults("read some batches"):
            cursor = await awaited(database[Collection.JOBS.value].aggregate(some, session=session))
            found.update((one["_id"], one) for one in await cursor.to_list(None))
    none = {"is_live": False, "failed": None}
    return [
        batch_read(batch, is_live=one["is_live"], failed=one["failed"] and tuple(one["failed"]))
        for batch in batches
        for one in [found.get(batch, none)]
    ]


async def _newest_journal_entries(database: Database, session: Any) -> list[Change]:
    """Return the newest entry of each journal, in one read each.

    The reads go from the last name to the first: each finds the newest entry below all entries of the name before.
    """
    journal = database[Collection.JOURNAL.value]
    newest: list[Change] = []
    # An object, so that the range holds objects only.
    below: dict[str, Any] = {"$gte": {}}
    while True:
        with faults("read the heads of the journal"):
            document = await journal.find_one(
                {"_id": below}, _projection(Collection.JOURNAL), sort=[("_id", DESCENDING)], session=session
            )
        if document is None:
            return newest
        id = document["_id"]
        newest.append(_put(Collection.JOURNAL, document))
        first_field = next(iter(id.items()), None)
        if first_field is None:
            return newest
        name, value = first_field
        below = {"$gte": {}, "$lt": {name: value, "seq": MinKey()} if name == JOURNAL_NAME else id}


def _projection(collection: Collection) -> list[str]:
    return list(LEAN_FIELDS[collection])


def _put(collection: Collection, document: dict[str, Any]) -> Change:
    """Return the document as a PUT, and take ownership of it."""
    return Change(collection, Operation.PUT, document.pop("_id"), document)
