"""The store of jobs: reads and changes one job for the API, and delegates the rest to its parts."""

from collections.abc import Collection, Sequence
from typing import Any

from pymongo import ASCENDING, ReturnDocument

from hascheduler.model.documents.job import (
    IDEMPOTENCY_MS,
    MADE_BY_FIELDS,
    decode_job_state,
    maker_of,
    stored_waits_for,
)
from hascheduler.model.job import DEPENDENCY_ERROR, TERMINAL, JobState, Move, is_batch
from hascheduler.model.values.instants import WallMs
from hascheduler.mongo.bulk_changes import BulkChanges
from hascheduler.mongo.connection import Database, awaited
from hascheduler.mongo.faults import faults
from hascheduler.mongo.jobs.counts import JobCounter
from hascheduler.mongo.jobs.lists import NOT_LISTED, JobLists
from hascheduler.mongo.jobs.submissions import Submissions
from hascheduler.mongo.queries import DEPENDS_ON, SCANNED_MAX, job_query
from hascheduler.mongo.state_updates import BY_ID, NEXT_REV, Pipeline, cancelled, revived, source_states
from hascheduler.ports import (
    CancelAnswer,
    Dependent,
    FailedJobs,
    JobCounts,
    JobPage,
    JobSelection,
    KeyedRetry,
    KnownJob,
    ListPosition,
    ReprioritizeAnswer,
    RetryKey,
    StoredDocument,
    dependent_of,
)
from hascheduler.ports.jobs import DEPENDENT_FIELDS, keyed_retry, stored_retry_key

_ENDED = sorted(state.value for state in TERMINAL)


