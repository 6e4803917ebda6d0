"""Changes many jobs, one slice a call: finds up to ``limit`` jobs that match, then updates those by compare-and-set.

A job whose state changed between the two is found again by the next slice, or has ended. A slice whose jobs all changed
meanwhile is looked for again, so a slice that changes nothing means that no matching job is left.
"""

from typing import Any

from hascheduler.model.collection import Collection
from hascheduler.model.job import JobState, Move
from hascheduler.model.values.instants import WallMs
from hascheduler.mongo.connection import MAJORITY, Database
from hascheduler.mongo.faults import faults
from hascheduler.mongo.queries import job_query
from hascheduler.mongo.state_updates import NEXT_REV, revived, source_states, to_terminal
from hascheduler.ports import AttemptOutcome, CancelledSome, JobSelection, revived_states

_TRIES = 5


class BulkChanges:
    """The part of the job store that changes many jobs; a cancelled job is deleted ``job_retention_ms`` later."""

    def __init__(self, database: Database, job_retention_ms: int) -> None:
        self._jobs = database[Collection.JOBS.value].with_options(write_concern=MAJORITY)
        self._job_retention_ms = job_retention_ms

    async def cancel_some(self, which: JobSelection, at_ms: WallMs, limit: int) -> CancelledSome:
        ends = {"state": {"$in": source_states(Move.CANCEL)}}
        stops = {"state": {"$in": source_states(Move.STOP)}, "cancel_requested_at_ms": None}
        ended = AttemptOutcome(JobState.CANCELLED)
        with faults("cancel jobs"):
            for _ in range(_TRIES):
                ids = await self._found(which, {"$or": [ends, stops]}, limit)
                if not ids:
                    break
                cancelled = await self._jobs.update_many(
                    {"_id": {"$in": ids}, **ends},
                    to_terminal(ended, JobState.CANCELLED.value, at_ms, kept_ms=self._job_retention_ms),
                )
                requested = await self._jobs.update_many(
                    {"_id": {"$in": ids}, **stops}, {"$set": {"cancel_requested_at_ms": at_ms}, "$inc": {"rev": 1}}
                )
                if cancelled.modified_count or requested.modified_count:
                    return CancelledSome(cancelled.modified_count, requested.modified_count)
        return CancelledSome(0, 0)

    async def reprioritize_some(self, which: JobSelection, priority: int, limit: int) -> int:
        waits = {"state": JobState.PENDING.value, "priority": {"$ne": priority}}
        return await self._changed_some(which, waits, [{"$set": {"priority": priority, "rev": NEXT_REV}}], limit)

    async def retry_some(self, which: JobSelection, at_ms: WallMs, limit: int) -> int:
        states = [state.value for state in revived_states(which)]
        ended = {"state": {"$in": states}, "finished_at_ms": {"$not": {"$gt": at_ms}}}
        return await self._changed_some(which, ended, revived(), limit)

    async def _changed_some(
        self, which: JobSelection, condition: dict[str, Any], change: list[dict[str, Any]], limit: int
    ) -> int:
        with faults("change jobs"):
            for _ in range(_TRIES):
                ids = await self._found(which, condition, limit)
                if not ids:
                    break
                answer = await self._jobs.update_many({"_id": {"$in": ids}, **condition}, change)
                if answer.modified_count:
                    return answer.modified_count
        return 0

    async def _found(self, which: JobSelection, condition: dict[str, Any], limit: int) -> list[str]:
        documents = (
            await self._jobs.find({"$and": [job_query(which), condition]}, {"_id": True}).limit(limit).to_list(None)
        )
        return [document["_id"] for document in documents]
