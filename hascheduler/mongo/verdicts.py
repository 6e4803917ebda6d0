"""The verdicts on nominal times: the jobs of those that fired, and the records of all others.

Those of one schedule are read by id, whose order is the order of the times. The records of all schedules are read in
the order in which they were decided. A record does not name its tenant; its schedule does.
"""

import re
from collections.abc import Collection as SomeOf
from collections.abc import Sequence
from contextlib import suppress
from heapq import merge
from itertools import islice
from typing import Any

from pymongo import ASCENDING, DESCENDING

from hascheduler.errors import InvalidInput
from hascheduler.model.collection import Collection
from hascheduler.model.documents.job import decode_job_state
from hascheduler.model.documents.verdict import decode_verdict, verdict_id
from hascheduler.model.job import ScheduleId, fire_job_id
from hascheduler.model.values.fields import instant_or_none, integer, is_integer
from hascheduler.model.values.instants import LATEST_MS, WallMs
from hascheduler.model.verdict import STORED_AS, Verdict, VerdictRun, is_unstorable
from hascheduler.mongo.connection import Database
from hascheduler.mongo.faults import faults
from hascheduler.mongo.queries import IndexRange, made_by
from hascheduler.ports import DecidedVerdict, ListPosition, VerdictPage, VerdictRecord, VerdictSelection

_SCANNED_MAX = 2_000
"""Fewer than for jobs: the schedule of each record is looked up."""
_LAST_OF_A_FIRE = r":[0-9]+$"
_OF_A_FIRE = ["nominal_ms", "state", "first_started_at_ms", "error"]
_OWNER = ["job.tenant", "labels", "created_at_ms"]


class MongoVerdictStore:
    """`hascheduler.ports.VerdictStore`."""

    def __init__(self, database: Database) -> None:
        self._jobs = database[Collection.JOBS.value]
        self._verdicts = database[Collection.VERDICTS.value]
        self._schedules = database[Collection.SCHEDULES.value]

    async def of_all(self, which: VerdictSelection, after: ListPosition | None, limit: int) -> VerdictPage:
        if "\0" in (which.text or ""):
            return VerdictPage([], None)  # no name holds a null character, and no pattern may
        range = _decided(which.verdicts, which.text)
        least_ms, most_ms = which.since_ms, None if which.until_ms is None else which.until_ms - 1
        edge_ms = None
        kept: list[tuple[dict[str, Any], DecidedVerdict]] = []
        with faults("read the verdicts"):
            if range.rest or which.tenant is not None or which.labels:
                edge_ms = await range.edge_ms(self._verdicts, after, least_ms, most_ms, _SCANNED_MAX)
            query = range.query(after, least_ms if edge_ms is None else edge_ms + 1, most_ms)
            if query is not None:
                cursor = range.find(self._verdicts, range.matching(query)).batch_size(limit + 1)
                try:
                    while len(kept) <= limit and (documents := await cursor.to_list(limit + 1)):
                        kept += await self._kept(which, documents)
                finally:
                    await cursor.close()
        verdicts = [verdict for _, verdict in kept[:limit]]
        if len(kept) > limit:
            return VerdictPage(verdicts, range.position(kept[limit - 1][0]))
        return VerdictPage(verdicts, None if edge_ms is None else ListPosition(edge_ms))

    async def _kept(
        self, which: VerdictSelection, documents: Sequence[dict[str, Any]]
    ) -> list[tuple[dict[str, Any], DecidedVerdict]]:
        read = []
        for document in documents:
            with suppress(InvalidInput):  # written by hand, so no verdict
                read.append((document, DecidedVerdict(decode_verdict(document), integer(document, "decided_at_ms"))))
        fired = {
            fire_job_id(verdict.run.schedule, verdict.run.first_ms): document
            for document, verdict in read
            if verdict.run.verdict is Verdict.UNSTORABLE
        }
        if fired:
            jobs = await self._jobs.find({"_id": {"$in": list(fired)}}, ["schedule_created_at_ms"]).to_list(None)
            gone = [
                document
                for document, made_ms in ((fired[job["_id"]], job.get("schedule_created_at_ms")) for job in jobs)
                if made_ms is None or document.get("schedule_created_at_ms") in (None, made_ms)
            ]
            read = [(document, verdict) for document, verdict in read if document not in gone]
        if which.tenant is None and not which.labels:
            return read
        names = list({verdict.run.schedule for _, verdict in read})
        found = await self._schedules.find({"_id": {"$in": names}}, _OWNER).to_list(None)
        owners = {owner["_id"]: owner for owner in found}
        return [
            (document, verdict) for document, verdict in read if which.takes(document, owners.get(verdict.run.schedule))
        ]

    async def list(
        self, schedule: ScheduleId, verdicts: SomeOf[Verdict], after_ms: WallMs, before_ms: WallMs, limit: int
    ) -> Sequence[VerdictRecord]:
        fired = await self._fired(schedule, after_ms, before_ms, limit) if Verdict.FIRED in verdicts else []
        others = [verdict for verdict in verdicts if verdict is not Verdict.FIRED]
        recorded = await self._recorded(schedule, others, after_ms, before_ms, limit) if others else []
        newest_first = merge(fired, recorded, key=lambda record: record.run.first_ms, reverse=True)
        return list(islice(newest_first, limit))

    async def first_fired(self, schedule: ScheduleId, after_ms: WallMs) -> WallMs | None:
        fired = await self._fired(schedule, after_ms, LATEST_MS, 1, ASCENDING)
        return fired[0].run.first_ms if fired else None

    async def _fired(
        self, schedule: ScheduleId, after_ms: int, before_ms: int, limit: int, order: int = DESCENDING
    ) -> Sequence[VerdictRecord]:
        # Only the last job of a graph: the ids of the others continue after the time.
        between = {
            "$gt": fire_job_id(schedule.name, after_ms),
            "$lt": fire_job_id(schedule.name, before_ms),
            "$regex": _LAST_OF_A_FIRE,
        }
        with faults("read the fired jobs"):
            documents = await (
                self._jobs.find({"_id": between, **made_by(schedule)}, _OF_A_FIRE)
                .sort("_id", order)
                .limit(limit)
                .to_list(None)
            )
        return _readable(documents, lambda job: _fired_record(schedule.name, job))

    async def _recorded(
        self, schedule: ScheduleId, verdicts: Sequence[Verdict], after_ms: int, before_ms: int, limit: int
    ) -> Sequence[VerdictRecord]:
        name = schedule.name
        between: dict[str, Any] = {"$gt": verdict_id(name, after_ms), "$lt": verdict_id(name, before_ms)}
        # A record without the field was written by 0.2.0; `after_ms` keeps out those of an earlier schedule.
        of_schedule = {"schedule_created_at_ms": {"$in": [schedule.created_at_ms, None]}}
        with faults("read the verdicts"):
            while True:
                documents = await (
                    self._verdicts.find(
                        {"_id": between, **of_schedule, "$or": [_stored_as(verdict) for verdict in verdicts]}
                    )
                    .sort("_id", DESCENDING)
                    .limit(limit)
                    .to_list(None)
                )
                fired = await self._fired_after_all(schedule, documents)
                if not fired:
                    break
                between["$nin"] = [*between.get("$nin", ()), *fired]
        return _readable(documents, lambda document: VerdictRecord(decode_verdict(document)))

    async def _fired_after_all(self, schedule: ScheduleId, documents: Sequence[dict[str, Any]]) -> Sequence[str]:
        """Return the ids of `UNSTORABLE` records whose job exists after all: the schedule was edited in between."""
        unstorable = {
            fire_job_id(schedule.name, document["first_ms"]): document["_id"]
            for document in documents
            if is_unstorable(document) and is_integer(document.get("first_ms"))
        }
        if not unstorable:
            return []
        jobs = await self._jobs.find({"_id": {"$in": list(unstorable)}, **made_by(schedule)}, ["_id"]).to_list(None)
        return [unstorable[job["_id"]] for job in jobs]


