"""Filters that several stores share, and lists with the newest first, with bounded work for each page.

Each index of such a list has an attribute first, then an instant and ``_id``, the order of the list. So a page is read
along one index, and nothing is sorted::

    {"$or": [
        {attribute, instant: {$lt: …}},            each branch is one range of the index;
        {attribute, instant: …, _id: {$lt: …}},    the server merges them in their order
    ]}                                             other conditions are checked on each document read

If there are conditions that the index does not cover, a bounded number of documents may be read for one page. The
instant of the first one too many, the *edge*, is looked up first, in the index alone: the page ends there, full or not,
and the next one begins there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bson.regex import Regex
from pymongo import DESCENDING

from hascheduler.model.job import ScheduleId
from hascheduler.model.values.error_patterns import error_regex
from hascheduler.model.values.fields import is_integer
from hascheduler.model.values.instants import LATEST_MS, to_datetime
from hascheduler.ports import JobSelection, ListPosition, StoredDocument

DEPENDS_ON = "depends_on"
"""The name of the index that finds the jobs depending on a job. Most jobs have no dependencies and are not in it."""


def has_labels(labels: Mapping[str, str]) -> dict[str, Any]:
    """Return a ``$expr`` condition that a document has all of these labels.

    The key of a label may hold a dot, which a field name in a query may not.
    """
    return {
        "$and": [
            {"$eq": [{"$getField": {"field": {"$literal": key}, "input": "$labels"}}, {"$literal": value}]}
            for key, value in labels.items()
        ]
    }


def job_query(which: JobSelection) -> dict[str, Any]:
    states = [state.value for state in which.states]
    wanted = {
        "state": {"$in": states} if len(states) > 1 else next(iter(states), None),
        "definition": which.definition,
        "schedule": which.schedule,
        "tenant": which.tenant,
        "batch": which.batch,
        "target": which.target,
    }
    query: dict[str, Any] = {name: value for name, value in wanted.items() if value is not None}
    if which.tenant is None and which.not_of:
        query["tenant"] = {"$nin": sorted(which.not_of)}
    if which.made_by is not None:
        query |= {"schedule": which.made_by.name, **made_by(which.made_by)}
    if which.not_made_by:
        query["schedule"] = {"$nin": sorted(which.not_made_by), **({"$eq": which.schedule} if which.schedule else {})}
    if which.labels:
        query["$expr"] = has_labels(which.labels)
    between = {"$gte": which.since_ms, "$lt": which.until_ms}
    ended = {"$gte": which.failed_since_ms, "$lt": which.ended_before_ms}
    for name, bounds in (("submitted_at_ms", between), ("finished_at_ms", ended)):
        if any(bound is not None for bound in bounds.values()):
            query[name] = {operator: bound for operator, bound in bounds.items() if bound is not None}
    if which.error is not None:
        error = error_regex(which.error)
        query["error"] = {"$in": [Regex(error.pattern), *([None] if error.search("") else [])]}
    if which.kept_after_ms is not None:
        query["expire_at"] = {"$not": {"$lte": to_datetime(which.kept_after_ms)}}
    id: dict[str, Any] = {} if which.ids is None else {"$in": list(which.ids)}
    if which.id_prefix is not None:
        id |= begins_with(which.id_prefix)
    if id:
        query["_id"] = id
    return query


def begins_with(prefix: str) -> dict[str, str]:
    """Return a range of an index: texts are in the order of their code points, and U+10FFFF is the last."""
    return {"$gte": prefix, "$lt": f"{prefix}\U0010ffff"}


def made_by(schedule: ScheduleId) -> dict[str, Any]:
    """Return the filter that picks this schedule's jobs among all of its name (see `ScheduleId.is_same`)."""
    created = {"schedule_created_at_ms": schedule.created_at_ms}
    return {"$or": [created, {"schedule_created_at_ms": None, "tenant": schedule.tenant}]}


SCANNED_MAX = 10_000


@dataclass(frozen=True, slots=True)
class IndexRange:
    """A range of one index: a filter for each of its parts, ordered by the instant ``at``, and what else must hold."""

    index: str
    at: str
    parts: Sequence[Mapping[str, Any]]
    rest: Mapping[str, Any]

    def query(self, after: ListPosition | None, least_ms: int | None, most_ms: int | None) -> dict[str, Any] | None:
        """Return the filter for documents after that position within these inclusive bounds; None if none can match."""
        ranges = self.bounds(after, least_ms, most_ms)
        branches = [{**part, **one} for part in self.parts for one in ranges]
        if not branches:
            return None
        return dict(branches[0]) if len(branches) == 1 else {"$or": branches}

    def find(self, collection: Any, query: dict[str, Any], projection: Mapping[str, Any] | None = None) -> Any:
        """Return a cursor over the documents of ``query`` in this range, newest first."""
        return collection.find(query, projection).sort([(self.at, DESCENDING), ("_id", DESCENDING)]).hint(self.index)

    def matching(self, query: dict[str, Any]) -> dict[str, Any]:
        return {**query, "$and": [dict(self.rest)]} if self.rest else query

    async def edge_ms(
        self,
        collection: Any,
        after: ListPosition | None,
        least_ms: int | None,
        most_ms: int | None,
        scanned_max: int,
    ) -> int | None:
        """Return the instant at which a page has to end, exclusively; None if everything left may be read."""
        query = self.query(after, least_ms, most_ms)
        if query is None:
            return None
        found = self.find(collection, query, {self.at: True, "_id": False})
        beyond = await found.skip(scanned_max).limit(1).to_list(None)
        edge_ms = beyond[0].get(self.at) if beyond else None
        if not is_integer(edge_ms):
            return None
        if after is not None and edge_ms >= after.at_ms:
            # One millisecond has more than a page may read: read them all the same, or the list would not end.
            return after.at_ms - 1
        return edge_ms

    def position(self, document: StoredDocument) -> ListPosition | None:
        """Return the position after ``document``.

        If its instant was broken by hand, the document sorts among the first or the last.
        """
        at_ms = document.get(self.at)
        if is_integer(at_ms):
            return ListPosition(at_ms, str(document["_id"]))
        return None if at_ms is None else ListPosition(LATEST_MS)

    def bounds(
        self, after: ListPosition | None, least_ms: int | None = None, most_ms: int | None = None
    ) -> list[dict[str, Any]]:
        """Return conditions on the instant and ``_id``, any of which must hold; empty if no document can match."""
        of_one_instant: list[dict[str, Any]] = []
        if after is not None and (most_ms is None or after.at_ms <= most_ms):
            most_ms = after.at_ms
            if after.id is not None:
                if least_ms is None or most_ms >= least_ms:
                    of_one_instant = [{self.at: most_ms, "_id": {"$lt": after.id}}]
                most_ms -= 1
        if least_ms is not None and most_ms is not None and least_ms > most_ms:
            return of_one_instant
        bounds = {name: bound for name, bound in (("$lte", most_ms), ("$gte", least_ms)) if bound is not None}
        return [*of_one_instant, {self.at: bounds} if bounds else {}]
