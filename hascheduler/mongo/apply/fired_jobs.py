"""Insert the jobs of nominal times, as dispatched if the same batch dispatches them.

If a fire makes a graph of jobs, all but the last are inserted first, each after those that it depends on, and the last
one once all of them exist. That last insert is the fire: after a crash in between, the same decision completes the
graph. If the fire is refused, or lost because its schedule was edited or deleted in between, no job of it is left to
run.

A job's trace begins here: a repeated insert makes a second span, and only the span of the inserted job ends and is
exported.
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
    """The part of the claim store that inserts the jobs of `Fire`."""

    def __init__(self, database: Database, job_retention_ms: int, tracer: Tracer) -> None:
        self._tracer = tracer
        self._job_retention_ms = job_retention_ms
        # Local reads: they must see this store's latest writes, with or without a majority.
        self._jobs = database[Collection.JOBS.value].with_options(read_concern=LOCAL_READ)

    async def insert(
        self,
        fires: Mapping[Fire, Mapping[str, Any]],
        claims: Mapping[str, Dispatch],
        at_ms: WallMs,
        *,
        majority: bool,
    ) -> tuple[Settlements, set[str]]:
        """Insert the jobs of these fires (each with its stored schedule), and return one settlement each.

        It is DONE, UNKNOWN, or REFUSED if there can be no job: it can't be stored, or a job of an earlier schedule of
        that name has its id. A job whose first attempt is among ``claims`` (by job id) is inserted as dispatched, which
        saves a write and an event for every mirror; the second result holds the ids of these jobs.
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
                # Large payloads are split into groups, so that the event loop turns in between.
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
                marks = {FIRED_ON: fired_on(fire.basis)}
                before_last |= {(fire, job.id): self._document(job, spans) | marks for job in jobs[:-1]}
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
        """Insert all jobs of graphs but the last ones, and return the fires whose last jobs must not be inserted.

        Always with a majority: the last job must not survive a primary's failure that the others do not survive, as a
        missing job counts as succeeded. Jobs that exist then are added to ``own``, with True if they are new.
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
        """Cancel the existing jobs of lost fires, unless the fire happened anyway or was decided again after an edit.

        The ids of the jobs are the only record of the graph: the schedule is gone or replaced by now.
        """
        # Refs follow a dot, and "/" is the character after it.
        ranges = [{"_id": {"$gte": fire.job_id, "$lt": f"{fire.job_id}/"}} for fire in lost]
        with faults("find the jobs of lost fires"):
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
        """Cancel the jobs of graphs that can't get their last job: none of them may run."""
        with faults("cancel the jobs of refused fires"):
            await self._jobs.with_options(write_concern=MAJORITY).update_many(
                {"_id": {"$in": list(ids)}}, cancelled(at_ms, self._job_retention_ms)
            )

    async def _ids_of_others(self, existing: Mapping[_Key, Mapping[str, Any]]) -> dict[_Key, Settlement]:
        """Return REFUSED for the jobs whose id a job of another schedule has."""
        if not existing:
            return {}
        makers = await self._makers([document["_id"] for document in existing.values()])
        return {
            key: Settlement.REFUSED
            for key, document in existing.items()
            if not _is_same(maker_of(document), makers.get(document["_id"]))
        }

    async def found(self, fires: Sequence[Fire]) -> set[TimeOutcome]:
        """Return the fires whose jobs exist, made by the schedule of the fire."""
        if not fires:
            return set()
        by_id = {fire.job_id: fire for fire in fires}
        makers = await self._makers(list(by_id))
        return {by_id[id] for id, maker in makers.items() if _may_have_fired(maker, by_id[id])}

    async def _makers(self, ids: Sequence[str]) -> dict[str, ScheduleId | None]:
        with faults("find the fired jobs"):
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
            # The driver refuses to send one of them, and the others must fire all the same: find it by halving.
            if len(documents) == 1:
                return dict.fromkeys(documents, Settlement.REFUSED)
            in_order = list(documents.items())
            half = len(in_order) // 2
            first = await self._inserted(dict(in_order[:half]), existing, majority=majority)
            return first | await self._inserted(dict(in_order[half:]), existing, majority=majority)

    async def _insert(
        self, documents: Mapping[_Key, dict[str, Any]], existing: set[_Key], *, majority: bool
    ) -> dict[_Key, Settlement]:
        """Insert, and add those whose job id existed to ``existing``, whichever schedule made that job."""
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
