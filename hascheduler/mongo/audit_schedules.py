"""The schedules as an audit reads them: whether each keeps up with the time, and has a verdict for each time."""

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any

from pymongo import ASCENDING, DESCENDING

from hascheduler.audit.documents import read, unreadable
from hascheduler.audit.finding import Finding
from hascheduler.audit.nominal_times import Verdicts, decided_times, judge_times
from hascheduler.audit.schedules import PAYLOAD_FIELDS, judge_cursor, judge_payload
from hascheduler.audit.terms import MINUTE_MS
from hascheduler.errors import InvalidInput
from hascheduler.model.documents import LEAN_FIELDS, Collection
from hascheduler.model.fields import is_integer
from hascheduler.model.schedule import ScheduleRef
from hascheduler.mongo.audit_indexes import Indexes
from hascheduler.mongo.audit_pace import Pace
from hascheduler.mongo.audit_surroundings import Surroundings, expiry_ms
from hascheduler.mongo.audit_verdicts import StoredVerdicts
from hascheduler.mongo.connection import Database
from hascheduler.mongo.faults import faults
from hascheduler.triggers import next_nominal

_FIELDS = list(LEAN_FIELDS[Collection.SCHEDULES])
_SAMPLED = 50
_PAYLOADS_AT_ONCE = 10


class AuditedSchedules:
    """``kept_since_ms``: what was decided after that must be there still. Owner of where it has come to."""

    def __init__(
        self, database: Database, pace: Pace, surroundings: Surroundings, *, kept_since_ms: int, times_max: int
    ) -> None:
        self._database = database
        self._schedules = database[Collection.SCHEDULES.value]
        self._pace = pace
        self._now = surroundings.now
        self._terms = surroundings.terms
        self._kept_since_ms = kept_since_ms
        self._times_max = times_max
        self._compared = 0
        self.compared_through = ""
        """The name of the last one whose verdicts were compared, or that had none to compare."""
        self.left_out = False
        """Whether some were not compared, as there were too many."""

    async def judged(
        self, which: Mapping[str, Any], *, led: bool, compared_max: int | None = None
    ) -> AsyncIterator[Finding]:
        """Of those that ``which`` finds, in the order of their names; ``led``: somebody leads. The verdicts of at most
        ``compared_max`` are compared with their times."""
        found = self._schedules.find(which, _FIELDS).sort("_id", ASCENDING)
        async with aclosing(self._pace.batches("schedules", found)) as batches:
            async for documents in batches:
                for document in documents:
                    compare = compared_max is None or self._compared < compared_max
                    async for finding in self._judged(document, led=led, compare=compare):
                        yield finding
                    self.left_out |= not compare
                    if compare and isinstance(document["_id"], str):
                        self.compared_through = document["_id"]

        async for finding in self._payloads(which):
            yield finding

    async def _payloads(self, which: Mapping[str, Any]) -> AsyncIterator[Finding]:
        """Of those that are filled alone: the others were stored as their jobs are."""
        found = self._schedules.find({**which, "render": True}, list(PAYLOAD_FIELDS)).sort("_id", ASCENDING)
        async with aclosing(self._pace.batches("filled payloads", found, _PAYLOADS_AT_ONCE)) as batches:
            async for documents in batches:
                for document in documents:
                    for finding in judge_payload(document):
                        yield finding

    async def _judged(self, document: Mapping[str, Any], *, led: bool, compare: bool) -> AsyncIterator[Finding]:
        schedule = read(Collection.SCHEDULES, document)
        if isinstance(schedule, Finding):
            yield schedule
            return
        try:
            next_nominal(schedule.trigger, 0)  # a pattern is read when its times are asked for
            for about in judge_cursor(schedule, self._now, self._terms, led=led):
                yield about
            if compare:
                async for about in self._compared_with_verdicts(schedule):
                    yield about
        except InvalidInput as error:
            yield unreadable(Collection.SCHEDULES, schedule.name, error)

    async def _compared_with_verdicts(self, schedule: ScheduleRef) -> AsyncIterator[Finding]:
        times = decided_times(schedule, self._kept_since_ms, self._now + self._terms.motion_ms, self._times_max)
        firsts = [first_ms for first_ms in (some.first() for some in times) if first_ms is not None]
        if not firsts:
            return
        self._compared += 1
        stored = StoredVerdicts(self._database, self._pace, schedule.identity, firsts[0], times[-1].through_ms)
        async with aclosing(stored.fires()) as fires, aclosing(stored.runs()) as runs:
            findings = await judge_times(schedule, times, Verdicts(fires, runs), self._pace.pause)
        for finding in [*stored.set_aside, *findings]:
            yield finding


async def kept_for_ms(database: Database, indexes: Indexes, set_ms: int) -> int:
    """How long finished jobs and records are kept: as it is set now, or less where some still say so themselves."""
    kept = [set_ms]
    for collection, ended in ((Collection.JOBS, "finished_at_ms"), (Collection.VERDICTS, "decided_at_ms")):
        if not indexes.has(collection, "expire_at"):
            continue
        for order in (ASCENDING, DESCENDING):
            with faults("look how long jobs are kept"):
                documents = await (
                    database[collection.value]
                    .find({"expire_at": {"$type": "date"}}, {"expire_at": True, ended: True})
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
    """Since when nothing can have expired, whatever the clocks were that its end was written by."""
    return now - kept_ms + kept_ms // 5 + 5 * MINUTE_MS
