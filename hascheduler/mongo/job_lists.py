"""Lists jobs, the newest by submission first, along an index: see `hascheduler.mongo.newest_first`.

Of several indexes the one is read whose range is short enough to be read whole, or else that reaches back the furthest.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from hascheduler.model.collection import Collection
from hascheduler.mongo.connection import Database
from hascheduler.mongo.faults import faults
from hascheduler.mongo.newest_first import SCANNED_MAX, IndexRange
from hascheduler.mongo.queries import job_query
from hascheduler.ports import JobPage, JobSelection, ListPosition

_NOT_LISTED = {"payload": False, "result": False, "attempts": False, "late_results": False}
_AT = "submitted_at_ms"
_INDEXED = ("batch", "target", "schedule", "state", "tenant", "definition")
"""The attributes with an index of their own, ``<attribute>_submitted``; the one that most often tells most first."""


class JobLists:
    """The part of the job store that lists; a page meets at most ``scanned_max`` jobs that do not match."""

    def __init__(self, database: Database, scanned_max: int = SCANNED_MAX) -> None:
        self._jobs = database[Collection.JOBS.value]
        self._scanned_max = scanned_max

    async def page(self, which: JobSelection, after: ListPosition | None, limit: int) -> JobPage:
        with faults("list the jobs"):
            range, edge_ms = await self._chosen(which, after)
            query = range.query(after, which.since_ms if edge_ms is None else edge_ms + 1, _most_ms(which))
            if query is None:
                documents = []
            else:
                found = range.find(self._jobs, range.matching(query), _NOT_LISTED)
                documents = await found.limit(limit + 1).to_list(None)
        if len(documents) > limit:
            return JobPage(documents[:limit], range.position(documents[limit - 1]))
        return JobPage(documents, None if edge_ms is None else ListPosition(edge_ms))

    async def _chosen(self, which: JobSelection, after: ListPosition | None) -> tuple[IndexRange, int | None]:
        """What to read, and the instant at which to end, exclusively; None: read all of it."""
        ranges = job_ranges(which)
        if not ranges[0].rest:
            return ranges[0], None
        edges: list[tuple[int, int]] = []
        for place, range in enumerate(ranges):
            edge_ms = await range.edge_ms(self._jobs, after, which.since_ms, _most_ms(which), self._scanned_max)
            if edge_ms is None:
                return range, None
            edges.append((edge_ms, place))
        edge_ms, place = min(edges)
        return ranges[place], edge_ms


def job_ranges(which: JobSelection) -> Sequence[IndexRange]:
    """All ways to find what ``which`` selects, one at least."""
    query = {name: value for name, value in job_query(which).items() if name != _AT}
    ranges = [_range(name, query) for name in _INDEXED if name in query]
    return ranges or [IndexRange("submitted", _AT, [{}], query)]


def _range(name: str, query: Mapping[str, Any]) -> IndexRange:
    wanted = query[name]
    values = wanted["$in"] if isinstance(wanted, Mapping) else [wanted]
    rest = {other: value for other, value in query.items() if other != name}
    return IndexRange(f"{name}_submitted", _AT, [{name: value} for value in values], rest)


def _most_ms(which: JobSelection) -> int | None:
    return None if which.before_ms is None else which.before_ms - 1
