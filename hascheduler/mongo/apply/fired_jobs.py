"""Inserts the jobs of nominal times, as dispatched where the same batch dispatches them.

A job's trace begins here: a repeated insert makes a second span, and only the span of the job that was inserted
ends, and is exported.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pymongo.errors import BulkWriteError

from hascheduler.dispatch.decisions import Dispatch, Fire, Settlement, TimeOutcome
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

Settlements = dict[TimeOutcome, Settlement]


class FiredJobs:
    """The part of the claims that inserts the jobs of `Fire`."""

    def __init__(self, database: Database, tracer: Tracer) -> None:
        self._tracer = tracer
        # Local reads: it must see its own writes of a moment ago, with or without a majority.
        self._jobs = database[Collection.JOBS.value].with_options(read_concern=LOCAL_READ)

    async def insert(
        self,
        fires: Mapping[Fire, Mapping[str, Any]],
        claims: Mapping[str, Dispatch],
        at_ms: WallMs,
        *,
        majority: bool,
    ) -> tuple[Settlements, set[str]]:
        """One settlement for each fire (with its stored schedule): DONE, UNKNOWN, or REFUSED where there can
        be no job: it can't be stored, or its id belongs to a job of an earlier schedule of that name.

        A job whose first attempt is among ``claims`` (by job id) is inserted as dispatched, which saves a write and an
        event for every mirror; the second answer has the ids of these jobs.
        """
        documents: dict[Fire, dict[str, Any]] = {}
        spans: dict[Fire, Span] = {}
        for fire, schedule in fires.items():
            job = new_fired_job(fire.schedule, schedule, fire.nominal_ms, fire.keyed_by)
            if job is not None:
                if self._tracer.enabled:
                    span = spans[fire] = self._span(job)
                    job = replace(job, trace=span.context)
                document = new_job_document(job)
                claim = claims.get(fire.job_id)
                documents[fire] = document if claim is None else {**document, **claimed_fields(claim, at_ms)}
        existing: set[Fire] = set()
        settled: Settlements = dict.fromkeys(fires, Settlement.REFUSED)
        settled |= await self._inserted(documents, existing, majority=majority)
        settled |= await self._ids_of_others({fire: documents[fire] for fire in existing})
        new = {fire for fire in documents if settled[fire] is Settlement.DONE and fire not in existing}
        for fire in new & spans.keys():
            spans[fire].end()
        return settled, {fire.job_id for fire in new} & set(claims)

    async def _ids_of_others(self, existing: Mapping[Fire, Mapping[str, Any]]) -> Settlements:
        """REFUSED for fires whose id a job of another schedule has."""
        if not existing:
            return {}
        makers = await self._makers([fire.job_id for fire in existing])
        return {
            fire: Settlement.REFUSED
            for fire, document in existing.items()
            if not _is_same(maker_of(document), makers.get(fire.job_id))
        }

    async def found(self, fires: Sequence[Fire]) -> set[TimeOutcome]:
        """The fires whose jobs exist, made by the schedule that the fire is about."""
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
        self, documents: Mapping[Fire, dict[str, Any]], existing: set[Fire], *, majority: bool
    ) -> Settlements:
        if not documents:
            return {}
        try:
            return await self._insert(documents, existing, majority=majority)
        except InvalidInput:
            # The driver refuses to send one of them, which must not keep the others from firing: find it by halving.
            if len(documents) == 1:
                return dict.fromkeys(documents, Settlement.REFUSED)
            in_order = list(documents.items())
            half = len(in_order) // 2
            first = await self._inserted(dict(in_order[:half]), existing, majority=majority)
            return first | await self._inserted(dict(in_order[half:]), existing, majority=majority)

    async def _insert(
        self, documents: Mapping[Fire, dict[str, Any]], existing: set[Fire], *, majority: bool
    ) -> Settlements:
        """Insert; fires whose job id existed already go into ``existing``, whichever schedule made that job."""
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
                        existing.add(in_order[failure["index"]])
                    else:
                        refused = refuses_document(failure["code"])
                        settled[in_order[failure["index"]]] = Settlement.REFUSED if refused else Settlement.UNKNOWN
        return settled


def _is_same(maker: ScheduleId | None, found: ScheduleId | None) -> bool:
    return maker is None or found is None or maker.is_same(found)


def _may_have_fired(maker: ScheduleId | None, fire: Fire) -> bool:
    return maker is None or maker.created_at_ms is None or fire.basis.is_of(maker.created_at_ms)
