"""Count jobs by state, with bounded work: exactly if an index holds the count, or if there are few documents to read.

::

    states, instants alone         count the index of the states, read no document
    an index with few candidates   read all of these, and count them by state: exact
    else, a state with few jobs    read those: exact
    the rest                       read the newest of the index that reaches back the furthest: at least this many
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pymongo import DESCENDING

from hascheduler.model.collection import Collection
from hascheduler.model.job import JobState
from hascheduler.mongo.connection import Database, awaited
from hascheduler.mongo.faults import faults
from hascheduler.mongo.jobs.lists import begin_few, job_ranges, most_ms
from hascheduler.mongo.queries import IndexRange, begins_with, job_query
from hascheduler.mongo.state_updates import BY_ID
from hascheduler.ports import JobCounts, JobSelection

EXAMINED_MAX = 10_000
"""How many documents are read at once; one count reads at most twice as many."""
_AT = "submitted_at_ms"
_BY_STATE = "state_submitted"


@dataclass(frozen=True, slots=True)
class _Some:
    """Documents along an index, newest first if it has an order: what they match, and what else must hold."""

    index: str
    match: Mapping[str, Any]
    rest: Mapping[str, Any]

    def pipeline(self, examined_max: int) -> list[dict[str, Any]]:
        order: dict[str, Any] = {"$sort": {_AT: DESCENDING, "_id": DESCENDING}}
        along = [{"$match": dict(self.match)}, *([] if self.index == BY_ID else [order]), {"$limit": examined_max}]
        return [*along, {"$match": dict(self.rest)}, {"$group": {"_id": "$state", "count": {"$sum": 1}}}]


class JobCounter:
    """The part of the job store that counts by state."""

    def __init__(self, database: Database, examined_max: int = EXAMINED_MAX) -> None:
        self._jobs = database[Collection.JOBS.value]
        self._examined_max = examined_max

    async def counts(self, which: JobSelection, limit: int) -> JobCounts:
        states = which.states or tuple(JobState)
        with faults("count the jobs"):
            if job_query(which.model_copy(update={"states": ()})).keys() <= {_AT}:
                counted = {state: await self._keys(which, state, limit + 1) for state in states}
                return _capped(counted, frozenset(), limit)
            few = await self._few(which)
            if few is not None:
                found = await self._read(few)
                return _capped({state: found.get(state.value, 0) for state in states}, frozenset(), limit)
            return await self._in_part(which, states, limit)

    async def _keys(self, which: JobSelection, state: JobState, limit: int) -> int:
        """Return how many keys the index of the states has for that state, in the time that ``which`` bounds."""
        query = {"state": state.value, **_instants(which)}
        return int(await self._jobs.count_documents(query, hint=_BY_STATE, limit=limit))

    async def _few(self, which: JobSelection) -> _Some | None:
        """Return an index range that holds all matching jobs and few others, if there is one."""
        every = job_query(which)
        if which.id_prefix is not None and await begin_few(self._jobs, which.id_prefix, self._examined_max):
            return _Some(BY_ID, {"_id": begins_with(which.id_prefix)}, every)
        for range in job_ranges(which.model_copy(update={"states": ()})):
            if await self._edge_ms(range, which) is None:
                return _along(range, which, every)
        return None

    async def _in_part(self, which: JobSelection, states: Sequence[JobState], limit: int) -> JobCounts:
        left, counted = self._examined_max, {}
        keys_of = {state: await self._keys(which, state, left + 1) for state in states}
        for state, keys in sorted(keys_of.items(), key=lambda one: one[1]):
            if keys <= left:
                left -= keys
                query = job_query(which.model_copy(update={"states": (state,)}))
                found = await self._read(_Some(_BY_STATE, {"state": state.value, **_instants(which)}, query))
                counted[state] = found.get(state.value, 0)
        others = [state for state in states if state not in counted]
        if others:
            ranges = job_ranges(which.model_copy(update={"states": ()}))
            edges = [(await self._edge_ms(range, which) or 0, place) for place, range in enumerate(ranges)]
            found = await self._read(_along(ranges[min(edges)[1]], which, job_query(which)))
            counted |= {state: found.get(state.value, 0) for state in others}
        return _capped(counted, frozenset(others), limit)

    async def _edge_ms(self, range: IndexRange, which: JobSelection) -> int | None:
        """Return None if the range has no more documents than may be read at once."""
        return await range.edge_ms(self._jobs, None, which.since_ms, most_ms(which), self._examined_max)

    async def _read(self, some: _Some) -> dict[str, int]:
        """Return how many match, by state as it is stored."""
        cursor = await awaited(self._jobs.aggregate(some.pipeline(self._examined_max), hint=some.index))
        return {str(row["_id"]): int(row["count"]) for row in await cursor.to_list(None)}


def _along(range: IndexRange, which: JobSelection, rest: Mapping[str, Any]) -> _Some:
    [part] = range.parts
    return _Some(range.index, {**part, **_instants(which)}, rest)


def _instants(which: JobSelection) -> dict[str, Any]:
    query = job_query(JobSelection(since_ms=which.since_ms, until_ms=which.until_ms))
    return {_AT: query[_AT]} if _AT in query else {}


def _capped(counted: Mapping[JobState, int], at_least: frozenset[JobState], limit: int) -> JobCounts:
    more = frozenset(state for state, count in counted.items() if count > limit)
    return JobCounts({state: min(count, limit) for state, count in counted.items()}, at_least | more)
