"""Goes through all jobs or schedules that match, in an order that the changes made on the way do not disturb.

Jobs are read along an index by (submitted_at_ms, _id), the oldest first; `hascheduler.mongo.jobs.lists` reads it
backwards. Of several indexes the store takes the one that it can read to its end, or else the one that brings a slice
the furthest. So a slice meets a bounded number of jobs that do not match, and each job is met once. Where few ids have
the wanted beginning, those jobs are read and sorted, as for a list. Schedules are read by name.
"""

import re
from dataclasses import replace
from typing import Any

from pymongo import ASCENDING

from hascheduler.model.collection import Collection
from hascheduler.mongo.connection import Database
from hascheduler.mongo.faults import faults
from hascheduler.mongo.jobs.lists import SUBMITTED, begin_few, job_ranges, rest_of
from hascheduler.mongo.newest_first import SCANNED_MAX, IndexRange
from hascheduler.mongo.queries import has_labels
from hascheduler.mongo.state_updates import BY_ID
from hascheduler.ports import JobSelection, JobSlice, ListPosition, MatchingSchedules, ScheduleSlice

_BY_NAME = [("_id", ASCENDING)]
_COUNT_LIMIT_S = 10.0


class MongoMatchStore:
    """`hascheduler.ports.MatchStore`; a slice meets at most ``scanned_max`` jobs or schedules that do not match."""

    def __init__(self, database: Database, scanned_max: int = SCANNED_MAX) -> None:
        self._jobs = database[Collection.JOBS.value]
        self._schedules = database[Collection.SCHEDULES.value]
        self._scanned_max = scanned_max

    async def jobs(self, which: JobSelection, after: ListPosition | None, limit: int) -> JobSlice:
        with faults("look for jobs"):
            if which.id_prefix is not None and await begin_few(self._jobs, which.id_prefix, self._scanned_max):
                range, edge_ms = replace(SUBMITTED, rest=rest_of(which)), None
                index = BY_ID
            else:
                range, edge_ms = await self._chosen(which, after)
                index = range.index
            query = _query(range, which, after, edge_ms)
            asked = {**query, "$and": [dict(range.rest)]} if range.rest else query
            found = await self._along(range, asked, index).limit(limit + 1).to_list(None)
        places = [ListPosition(job[range.at], str(job["_id"])) for job in found[:limit]]
        if len(found) > limit:
            return JobSlice(places, places[-1])
        return JobSlice(places, None if edge_ms is None else ListPosition(edge_ms + 1))

    async def _chosen(self, which: JobSelection, after: ListPosition | None) -> tuple[IndexRange, int | None]:
        """What to read, and the instant at which to end, inclusively; None: read all of it."""
        ranges = job_ranges(which)
        if not ranges[0].rest:
            return ranges[0], None
        edges: list[tuple[int, IndexRange]] = []
        for range in ranges:
            query = _query(range, which, after, None)
            beyond = await self._along(range, query, range.index).skip(self._scanned_max).limit(1).to_list(None)
            if not beyond:
                return range, None
            edges.append((beyond[0][range.at], range))
        edge_ms, range = max(edges, key=lambda edge: edge[0])
        return range, edge_ms

    def _along(self, range: IndexRange, query: dict[str, Any], index: str) -> Any:
        order = [(range.at, ASCENDING), ("_id", ASCENDING)]
        return self._jobs.find(query, {range.at: True}).sort(order).hint(index)

    async def schedules(self, which: MatchingSchedules, after: str | None, limit: int) -> ScheduleSlice:
        bounds: dict[str, Any] = {} if after is None else {"$gt": after}
        if which.names is not None:
            bounds["$in"] = list(which.names)
        among: dict[str, Any] = {"_id": bounds} if bounds else {}
        if which.tenant is not None:
            among["job.tenant"] = which.tenant
        with faults("look for schedules"):
            names = self._schedules.find(among, {"_id": True}).sort(_BY_NAME)
            edges = await names.skip(self._scanned_max).limit(1).to_list(None)
            conditions = [among, _schedule_query(which)]
            if edges:
                conditions.append({"_id": {"$lte": edges[0]["_id"]}})
            matching = self._schedules.find({"$and": conditions}, {"_id": True}).sort(_BY_NAME)
            found = [str(one["_id"]) for one in await matching.limit(limit + 1).to_list(None)]
        if len(found) > limit:
            return ScheduleSlice(found[:limit], found[limit - 1])
        return ScheduleSlice(found, str(edges[0]["_id"]) if edges else None)

    async def count_schedules(self, which: MatchingSchedules, limit: int) -> int:
        with faults("count the schedules", _COUNT_LIMIT_S):
            return await self._schedules.count_documents(_schedule_query(which), limit=limit)


def _query(range: IndexRange, which: JobSelection, after: ListPosition | None, edge_ms: int | None) -> dict[str, Any]:
    """What is left of the range, up to the edge, inclusively."""
    most = [bound for bound in (None if which.before_ms is None else which.before_ms - 1, edge_ms) if bound is not None]
    until = {"$lte": min(most)} if most else {}
    left: list[dict[str, Any]]
    if after is None:
        # A number: a job whose instant was broken by hand has no place in this order.
        left = [{range.at: {"$gte": which.since_ms or 0, **until}}]
    elif after.id is None:
        left = [{range.at: {"$gte": after.at_ms, **until}}]
    else:
        left = [{range.at: after.at_ms, "_id": {"$gt": after.id}}, {range.at: {"$gt": after.at_ms, **until}}]
    branches = [{**part, **one} for part in range.parts for one in left]
    return branches[0] if len(branches) == 1 else {"$or": branches}


def _schedule_query(which: MatchingSchedules) -> dict[str, Any]:
    query: dict[str, Any] = {}
    if which.text is not None:
        query["_id"] = {"$regex": re.escape(which.text), "$options": "i"}
    if which.names is not None:
        query["_id"] = {**query.get("_id", {}), "$in": list(which.names)}
    if which.tenant is not None:
        query["job.tenant"] = which.tenant
    if which.paused is not None:
        query["paused_at_ms"] = {"$ne": None} if which.paused else None
    if which.labels:
        query["$expr"] = has_labels(which.labels)
    return query
