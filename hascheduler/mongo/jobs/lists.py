"""List jobs, newest submission first, along an index: see `hascheduler.mongo.queries`.

Among several indexes it reads the one whose range is short enough to be read whole, or else the one that reaches back
the furthest. The ids have another order than the list. So if few ids begin with the prefix, those jobs are read and
sorted; if many do, the list is read as usual, and each job's id is checked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pymongo import DESCENDING

from hascheduler.model.collection import Collection
from hascheduler.model.job import JobState, schedule_of
from hascheduler.model.values.error_patterns import ERROR_BEGINNING_MAX
from hascheduler.mongo.connection import Database
from hascheduler.mongo.faults import faults
from hascheduler.mongo.queries import SCANNED_MAX, IndexRange, begins_with, job_query
from hascheduler.mongo.state_updates import BY_ID
from hascheduler.ports import (
    FAILED_FIELDS,
    FailedJobs,
    JobPage,
    JobSelection,
    ListPosition,
    failed_job_of,
)

_AT_ONCE = 1_000
"""How many failed jobs are decoded in one turn of the event loop."""
_ERROR_BEGINNING = {
    "$substrCP": [{"$cond": [{"$eq": [{"$type": "$error"}, "string"]}, "$error", ""]}, 0, ERROR_BEGINNING_MAX]
}
_NOT_LISTED = {"payload": False, "result": False, "attempts": False, "late_results": False}
_AT = "submitted_at_ms"
_INDEXED = ("batch", "target", "schedule", "state", "tenant", "definition")
"""The attributes with an index of their own, ``<attribute>_submitted``; the usually most selective one first."""
_SUBMITTED = IndexRange("submitted", _AT, [{}], {})


class JobLists:
    """The part of the job store that lists; a page reads at most ``scanned_max`` jobs that do not match."""

    def __init__(self, database: Database, scanned_max: int = SCANNED_MAX) -> None:
        self._jobs = database[Collection.JOBS.value]
        self._scanned_max = scanned_max

    async def page(self, which: JobSelection, after: ListPosition | None, limit: int) -> JobPage:
        with faults("list the jobs"):
            found, place, edge_ms = await self._found(which, after, limit + 1, _NOT_LISTED)
            documents = [] if found is None else await found.to_list(None)
        if len(documents) > limit:
            return JobPage(documents[:limit], place.position(documents[limit - 1]))
        return JobPage(documents, None if edge_ms is None else ListPosition(edge_ms))

    async def failed(self, which: JobSelection, limit: int) -> FailedJobs:
        projection = {"error": _ERROR_BEGINNING, **dict.fromkeys(FAILED_FIELDS, True)}
        jobs = []
        with faults("read the failed jobs"):
            found, _, edge_ms = await self._found(
                which.model_copy(update={"states": (JobState.FAILED,)}), None, limit + 1, projection
            )
            if found is not None:
                cursor = found.batch_size(_AT_ONCE)
                try:
                    while documents := await cursor.to_list(_AT_ONCE):
                        jobs += [failed_job_of(job, str(job.get("error") or "")) for job in documents]
                finally:
                    await cursor.close()
        return FailedJobs(jobs[:limit], complete=edge_ms is None and len(jobs) <= limit)

    async def _found(
        self, which: JobSelection, after: ListPosition | None, limit: int, projection: Mapping[str, Any]
    ) -> tuple[Any | None, IndexRange, int | None]:
        """Return a cursor (None: nothing can match), the range that gives positions, and the instant to continue at."""
        if which.id_prefix is not None and await begin_few(self._jobs, which.id_prefix, self._scanned_max):
            of_ids = job_query(which)
            if after is not None:
                of_ids["$and"] = [{"$or": _SUBMITTED.bounds(after)}]
            order = [(_AT, DESCENDING), ("_id", DESCENDING)]
            return self._jobs.find(of_ids, projection).hint(BY_ID).sort(order).limit(limit), _SUBMITTED, None
        range, edge_ms = await self._chosen(which, after)
        query = range.query(after, which.since_ms if edge_ms is None else edge_ms + 1, most_ms(which))
        if query is None:
            return None, range, edge_ms
        return range.find(self._jobs, range.matching(query), projection).limit(limit), range, edge_ms

    async def _chosen(self, which: JobSelection, after: ListPosition | None) -> tuple[IndexRange, int | None]:
        """Return the range to read, and the instant at which to end, exclusively; None to read all of it."""
        ranges = job_ranges(which)
        if not ranges[0].rest:
            return ranges[0], None
        edges: list[tuple[int, int]] = []
        for place, range in enumerate(ranges):
            edge_ms = await range.edge_ms(self._jobs, after, which.since_ms, most_ms(which), self._scanned_max)
            if edge_ms is None:
                return range, None
            edges.append((edge_ms, place))
        edge_ms, place = min(edges)
        return ranges[place], edge_ms


async def begin_few(jobs: Any, prefix: str, few_max: int) -> bool:
    """Return True if at most ``few_max`` ids begin with ``prefix``, by the index of the ids alone."""
    ids = jobs.find({"_id": begins_with(prefix)}, {"_id": True}).hint(BY_ID)
    return not await ids.skip(few_max).limit(1).to_list(None)


def job_ranges(which: JobSelection) -> Sequence[IndexRange]:
    """Return all ways to find the jobs that ``which`` selects, at least one."""
    query = {name: value for name, value in job_query(which).items() if name != _AT}
    # The ids of a schedule's jobs begin with its name.
    schedule = None if which.id_prefix is None else schedule_of(f"{which.id_prefix}0")
    if schedule is not None:
        query.setdefault("schedule", schedule)
    ranges = [_range(name, query) for name in _INDEXED if name in query]
    return ranges or [replace(_SUBMITTED, rest=query)]


def _range(name: str, query: Mapping[str, Any]) -> IndexRange:
    wanted = query[name]
    values = wanted["$in"] if isinstance(wanted, Mapping) else [wanted]
    rest = {other: value for other, value in query.items() if other != name}
    return IndexRange(f"{name}_submitted", _AT, [{name: value} for value in values], rest)


def most_ms(which: JobSelection) -> int | None:
    """Return the last instant that ``which`` allows; None if any."""
    return None if which.until_ms is None else which.until_ms - 1
