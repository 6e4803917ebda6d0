"""The verdicts of one schedule's times, in the order of time: the ids of its fired jobs, and its recorded runs.

Both are ranges of ``_id``, and of jobs nothing but the id is read, so that an index alone answers. Records that an
earlier schedule of that name left are not among them; a job of it is told by its time, as a schedule's times begin
after its creation. (Where clocks went back, such a job is in the way of a fire, which is recorded as unstorable.)
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from pymongo import ASCENDING, DESCENDING

from hascheduler.audit.documents import read
from hascheduler.audit.finding import Finding
from hascheduler.model.documents import Collection, verdict_id
from hascheduler.model.job import ScheduleId, fire_job_id
from hascheduler.model.verdict import VerdictRun
from hascheduler.mongo.audit_pace import Pace
from hascheduler.mongo.connection import Database
from hascheduler.mongo.faults import faults


class StoredVerdicts:
    """Of the times of ``schedule`` from ``first_ms`` through ``last_ms``; `set_aside` has the records that can't be
    read."""

    def __init__(self, database: Database, pace: Pace, schedule: ScheduleId, first_ms: int, last_ms: int) -> None:
        self._jobs = database[Collection.JOBS.value]
        self._verdicts = database[Collection.VERDICTS.value]
        self._pace = pace
        self._schedule = schedule.name
        self._said = {"schedule_created_at_ms": {"$in": [schedule.created_at_ms, None]}}
        self._first_ms = first_ms
        self._last_ms = last_ms
        self.set_aside: list[Finding] = []

    async def fires(self) -> AsyncGenerator[int, None]:
        found = self._jobs.find(
            {
                "_id": {
                    "$gte": fire_job_id(self._schedule, self._first_ms),
                    "$lte": fire_job_id(self._schedule, self._last_ms),
                }
            },
            {"_id": True},
        ).sort("_id", ASCENDING)
        start = len(fire_job_id(self._schedule, 0)) - 1
        async with aclosing(self._pace.batches("fired jobs", found)) as batches:
            async for documents in batches:
                for document in documents:
                    text = document["_id"][start:]
                    if text.isascii() and text.isdecimal():
                        yield int(text)

    async def runs(self) -> AsyncGenerator[VerdictRun, None]:
        # One may have begun before; what runs of other verdicts began before that ended before it.
        earlier = {"$gt": f"{self._schedule}:", "$lt": verdict_id(self._schedule, self._first_ms)}
        with faults("read the verdicts"):
            before = await self._verdicts.find_one({"_id": earlier, **self._said}, sort=[("_id", DESCENDING)])
        if before is not None:
            for run in self._read([before]):
                yield run
        span = {
            "$gte": verdict_id(self._schedule, self._first_ms),
            "$lte": verdict_id(self._schedule, self._last_ms),
        }
        found = self._verdicts.find({"_id": span, **self._said}).sort("_id", ASCENDING)
        async with aclosing(self._pace.batches("verdicts", found)) as batches:
            async for documents in batches:
                for run in self._read(documents):
                    yield run

    def _read(self, documents: list[dict[str, Any]]) -> list[VerdictRun]:
        runs = []
        for document in documents:
            run = read(Collection.VERDICTS, document)
            if isinstance(run, Finding):
                self.set_aside.append(run)
            elif run.schedule == self._schedule:
                runs.append(run)
        return runs
