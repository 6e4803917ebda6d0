"""Inserts the jobs of nominal times, as dispatched where the same batch dispatches them.

Where a fire makes a graph of jobs, all but the last are inserted first, in an order in which each comes after those
that it waits for, and the last one when all of these are there: its insert is the fire, so after a crash between the
two the same decision completes the graph. Of a fire that is refused, or lost as its schedule was edited or deleted
between the two, nothing is left to run.

A job's trace begins here: a repeated insert makes a second span, and only the span of the job that was inserted
ends, and is exported.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from pymongo.errors import BulkWriteError

from hascheduler.dispatch.decisions import Dispatch, Fire, Settlement, TimeOutcome
from hascheduler.errors import InvalidInput
from hascheduler.model.collection import Collection
from hascheduler.model.documents.fired_job import FIRED_ON, WORK_AT_ONCE_MAX, JobMaker, fired_on
from hascheduler.model.documents.job import MADE_BY_FIELDS, maker_of, new_job_document
from hascheduler.model.job import NewJob, ScheduleId, is_before_last, last_job_id
from hascheduler.model.values.instants import WallMs
from hascheduler.mongo.connection import LOCAL_READ, MAJORITY, ONE, Database
from hascheduler.mongo.faults import DUPLICATE_KEY, faults, refuses_document
from hascheduler.mongo.state_updates import cancelled, claimed_fields
from hascheduler.telemetry.tracing import JOB_DEFINITION, JOB_ID, JOB_SCHEDULE, Span, SpanKind, Tracer

Settlements = dict[TimeOutcome, Settlement]
_Key = TypeVar("_Key", bound=Hashable)
_BeforeLast = tuple[Fire, str]
"""A job of a graph that is not the last: the fire, and the id of the job."""


class FiredJobs:
    """The part of the claims that inserts the jobs of `Fire`."""

    def __init__(self, database: Database, job_retention_ms: int, tracer: Tracer) -> None:
        self._tracer = tracer
        self._job_retention_ms = job_retention_ms
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
        settled: Settlements = {}
        claimed: set[str] = set()
        makers: dict[tuple[str, tuple[str, ...]], JobMaker] = {}
        group: dict[Fire, list[NewJob]] = {}
        work = 0
        for fire, schedule in fires.items():
            key = (fire.schedule, fire.keyed_by)
            if key not in makers:
                makers[key] = JobMaker(fire.schedule, schedule, fire.keyed_by)
            maker = makers[key]
            if group and work + maker.work > WORK_AT_ONCE_MAX:
                # What large payloads cost is cut, so that the loop turns meanwhile.
                settled |= await self._insert_group(group, claims, at_ms, claimed, majority=majority)
                group, work = {}, 0
            group[fire] = maker.fired(fire.nominal_ms, fire.after)
            work += maker.work
        settled |= await self._insert_group(group, claims, at_ms, claimed, majority=majority)
        return settled, claimed

    async def _insert_group(
        self,
        fires: Mapping[Fire, Sequence[NewJob]],
        claims: Mapping[str, Dispatch],
        at_ms: WallMs,
        claimed: set[str],
        *,
        majority: bool,
    ) -> Settlements:
        documents: dict[Fire, dict[str, Any]] = {}
        before_last: dict[_BeforeLast, dict[str, Any]] = {}
        spans: dict[str, Span] = {}
        for fire, jobs in fires.items():
            if jobs:
                said = {FIRED_ON: fired_on(fire.basis)}
                before_last |= {(fire, job.id): self._document(job, spans) | said for job in jobs[:-1]}
                claim = claims.get(fire.job_id)
                document = self._document(jobs[-1], spans)
                documents[fire] = document if claim is None else {**document, **claimed_fields(claim, at_ms)}
        settled: Settlements = dict.fromkeys(fires, Settlement.REFUSED)
        own: dict[_BeforeLast, bool] = {}
        if before_last:
            kept_back = await self._insert_before_last(before_last, own)
            settled |= kept_back
            documents = {fire: document for fire, document in documents.items() if fire not in kept_back}
        existing: set[Fire] = set()
        inserted = await self._inserted(documents, existing, majority=majority)
        others = await self._ids_of_others({fire: documents[fire] for fire in existing})
        settled.update([*inserted.items(), *others.items()])
        refused = [id for fire, id in own if settled[fire] is Settlement.REFUSED]
        if refused:
            await self._cancel(refused, at_ms)
        fired = {fire.job_id for fire in documents if settled[fire] is Settlement.DONE and fire not in existing}
        for id in (fired | {id for (_, id), is_new in own.items() if is_new}) & spans.keys():
            spans[id].end()
        claimed |= fired & set(claims)
        return settled

    def _document(self, job: NewJob, spans: dict[str, Span]) -> dict[str, Any]:
        if self._tracer.enabled:
            span = spans[job.id] = self._span(job)
            job = replace(job, trace=span.context)
        return new_job_document(job)

    async def _insert_before_last(
        self, documents: Mapping[_BeforeLast, dict[str, Any]], own: dict[_BeforeLast, bool]
    ) -> Settlements:
        """Insert the jobs of graphs that come before the last ones; the fires whose last jobs must not be inserted.

        With a majority, always: the last job must not survive the end of a primary that the others do not survive, as
        what does not exist counts as succeeded. Those that are there then go into ``own``, and whether they are new.
        """
        existing: set[_BeforeLast] = set()
        settled = await self._inserted(documents, existing, majority=True)
        settled |= await self._ids_of_others({key: documents[key] for key in existing})
        own.update((key, key not in existing) for key in documents if settled[key] is Settlement.DONE)
        kept_back: Settlements = {}
        for settlement in (Settlement.UNKNOWN, Settlement.REFUSED):  # refused, if any of them is
            kept_back |= {key[0]: settlement for key in documents if settled[key] is settlement}
        return kept_back

    async def cancel_incomplete(self, lost: Sequence[Fire], at_ms: WallMs) -> None:
        """Cancel what is there of the graphs of fires that will not be, except of those that happened all the same, and
        of those that were decided again after an edit.

        Which jobs a graph had, only their ids say: the schedule is gone, or another one by now.
        """
        # Refs follow a dot, and "/" is the character after it.
        ranges = [{"_id": {"$gte": fire.job_id, "$lt": f"{fire.job_id}/"}} for fire in lost]
        with faults("look for jobs of fires that are lost"):
            found = await self._jobs.find({"$or": ranges}, (*MADE_BY_FIELDS, FIRED_ON)).to_list(None)
        makers = {document["_id"]: maker_of(document) for document in found}
        decided_on = {document["_id"]: document.get(FIRED_ON) for document in found}
        by_id = {fire.job_id: fire for fire in lost}
        ids = [
            id
            for id, maker in makers.items()
            if is_before_last(id)
            and (last := last_job_id(id)) in by_id
            and decided_on[id] == fired_on(by_id[last].basis)
            and _may_have_fired(maker, by_id[last])
            and not (last in makers and _is_same(maker, makers[last]))
        ]
        if ids:
            await self._cancel(ids, at_ms)

    async def _cancel(self, ids: Sequence[str], at_ms: WallMs) -> None:
        """Cancel the jobs of graphs whose last jobs can't be: nothing of them is to run."""
        with faults("cancel the jobs of a fire that is none"):
            await self._jobs.with_options(write_concern=MAJORITY).update_many(
                {"_id": {"$in": list(ids)}}, cancelled(at_ms, self._job_retention_ms)
            )

    async def _ids_of_others(self, existing: Mapping[_Key, Mapping[str, Any]]) -> dict[_Key, Settlement]:
        """REFUSED for those whose id a job of another schedule has."""
        if not existing:
            return {}
        makers = await self._makers([document["_id"] for document in existing.values()])
        return {
            key: Settlement.REFUSED
            for key, document in existing.items()
            if not _is_same(maker_of(document), makers.get(document["_id"]))
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
        self, documents: Mapping[_Key, dict[str, Any]], existing: set[_Key], *, majority: bool
    ) -> dict[_Key, Settlement]:
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
        self, documents: Mapping[_Key, dict[str, Any]], existing: set[_Key], *, majority: bool
    ) -> dict[_Key, Settlement]:
        """Insert; those whose job id existed already go into ``existing``, whichever schedule made that job."""
        jobs = self._jobs.with_options(write_concern=MAJORITY if majority else ONE)
        settled: dict[_Key, Settlement] = dict.fromkeys(documents, Settlement.DONE)
        in_order = list(documents)
        with faults("insert fired jobs"):
            try:
                await jobs.insert_many([documents[key] for key in in_order], ordered=False)
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
