"""Inserts the jobs of nominal times, as dispatched where that is decided already.

A job begins its trace here: whoever makes it twice makes two spans, and only the one whose job was inserted is told of.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pymongo.errors import BulkWriteError

from hascheduler.dispatch.decisions import Conclusion, Dispatch, Fire, Settlement
from hascheduler.errors import InvalidInput
from hascheduler.model.collection import Collection
from hascheduler.model.documents.fired_job import new_fired_job
from hascheduler.model.documents.job import MADE_BY_FIELDS, maker_of, new_job_document
from hascheduler.model.instants import WallMs
from hascheduler.model.job import NewJob, ScheduleId
from hascheduler.mongo.connection import LOCAL_READ, MAJORITY, ONE, Database
from hascheduler.mongo.faults import DUPLICATE_KEY, faults, refuses_document
from hascheduler.mongo.state_updates import claimed_fields
from hascheduler.telemetry.tracing import JOB_DEFINITION, JOB_ID, JOB_SCHEDULE, Span, SpanKind, Tracer

Settlements = dict[Conclusion, Settlement]


class FiredJobs:
    def __init__(self, database: Database, tracer: Tracer) -> None:
        self._tracer = tracer
        # Local reads: it must see what it wrote itself a moment ago, majority or not.
        self._jobs = database[Collection.JOBS.value].with_options(read_concern=LOCAL_READ)

    async def insert(
        self,
        fires: Mapping[Fire, Mapping[str, Any]],
        claims: Mapping[str, Dispatch],
        at_ms: WallMs,
        *,
        majority: bool,
    ) -> tuple[Settlements, set[str]]:
        """One settlement for each fire (with its stored schedule): DONE, REFUSED where there can be no job, or UNKNOWN.
        There can be none where its id belongs to a job of an earlier schedule of that name.

        A job whose first attempt is among ``claims`` (by job id) is inserted as dispatched, which saves a write and an
        event for every mirror; the ids of those that were are the second answer.
        """
        documents: dict[Fire, dict[str, Any]] = {}
        spans: dict[Fire, Span] = {}
        for fire, schedule in fires.items():
            job = new_fired_job(fire.schedule, schedule, fire.nominal_ms)
            if job is not None:
                if self._tracer.enabled:
                    span = spans[fire] = self._span(job)
                    job = replace(job, trace=span.context)
                document = new_job_document(job)
                claim = claims.get(fire.job_id)
                documents[fire] = document if claim is None else {**document, **claimed_fields(claim, at_ms)}
        there: set[Fire] = set()
        settled: Settlements = dict.fromkeys(fires, Settlement.REFUSED)
        settled |= await self._inserted(documents, there, majority=majority)
        settled |= await self._taken({fire: documents[fire] for fire in there})
        new = {fire for fire in documents if settled[fire] is Settlement.DONE and fire not in there}
        for fire in new & spans.keys():
            spans[fire].end()
        return settled, {fire.job_id for fire in new} & set(claims)

    async def _taken(self, there: Mapping[Fire, Mapping[str, Any]]) -> Settlements:
        """REFUSED for those whose job is there and is not theirs."""
        if not there:
            return {}
        makers = await self._makers([fire.job_id for fire in there])
        return {
            fire: Settlement.REFUSED
            for fire, document in there.items()
            if not _is_same(maker_of(document), makers.get(fire.job_id))
        }

    async def found(self, fires: Sequence[Fire]) -> set[Conclusion]:
        """Those whose jobs are there, of the schedule that they are about."""
        if not fires:
            return set()
        by_id = {fire.job_id: fire for fire in fires}
        makers = await self._makers(list(by_id))
        return {by_id[id] for id, maker in makers.items() if _may_have_fired(maker, by_id[id])}

    async def _makers(self, ids: Sequence[str]) -> dict[str, ScheduleId | None]:
        with faults("look for fired jobs"):
            documents = await self._jobs.find({"_id": {"$in": ids}}, MADE_BY_FIELDS).to_list(None)
        return {document["_id"]: maker_of(document) for document in documents}

    def _span(self, job: NewJob) -> Span:
        attributes = {JOB_ID: job.id, JOB_DEFINITION: job.definition, JOB_SCHEDULE: job.schedule or ""}
        return self._tracer.start(SpanKind.FIRE, job.definition, None, attributes)

    async def _inserted(
        self, documents: Mapping[Fire, dict[str, Any]], there: set[Fire], *, majority: bool
    ) -> Settlements:
        if not documents:
            return {}
        try:
            return await self._insert(documents, there, majority=majority)
        except InvalidInput:
            # The driver would not even send one of them; it must not keep the others from firing.
            if len(documents) == 1:
                return dict.fromkeys(documents, Settlement.REFUSED)
            in_order = list(documents.items())
            half = len(in_order) // 2
            first = await self._inserted(dict(in_order[:half]), there, majority=majority)
            return first | await self._inserted(dict(in_order[half:]), there, majority=majority)

    async def _insert(
        self, documents: Mapping[Fire, dict[str, Any]], there: set[Fire], *, majority: bool
    ) -> Settlements:
        """Insert; those that were there already go into ``there``, whoever's they are."""
        jobs = self._jobs.with_options(write_concern=MAJORITY if majority else ONE)
        settled: Settlements = dict.fromkeys(documents, Settlement.DONE)
        in_order = list(documents)
        with faults("insert fired jobs"):
            try:
                await jobs.insert_many([documents[fire] for fire in in_order], ordered=False)
            except BulkWriteError as error:
                if error.details.get("writeConcernErrors"):
                    return dict.fromkeys(documents, Settlement.UNKNOWN)
                for failure in error.details.get("writeErrors", ()):
                    if failure["code"] == DUPLICATE_KEY:
                        there.add(in_order[failure["index"]])
                    else:
                        refused = refuses_document(failure["code"])
                        settled[in_order[failure["index"]]] = Settlement.REFUSED if refused else Settlement.UNKNOWN
        return settled


def _is_same(maker: ScheduleId | None, found: ScheduleId | None) -> bool:
    return maker is None or found is None or maker.is_same(found)


def _may_have_fired(maker: ScheduleId | None, fire: Fire) -> bool:
    return maker is None or maker.created_at_ms is None or fire.basis.is_of(maker.created_at_ms)