class MongoJobStore(Submissions, BulkChanges):
    """`hascheduler.ports.JobStore`; a job that is cancelled here is deleted ``job_retention_ms`` later."""

    def __init__(self, database: Database, job_retention_ms: int) -> None:
        BulkChanges.__init__(self, database, job_retention_ms)
        Submissions.__init__(self, database, job_retention_ms)
        self._lists = JobLists(database)
        self._counts = JobCounter(database)

    async def get(self, job_id: str) -> StoredDocument | None:
        with faults("read the job"):
            return await self._jobs.find_one({"_id": job_id})

    async def list(self, which: JobSelection, after: ListPosition | None, limit: int) -> JobPage:
        return await self._lists.page(which, after, limit)

    async def known(self, ids: Sequence[str]) -> Sequence[KnownJob]:
        batches = [id for id in ids if is_batch(id)]
        jobs = [id for id in ids if not is_batch(id)]
        found = list(await self._known({"_id": {"$in": jobs}}, len(jobs))) if jobs else []
        return [*found, *(await self._known_batches(batches))] if batches else found

    async def batch(self, batch: str, limit: int) -> Sequence[KnownJob]:
        return await self._known({"batch": batch}, limit)

    async def count(self, which: JobSelection, states: Sequence[JobState], limit: int) -> int:
        query = {**job_query(which), "$and": [{"state": {"$in": [state.value for state in states]}}]}
        with faults("count the jobs"):
            return await self._jobs.count_documents(query, limit=limit)

    async def counts(self, which: JobSelection, limit: int) -> JobCounts:
        return await self._counts.counts(which, limit)

    async def failed(self, which: JobSelection, limit: int) -> FailedJobs:
        return await self._lists.failed(which, limit)

    async def cancel(self, job_id: str, at_ms: WallMs) -> CancelAnswer | None:
        # One write for all states: with one for each, a job that moves in between could slip through them all.
        before = await self._changed(job_id, cancelled(at_ms, self._job_retention_ms), "cancel the job")
        if before is None:
            return None
        if before in source_states(Move.CANCEL):
            return CancelAnswer.CANCELLED
        return CancelAnswer.ALREADY_RUNNING if before in source_states(Move.STOP) else CancelAnswer.ALREADY_DONE

    async def reprioritize(self, job_id: str, priority: int) -> ReprioritizeAnswer | None:
        changed = {"$set": {"priority": priority, "rev": NEXT_REV}}
        waits = {"$eq": ["$state", JobState.PENDING.value]}
        before = await self._changed(job_id, _where(waits, changed), "reprioritize the job")
        if before is None:
            return None
        if before == JobState.PENDING:
            return ReprioritizeAnswer.OK
        return ReprioritizeAnswer.ALREADY_DONE if before in _ENDED else ReprioritizeAnswer.ALREADY_RUNNING

    async def retry(self, job_id: str, at_ms: WallMs, key: RetryKey | None = None) -> KeyedRetry | None:
        to_revive: dict[str, Any] = {"$in": ["$state", source_states(Move.REVIVE)]}
        if key is not None:
            is_same = [{"$eq": ["$$this.key", key.digest]}, {"$gt": ["$$this.at_ms", at_ms - IDEMPOTENCY_MS]}]
            same = {"$map": {"input": {"$ifNull": ["$retry_keys", []]}, "in": {"$and": is_same}}}
            to_revive = {"$and": [to_revive, {"$not": [{"$anyElementTrue": [same]}]}]}
        change = _where(to_revive, revived(key=stored_retry_key(key, at_ms))[0])
        with faults("retry the job"):
            before = await self._jobs.find_one_and_update(
                {"_id": job_id}, change, projection=["state", "retry_keys"], return_document=ReturnDocument.BEFORE
            )
        return None if before is None else keyed_retry(before, key, at_ms)

    async def dependents(
        self, ids: Sequence[str], tenant: str | None, known: Sequence[str], limit: int
    ) -> Sequence[Dependent]:
        query: dict[str, Any] = {"depends_on": {"$in": list(ids)}, "_id": {"$nin": list(known)}}
        if tenant is not None:
            query["tenant"] = tenant
        with faults("find the dependents"):
            found = self._jobs.find(query, DEPENDENT_FIELDS).hint(DEPENDS_ON).sort("_id", ASCENDING).limit(limit)
            return [dependent_of(job) for job in await found.to_list(None)]

    async def retry_dependent(
        self, job: Dependent, waits_for: Sequence[str], at_ms: WallMs, key: RetryKey | None = None
    ) -> bool:
        unchanged = {"_id": job.id, "rev": job.rev, "state": {"$in": source_states(Move.REVIVE)}}
        with faults("retry the dependent"):
            answer = await self._jobs.update_one(
                unchanged, revived(stored_waits_for(job.id, waits_for), stored_retry_key(key, at_ms))
            )
        return bool(answer.modified_count)

    async def unreported(
        self,
        definitions: Collection[str],
        since_ms: WallMs,
        limit: int,
        ids: Collection[str] | None = None,
        *,
        not_of: Collection[str] = (),
    ) -> Sequence[StoredDocument]:
        failed: dict[str, Any] = {"state": JobState.FAILED.value} | ({} if ids is None else {"_id": {"$in": list(ids)}})
        by_definition = {
            "on_failure": None,
            "definition": {"$in": list(definitions)},
            "error": {"$not": {"$regex": f"^{DEPENDENCY_ERROR}"}},
        }
        wanted = {
            "finished_at_ms": {"$gte": since_ms},
            "tenant": {"$nin": list(not_of)},
            "failed_job": None,
            "on_failure_job": None,
            "$or": [{"on_failure": {"$gt": ""}}, by_definition],
        }
        stages: list[dict[str, Any]] = [{"$match": failed}]
        if ids is None:
            stages += [{"$sort": {"submitted_at_ms": -1, "_id": -1}}, {"$limit": SCANNED_MAX}]
        stages += [{"$match": wanted}, {"$limit": limit}, {"$project": NOT_LISTED}]
        with faults("find the failures to report"):
            cursor = await awaited(self._jobs.aggregate(stages, hint="state_submitted" if ids is None else BY_ID))
            found: list[StoredDocument] = await cursor.to_list(None)
        return found

    async def reported(self, job_id: str, attempt: int, report: str) -> None:
        # No ``rev``: no mirror has the field, and no compare-and-set depends on it.
        with faults("mark the failure as reported"):
            await self._jobs.update_one(
                {"_id": job_id, "state": JobState.FAILED.value, "attempt": attempt},
                {"$set": {"on_failure_job": report}},
                hint=BY_ID,
            )

    async def _known(self, query: dict[str, Any], limit: int) -> Sequence[KnownJob]:
        with faults("find the jobs"):
            documents = await self._jobs.find(query, ["state", *MADE_BY_FIELDS]).limit(limit).to_list(None)
        return [KnownJob(job["_id"], str(job.get("tenant")), decode_job_state(job), maker_of(job)) for job in documents]

    async def _known_batches(self, batches: Sequence[str]) -> Sequence[KnownJob]:
        rows: list[dict[str, Any]] = [
            {"$match": {"batch": {"$in": list(batches)}}},
            {"$group": {"_id": {"batch": "$batch", "tenant": "$tenant", "state": "$state"}}},
        ]
        with faults("find the batches"):
            cursor = await awaited(self._jobs.aggregate(rows))
            found = [row["_id"] for row in await cursor.to_list(None)]
        return [KnownJob(row["batch"], str(row.get("tenant")), decode_job_state(row)) for row in found]

    async def _changed(self, job_id: str, change: Pipeline, doing: str) -> str | None:
        """Apply ``change`` and return the state that the job was in before; None if there is no such job."""
        with faults(doing):
            before = await self._jobs.find_one_and_update(
                {"_id": job_id}, change, projection={"state": True}, return_document=ReturnDocument.BEFORE
            )
        return None if before is None else str(before.get("state"))


def _where(condition: dict[str, Any], change: dict[str, Any]) -> Pipeline:
    """Return a pipeline that applies ``change``, a ``$set`` stage, if ``condition`` holds, and else changes nothing."""
    fields = change["$set"]
    return [{"$replaceWith": {"$cond": [condition, {"$mergeObjects": ["$$ROOT", fields]}, "$$ROOT"]}}]
