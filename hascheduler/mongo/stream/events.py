"""The pipeline of the change stream, the conversion of its events to `Change`, and the positions of events.

The server projects every event to the lean fields, so a payload never travels to a mirror::

    insert, replace                    PUT     (a pipeline update of a small document arrives as a replace)
    update                             PATCH, or no change if no lean field changed
    update of a part of a lean field   READ    the description lacks the whole field, so the document is read
    delete                             DELETE
    drop, rename, dropDatabase,        LOST    the stream ends without the deletes: read everything again
    invalidate

This project's code writes whole fields only; parts of fields change, and fields are removed, only by hand. Of the
journal only inserts become changes: entries never change, and no reader needs to know that they were trimmed.

A position is the cluster time of an event and its number among the events of that time. A write has a time of its own,
but the writes of a transaction share theirs, and so do documents inserted at once if the server replicates them as a
transaction. Their order is the same in every stream.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bson import Timestamp

from hascheduler.errors import HistoryLost
from hascheduler.mirror.changes import Change, Operation
from hascheduler.model.collection import Collection
from hascheduler.model.documents.lean_fields import LEAN_FIELDS, MIRRORED
from hascheduler.model.event import EVENTS_OF_A_CHANGE_MAX, number_of, position
from hascheduler.model.values.instants import from_datetime

_LOSSES = frozenset({"drop", "rename", "dropDatabase", "invalidate"})
_OF_ANY_COLLECTION = ["rename", "dropDatabase", "invalidate"]
"""A rename also concerns us if its target is one of our collections."""
_NESTED = [
    collection.value
    for collection in (
        Collection.SCHEDULES,
        Collection.PROCESSORS,
        Collection.DEFINITIONS,
        Collection.LANES,
        Collection.CALENDARS,
        Collection.TENANTS,
    )
]
"""The collections with nested lean fields that may be edited; a job's resources never change."""
_OF_DOCUMENTS = frozenset({"insert", "replace", "update", "delete"})
_PUT, _PATCH, _DELETE = Operation.PUT, Operation.PATCH, Operation.DELETE
_COLLECTIONS = {collection.value: (collection, frozenset(lean)) for collection, lean in LEAN_FIELDS.items()}


@dataclass(frozen=True, slots=True)
class Reread:
    """The description of the update lacks a whole field, so the document must be read."""

    collection: Collection
    id: object


def event_pipeline() -> list[dict[str, Any]]:
    """Return the ``$match`` and ``$project`` with which the stream is opened."""
    ours = [collection.value for collection in MIRRORED]
    fields = sorted({field for lean in LEAN_FIELDS.values() for field in lean})
    update = "updateDescription"
    touched = {"$map": {"input": {"$objectToArray": {"$ifNull": [f"${update}.updatedFields", {}]}}, "in": "$$this.k"}}
    return [
        # No finer filter: the server evaluates each condition for each event, at 4 us for a delivered event.
        {"$match": {"$or": [{"ns.coll": {"$in": ours}}, {"operationType": {"$in": _OF_ANY_COLLECTION}}]}},
        {
            "$project": {
                "operationType": True,
                "clusterTime": True,
                "wallTime": True,
                "ns.coll": True,
                "to.coll": True,
                "documentKey": True,
                f"{update}.removedFields": True,
                f"{update}.truncatedArrays": True,
                "touched": {"$cond": [{"$in": ["$ns.coll", _NESTED]}, touched, "$$REMOVE"]},
                **{f"fullDocument.{field}": True for field in fields},
                **{f"{update}.updatedFields.{field}": True for field in fields},
            }
        },
    ]


def change_of(event: Mapping[str, Any], position: str = "") -> Change | Reread | None:
    """Return ``event`` as a change with the lean fields of its collection; None if a mirror is not affected.

    Raise `HistoryLost` if the stream ends without the deletes.
    """
    operation = event["operationType"]
    if operation in _LOSSES:
        if operation == "rename" and not _is_ours(event):
            return None
        raise HistoryLost(f"follow the change stream: {operation} of a collection")
    collection, lean = _COLLECTIONS[event["ns"]["coll"]]
    if operation not in _OF_DOCUMENTS or (collection is Collection.JOURNAL and operation != "insert"):
        return None
    id = event["documentKey"]["_id"]
    at_ms = written_at_ms(event)
    if operation == "delete":
        return Change(collection, _DELETE, id, {}, position, at_ms)
    if operation != "update":
        return Change(collection, _PUT, id, _lean(event.get("fullDocument"), lean), position, at_ms)
    description = event.get("updateDescription") or {}
    if _part_of(lean, event, description):
        return Reread(collection, id)
    patch = _lean(description.get("updatedFields"), lean)
    return Change(collection, _PATCH, id, patch, position, at_ms) if patch else None


def written_at_ms(event: Mapping[str, Any]) -> int | None:
    """Return when the server took the write, by its clock; None from servers before 6.0."""
    at = event.get("wallTime")
    return from_datetime(at) if isinstance(at, datetime) else None


def position_after(last: str, moment: Timestamp | None) -> str:
    """Return the position of an event at ``moment`` that follows the one at ``last`` ("": the first event).

    An event without a time concerns no document, and keeps the position before it.
    """
    if moment is None:
        return last
    alone = position(moment.time, moment.inc)
    if not last.startswith(alone):
        return alone
    return position(moment.time, moment.inc, number_of(last) + EVENTS_OF_A_CHANGE_MAX)


def _is_ours(rename: Mapping[str, Any]) -> bool:
    return any(rename.get(side, {}).get("coll") in _COLLECTIONS for side in ("ns", "to"))


def _lean(fields: dict[str, Any] | None, lean: frozenset[str]) -> dict[str, Any]:
    if not fields or lean.issuperset(fields):  # nearly always: the server has projected them
        return fields or {}
    return {name: value for name, value in fields.items() if name in lean}


def _part_of(lean: frozenset[str], event: Mapping[str, Any], description: Mapping[str, Any]) -> bool:
    """Return True if the update removed a lean field, or changed one in part."""
    touched, removed = event.get("touched"), description.get("removedFields")
    truncated = description.get("truncatedArrays")
    if not (touched or removed or truncated):
        return False
    in_part = [path for path in touched or () if "." in path]
    in_part += removed or ()
    in_part += [array["field"] for array in truncated or ()]
    return any(path.split(".", 1)[0] in lean for path in in_part)
