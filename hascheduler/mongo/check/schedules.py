"""Read the schedules for the check: each keeps up with the time, and has one verdict for each nominal time.

The verdicts of a schedule are the ids of its fired jobs and its recorded runs. Both are ranges of ``_id``, and only the
id of a job is read, so an index alone answers. Records of an earlier schedule of that name are left out; its jobs are
recognized by their times, as a schedule's times begin after its creation. (If clocks went back, such a job prevents a
fire, which is recorded as unstorable.)
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from pymongo import ASCENDING, DESCENDING

from hascheduler.check.documents import decode_or_finding, unreadable
from hascheduler.check.finding import MINUTE_MS, Finding, Report
from hascheduler.check.jobs import CheckContext
from hascheduler.check.schedules import (
    PAYLOAD_FIELDS,
    VerdictCursor,
    check_cursor,
    check_payload,
    check_times,
    decided_times,
)
from hascheduler.errors import InvalidInput
from hascheduler.model.collection import Collection
from hascheduler.model.documents.lean_fields import LEAN_FIELDS
from hascheduler.model.documents.verdict import verdict_id
from hascheduler.model.job import ScheduleId, fire_job_id
from hascheduler.model.partition import partition_of
from hascheduler.model.values.fields import is_integer
from hascheduler.model.values.zone_data import ZONE_DATA_VERSION
from hascheduler.model.verdict import VerdictRun
from hascheduler.mongo.check.context import ScanPace, expiry_ms
from hascheduler.mongo.check.indexes import PresentIndexes
from hascheduler.mongo.connection import Database
from hascheduler.mongo.faults import faults
from hascheduler.schema.schedule import ScheduleRef
from hascheduler.triggers import MissingCalendar, next_nominal, with_calendars, without_calendars
from hascheduler.triggers.local_order import offset_zones

_FIELDS = list(LEAN_FIELDS[Collection.SCHEDULES])
_SAMPLED = 50
DAY_MS = 86_400_000
_PAYLOADS_AT_ONCE = 10


class ScheduleScan:
    """Owner of the progress through the schedules. Verdicts decided after ``kept_since_ms`` can't have expired.

    If a schedule's partition is held, its verdicts may be in another database, so they are not compared.
    """

    def __init__(
        self,
        database: Database,
        pace: ScanPace,
        context: CheckContext,
        report: Report,
        *,
        kept_since_ms: int,
        times_max: int,
    ) -> None:
        self._database = database
        self._schedules = database[Collection.SCHEDULES.value]
        self._pace = pace
        self._report = report
        self._now = context.now
        self._config = context.config
        self._calendars = context.calendars
        data = {replica.zone_data for replica in context.replicas.values()}
        self._is_of_own_data = data <= {None, ZONE_DATA_VERSION}
        self._kept_since_ms = kept_since_ms
        self._times_max = times_max
        self._held = context.held
        self._compared = 0
        self.compared_through = ""
        """The name of the last schedule whose verdicts were compared, or that had none to compare."""
        self.left_out = False
        """True if some schedules were not compared, because there were too many."""

    async def check(self, which: Mapping[str, Any], *, led: bool, compared_max: int | None = None) -> None:
        """Report on the schedules that ``which`` selects, by name; ``led``: there is a leader that is not paused.

        The verdicts of at most ``compared_max`` schedules are compared with their times.
        """
        found = self._schedules.find(which, _FIELDS).sort("_id", ASCENDING)
        async with aclosing(self._pace.batches("schedules", found)) as batches:
            async for documents in batches:
                for document in documents:
                    compare = compared_max is None or self._compared < compared_max
                    await self._check_one(document, led=led, compare=compare)
                    self.left_out |= not compare
                    if compare and isinstance(document["_id"], str):
                        self.compared_through = document["_id"]
        await self._payloads(which)

    async def _payloads(self, which: Mapping[str, Any]) -> None:
        """Check the payloads that schedules render; others were stored as large as those of their jobs."""
        found = self._schedules.find({**which, "render": True}, list(PAYLOAD_FIELDS)).sort("_id", ASCENDING)
        async with aclosing(self._pace.batches("filled payloads", found, _PAYLOADS_AT_ONCE)) as batches:
            async for documents in batches:
                for document in documents:
                    self._report(check_payload(document))

    def _on_its_days(self, schedule: ScheduleRef) -> ScheduleRef:
        try:
            return with_calendars(schedule, self._calendars)
        except MissingCalendar:  # it is held, so everything due is overdue
            return without_calendars(schedule)

    async def _check_one(self, document: Mapping[str, Any], *, led: bool, compare: bool) -> None:
        schedule = decode_or_finding(Collection.SCHEDULES, document)
        if isinstance(schedule, Finding):
            self._report([schedule])
            return
        try:
            next_nominal(schedule.trigger, 0)  # a cron expression is parsed when its times are computed
            # With other time-zone data a local time may be due later.
            led = led and (self._is_of_own_data or not offset_zones(schedule))
            self._report(check_cursor(self._on_its_days(schedule), self._now, self._config, led=led))
            if compare and partition_of(schedule.template.tenant) not in self._held:
                await self._compare_with_verdicts(schedule)
        except InvalidInput as error:
            self._report([unreadable(Collection.SCHEDULES, schedule.name, error)])

    async def _compare_with_verdicts(self, schedule: ScheduleRef) -> None:
        times = decided_times(schedule, self._kept_since_ms, self._now + self._config.motion_ms, self._times_max)
        firsts = [first_ms for first_ms in (some.first() for some in times) if first_ms is not None]
        if not firsts:
            return
        self._compared += 1
        from_ms: int = firsts[0]
        through_ms = times[-1].through_ms
        if offset_zones(schedule):  # other time-zone data may have put some times before or after all known here
            from_ms, through_ms = max(from_ms - DAY_MS, schedule.created_at_ms + 1), schedule.cursor_ms
        stored = StoredVerdicts(self._database, self._pace, schedule.identity, from_ms, through_ms)
        async with aclosing(stored.fires()) as fires, aclosing(stored.runs()) as runs:
            findings = await check_times(schedule, times, VerdictCursor(fires, runs), self._pace.pause)
        self._report([*stored.unreadable_records, *findings])


async def kept_for_ms(database: Database, indexes: PresentIndexes, set_ms: int) -> int:
    """Return how long finished jobs and records are kept: the setting, or less if stored documents expire earlier."""
    kept = [set_ms]
    for collection, ended in ((Collection.JOBS, "finished_at_ms"), (Collection.VERDICTS, "decided_at_ms")):
        if not indexes.has(collection, "expire_at"):
            continue
        for order in (ASCENDING, DESCENDING):
            with faults("read the retention of jobs"):
                documents = await (
                    database[collection.value]
                    .find({"expire_at": {"$type": "date"}, "deleted_at_ms": None}, {"expire_at": True, ended: True})
                    .sort("expire_at", order)
                    .limit(_SAMPLED)
                    .to_list(None)
                )
            for document in documents:
                expire_at_ms, ended_at_ms = expiry_ms(document["expire_at"]), document.get(ended)
                if expire_at_ms is not None and is_integer(ended_at_ms):
                    kept.append(max(expire_at_ms - int(ended_at_ms or 0), 0))
    return min(kept)


def certain_since_ms(now: int, kept_ms: int) -> int:
    """Return the instant since which no document can have expired, by any clock that wrote its end."""
    return now - kept_ms + kept_ms // 5 + 5 * MINUTE_MS


class StoredVerdicts:
    """The verdicts of ``schedule`` from ``first_ms`` through ``last_ms``.

    `unreadable_records` holds the findings about unreadable records.
    """

    def __init__(self, database: Database, pace: ScanPace, schedule: ScheduleId, first_ms: int, last_ms: int) -> None:
        self._jobs = database[Collection.JOBS.value]
        self._verdicts = database[Collection.VERDICTS.value]
        self._pace = pace
        self._schedule = schedule.name
        self._of_schedule = {"schedule_created_at_ms": {"$in": [schedule.created_at_ms, None]}}
        self._first_ms = first_ms
        self._last_ms = last_ms
        self.unreadable_records: list[Finding] = []

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
        # One run may have begun before ``first_ms``; all earlier ones ended before it.
        earlier = {"$gt": f"{self._schedule}:", "$lt": verdict_id(self._schedule, self._first_ms)}
        with faults("read the verdicts"):
            before = await self._verdicts.find_one({"_id": earlier, **self._of_schedule}, sort=[("_id", DESCENDING)])
        if before is not None:
            for run in self._read([before]):
                yield run
        span = {
            "$gte": verdict_id(self._schedule, self._first_ms),
            "$lte": verdict_id(self._schedule, self._last_ms),
        }
        found = self._verdicts.find({"_id": span, **self._of_schedule}).sort("_id", ASCENDING)
        async with aclosing(self._pace.batches("verdicts", found)) as batches:
            async for documents in batches:
                for run in self._read(documents):
                    yield run

    def _read(self, documents: list[dict[str, Any]]) -> list[VerdictRun]:
        runs = []
        for document in documents:
            run = decode_or_finding(Collection.VERDICTS, document)
            if isinstance(run, Finding):
                self.unreadable_records.append(run)
            elif run.schedule == self._schedule:
                runs.append(run)
        return runs
