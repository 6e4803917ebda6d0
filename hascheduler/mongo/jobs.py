"""Jobs as the API writes and reads them."""

from collections.abc import Sequence
from typing import Any

from pymongo import DESCENDING, ReturnDocument
from pymongo.errors import BulkWriteError, DuplicateKeyError

from hascheduler.errors import StoreUnavailable
from hascheduler.model.documents import Collection, new_job_document
from hascheduler.model.instants import WallMs
from hascheduler.model.job import JobState, Move, NewJob
from hascheduler.mongo.connection import MAJORITY, Database
from hascheduler.mongo.faults import DUPLICATE_KEY, faults
from hascheduler.mongo.moves import NEXT_REV, Pipeline, sources, terminal_fields
from hascheduler.ports import CancelAnswer, JobFilter, Outcome, StoredDocument

_NOT_LISTED = {"payload": False, "result": False, "attempts": False, "late_results": False}


class MongoJobStore:
    """`hascheduler.ports.JobStore`; a job that is cancelled here is deleted ``job_retention_ms`` later."""

    def __init__(self, database: Database, job_retention_ms: int) -> None:
        self._jobs = database[Collection.JOBS.value].with_options(write_concern=MAJORITY)
        self._job_retention_ms = job_retention_ms

    async def submit(self, job: NewJob) -> StoredDocument:
        document = new_job_document(job)
        with faults("submit the job"):
            try:
                await self._jobs.insert_one(document)
            except DuplicateKeyError:
                # A write that changes nothing: it waits until the job it meets has its majority.
                stored = await self._jobs.find_one_and_update(
                    {"_id": job.id}, {"$max": {"rev": 0}}, return_document=ReturnDocument.AFTER
                )
                if stored is None:
                    raise StoreUnavailable("submit the job: one by that id was deleted in between") from None
                return stored
        return document

    async def submit_many(self, jobs: Sequence[NewJob]) -> Sequence[bool]:
        new = [True] * len(jobs)
        with faults("submit the jobs"):
            try:
                await self._jobs.insert_many([new_job_document(job) for job in jobs], ordered=False)
            except BulkWriteError as error:
                failures = error.details.get("writeErrors", ())
                if error.details.get("writeConcernErrors") or any(f["code"] != DUPLICATE_KEY for f in failures):
                    raise
                for failure in failures:
                    new[failure["index"]] = False
        return new

    async def get(self, job_id: str) -> StoredDocument | None:
        with faults("read the job"):
            return await self._jobs.find_one({"_id": job_id})

    async def list(self, which: JobFilter, after: str | None, limit: int) -> Sequence[StoredDocument]:
        query: dict[str, Any] = {}
        if which.state is not None:
            query["state"] = which.state.value
        if which.definition is not None:
            query["definition"] = which.definition
        if which.schedule is not None:
            query["schedule"] = which.schedule
        if after is not None:
            query["_id"] = {"$lt": after}
        with faults("list the jobs"):
            return await self._jobs.find(query, _NOT_LISTED).sort("_id", DESCENDING).limit(limit).to_list(None)

    async def cancel(self, job_id: str, at_ms: WallMs) -> CancelAnswer | None:
        # One write for all states: with one for each, a job that moves in between could slip through them all.
        with faults("cancel the job"):
            before = await self._jobs.find_one_and_update(
                {"_id": job_id},
                _cancelled(at_ms, self._job_retention_ms),
                projection={"state": True},
                return_document=ReturnDocument.BEFORE,
            )
        if before is None:
            return None
        if before.get("state") in sources(Move.CANCEL):
            return CancelAnswer.CANCELLED
        return CancelAnswer.ALREADY_RUNNING if before.get("state") in sources(Move.STOP) else CancelAnswer.ALREADY_DONE


def _cancelled(at_ms: WallMs, kept_ms: int) -> Pipeline:
    ended = terminal_fields(Outcome(JobState.CANCELLED), JobState.CANCELLED.value, at_ms, kept_ms=kept_ms)
    asked = {"cancel_requested_at_ms": at_ms, "rev": NEXT_REV}
    not_asked_yet = {"$eq": [{"$ifNull": ["$cancel_requested_at_ms", None]}, None]}
    return [
        {
            "$replaceWith": {
                "$switch": {
                    "branches": [
                        {
                            "case": {"$in": ["$state", sources(Move.CANCEL)]},
                            "then": {"$mergeObjects": ["$$ROOT", ended]},
                        },
                        {
                            "case": {"$and": [{"$in": ["$state", sources(Move.STOP)]}, not_asked_yet]},
                            "then": {"$mergeObjects": ["$$ROOT", asked]},
                        },
                    ],
                    "default": "$$ROOT",
                }
            }
        }
    ]