def _decided(verdicts: Sequence[Verdict], text: str | None) -> IndexRange:
    """Return the range of records with one of ``verdicts``, in the order in which they were decided.

    With ``text``, only of schedules with that text in their names.
    """
    values = sorted({STORED_AS[verdict][0] if verdict in STORED_AS else verdict for verdict in verdicts})
    stored_as_one = {Verdict.MISSED, *STORED_AS}
    rest: dict[str, Any] = (
        {}
        if not stored_as_one & {*verdicts} or stored_as_one <= {*verdicts}
        else {"$or": [_stored_as(verdict) for verdict in verdicts]}
    )
    if text is not None:
        rest["schedule"] = {"$regex": re.escape(text), "$options": "i"}
    return IndexRange("verdict_decided", "decided_at_ms", [{"verdict": value} for value in values], rest)


def _stored_as(verdict: Verdict) -> dict[str, Any]:
    """Return the filter for records with that verdict, see `hascheduler.model.verdict.STORED_AS`."""
    if verdict in STORED_AS:
        known_as, prefix = STORED_AS[verdict]
        return {"verdict": known_as.value, "because_of": {"$regex": f"^{prefix}"}}
    prefixes = [prefix for known_as, prefix in STORED_AS.values() if known_as is verdict]
    if not prefixes:
        return {"verdict": verdict.value}
    return {"verdict": verdict.value, "because_of": {"$not": {"$regex": f"^({'|'.join(prefixes)})"}}}


def _fired_record(schedule: str, job: dict[str, Any]) -> VerdictRecord:
    nominal_ms = WallMs(integer(job, "nominal_ms"))
    run = VerdictRun(schedule, Verdict.FIRED, nominal_ms, nominal_ms, 1)
    began_ms, error = instant_or_none(job, "first_started_at_ms"), job.get("error")
    return VerdictRecord(run, decode_job_state(job), began_ms, str(error) if error else None)


def _readable(documents: Sequence[dict[str, Any]], read: Any) -> list[VerdictRecord]:
    """Leave out unreadable records, which were written by hand and are no verdicts."""
    records = []
    for document in documents:
        with suppress(InvalidInput):
            records.append(read(document))
    return records
