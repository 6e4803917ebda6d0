"""The verdicts on nominal times: of fired ones the jobs, of all others their records.

Both are read by id, whose order is the order of the times.
"""

from collections.abc import Collection as SomeOf
from collections.abc import Sequence
from heapq import merge
from itertools import islice
from typing import Any

from pymongo import DESCENDING

from hascheduler.errors import InvalidInput
from hascheduler.model.collection import Collection
from hascheduler.model.documents.job import decode_job_state
from hascheduler.model.documents.verdict import decode_verdict, verdict_id
from hascheduler.model.fields import integer, is_integer
from hascheduler.model.instants import WallMs
from hascheduler.model.job import ScheduleId, fire_job_id
from hascheduler.model.verdict import STORED_AS, Verdict, VerdictRun, is_unstorable
from hascheduler.mongo.connection import Database
from hascheduler.mongo.faults import faults
from hascheduler.mongo.queries import made_by
from hascheduler.ports import VerdictRecord


class MongoVerdictStore:
    """`hascheduler.ports.VerdictStore`."""

    def __init__(self, database: Database) -> None:
        self._jobs = database[Collection.JOBS.value]
        self._verdicts = database[Collection.VERDICTS.value]

    async def list(
        self, schedule: ScheduleId, verdicts: SomeOf[Verdict], after_ms: WallMs, before_ms: WallMs, limit: int
    ) -> Sequence[VerdictRecord]:
        fired = await self._fired(schedule, after_ms, before_ms, limit) if Verdict.FIRED in verdicts else []
        others = [verdict for verdict in verdicts if verdict is not Verdict.FIRED]
        recorded = await self._recorded(schedule, others, after_ms, before_ms, limit) if others else []
        newest_first = merge(fired, recorded, key=lambda record: record.run.first_ms, reverse=True)
        return list(islice(newest_first, limit))

    async def _fired(self, schedule: ScheduleId, after_ms: int, before_ms: int, limit: int) -> Sequence[VerdictRecord]:
        between = {"$gt": fire_job_id(schedule.name, after_ms), "$lt": fire_job_id(schedule.name, before_ms)}
        with faults("read the fired jobs"):
            documents = await (
                self._jobs.find({"_id": between, **made_by(schedule)}, ["nominal_ms", "state"])
                .sort("_id", DESCENDING)
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
        """Ids of `UNSTORABLE` records whose job exists after all: the schedule was edited in between."""
        unstorable = {
            fire_job_id(schedule.name, document["first_ms"]): document["_id"]
            for document in documents
            if is_unstorable(document) and is_integer(document.get("first_ms"))
        }
        if not unstorable:
            return []
        jobs = await self._jobs.find({"_id": {"$in": list(unstorable)}, **made_by(schedule)}, ["_id"]).to_list(None)
        return [unstorable[job["_id"]] for job in jobs]


def _stored_as(verdict: Verdict) -> dict[str, Any]:
    """The filter for records with that verdict, see `hascheduler.model.verdict.STORED_AS`."""
    if verdict in STORED_AS:
        known_as, prefix = STORED_AS[verdict]
        return {"verdict": known_as.value, "because_of": {"$regex": f"^{prefix}"}}
    prefixes = [prefix for known_as, prefix in STORED_AS.values() if known_as is verdict]
    if not prefixes:
        return {"verdict": verdict.value}
    return {"verdict": verdict.value, "because_of": {"$not": {"$regex": f"^({'|'.join(prefixes)})"}}}


def _fired_record(schedule: str, job: dict[str, Any]) -> VerdictRecord:
    nominal_ms = WallMs(integer(job, "nominal_ms"))
    return VerdictRecord(VerdictRun(schedule, Verdict.FIRED, nominal_ms, nominal_ms, 1), decode_job_state(job))


def _readable(documents: Sequence[dict[str, Any]], read: Any) -> list[VerdictRecord]:
    """Leaves out unreadable records, which were written by hand: they are no verdicts."""
    records = []
    for document in documents:
        try:
            records.append(read(document))
        except InvalidInput:
            continue
    return records
