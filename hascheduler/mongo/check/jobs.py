"""Read the live jobs for the check, by state, and the jobs of unknown states."""

from collections.abc import AsyncIterator
from collections.abc import Collection as SomeOf
from contextlib import aclosing
from typing import Any

from pymongo import ASCENDING

from hascheduler.check.documents import decode_or_finding
from hascheduler.check.finding import Finding, FindingKind, Report, short_id
from hascheduler.check.jobs import CheckContext, EndedJob, OccupiedSlots, check_dependent, check_job, check_wait
from hascheduler.model.collection import Collection
from hascheduler.model.documents.lean_fields import LEAN_FIELDS
from hascheduler.model.job import OCCUPYING, TERMINAL, JobRef, JobState, is_batch
from hascheduler.model.values.fields import is_integer
from hascheduler.mongo.check.context import ScanPace
from hascheduler.mongo.connection import Database
from hascheduler.mongo.faults import faults
from hascheduler.mongo.state_updates import BY_ID

_FIELDS = list(LEAN_FIELDS[Collection.JOBS])
_STATES = sorted(state.value for state in JobState)
_UNKNOWN_MAX = 1_000
_ASKED_MAX = 1_000
_ENDED_BADLY = [JobState.FAILED.value, JobState.CANCELLED.value]


class JobScan:
    """Owner of the counts of occupied slots, complete once `occupying` has ended."""

    def __init__(self, database: Database, pace: ScanPace, context: CheckContext, report: Report) -> None:
        self._jobs = database[Collection.JOBS.value]
        self._pace = pace
        self._context = context
        self._report = report
        self._occupied = OccupiedSlots()

    async def of_unknown_state(self) -> None:
        found = self._jobs.find({"state": {"$nin": _STATES}}, {"state": True}).limit(_UNKNOWN_MAX)
        async with aclosing(self._pace.batches("jobs of no state", found)) as batches:
            async for documents in batches:
                self._report(
                    Finding(
                        FindingKind.UNKNOWN_STATE,
                        f"jobs/{short_id(document['_id'])}",
                        f"its state is {short_id(document.get('state'))!r}; the states are {', '.join(_STATES)}",
                        "it neither runs nor ends: inspect it in MongoDB, then submit it again",
                    )
                    for document in documents
                )

    async def occupying(self) -> None:
        """Check the jobs that hold a slot. Always read all of them, to count the slots."""
        states = sorted(state.value for state in OCCUPYING)
        async for jobs in self._read(self._in_order({"$in": states})):
            for job in jobs:
                self._occupied.add(job)
                self._report([check_job(job, self._context)])

    async def pending(self, only: SomeOf[str] | None, limit: int | None) -> None:
        """Check pending jobs: all of them, those with the ids in ``only``, or the first ``limit``."""
        state = JobState.PENDING.value
        if only is None:
            found = self._in_order(state)
        else:
            # Without the hint MongoDB may scan all pending jobs for them, or sort.
            found = self._jobs.find({"state": state, "_id": {"$in": sorted(only)}}, _FIELDS).hint(BY_ID)
        if limit is not None:
            found = found.limit(limit)
        async for jobs in self._read(found):
            ended = await self._ended({id for job in jobs for id in job.waits_for})
            for job in jobs:
                self._report([check_dependent(job, ended, self._context), check_job(job, self._context)])
                self._report([check_wait(job, self._context, self._occupied)])

    def _in_order(self, state: Any) -> Any:
        """Return a cursor in the order of the index: the oldest of each state first."""
        order = [("state", ASCENDING), ("submitted_at_ms", ASCENDING), ("_id", ASCENDING)]
        return self._jobs.find({"state": state}, _FIELDS).sort(order)

    async def _read(self, found: Any) -> AsyncIterator[list[JobRef]]:
        """Yield the readable jobs, and report all others."""
        async with aclosing(self._pace.batches("live jobs", found)) as batches:
            async for documents in batches:
                decoded = [decode_or_finding(Collection.JOBS, document) for document in documents]
                self._report(job for job in decoded if isinstance(job, Finding))
                yield [job for job in decoded if not isinstance(job, Finding)]

    async def _ended(self, ids: SomeOf[str]) -> dict[str, EndedJob]:
        """Return the jobs of ``ids`` that have ended, and for each batch its first job to fail or be cancelled."""
        ended = await self._failed_of([id for id in sorted(ids) if is_batch(id)])
        in_order = sorted(id for id in ids if not is_batch(id))
        for start in range(0, len(in_order), _ASKED_MAX):
            with faults("read the dependencies of jobs"):
                documents = await self._jobs.find(
                    {"_id": {"$in": in_order[start : start + _ASKED_MAX]}}, ["state", "finished_at_ms"]
                ).to_list(None)
            for document in documents:
                state, at_ms = document.get("state"), document.get("finished_at_ms")
                if isinstance(state, str) and state in TERMINAL:
                    ended[document["_id"]] = EndedJob(JobState(state), at_ms if is_integer(at_ms) else None)
        return ended

    async def _failed_of(self, batches: SomeOf[str]) -> dict[str, EndedJob]:
        failed: dict[str, EndedJob] = {}
        for batch in batches:
            which = {"batch": batch, "state": {"$in": _ENDED_BADLY}}
            with faults("read the dependencies of jobs"):
                first = await self._jobs.find_one(
                    which, ["state", "finished_at_ms"], sort=[("finished_at_ms", ASCENDING)]
                )
            if first is not None:
                at_ms = first.get("finished_at_ms")
                failed[batch] = EndedJob(JobState(first["state"]), at_ms if is_integer(at_ms) else None, first["_id"])
        return failed
