"""Change many jobs, one slice a call: find up to ``limit`` jobs that match, then update them by compare-and-set.

A job whose state changed in between is found again by the next slice, or has ended. If all jobs of a slice changed in
between, the slice is read again, so a slice that changes nothing means that no matching job is left.
"""

from collections.abc import Sequence
from typing import Any

from hascheduler.model.collection import Collection
from hascheduler.model.job import TERMINAL, JobState, Move
from hascheduler.model.values.instants import WallMs
from hascheduler.mongo.connection import MAJORITY, Database
from hascheduler.mongo.faults import faults
from hascheduler.mongo.queries import job_query
from hascheduler.mongo.state_updates import NEXT_REV, expiry, revived, source_states, to_terminal
from hascheduler.ports import DELETED_IN_MS, AttemptOutcome, CancelledSome, JobSelection, revived_states

_TRIES = 5


class BulkChanges:
    """The part of the job store that changes many jobs; a cancelled job is deleted ``job_retention_ms`` later."""

    def __init__(self, database: Database, job_retention_ms: int) -> None:
        self._jobs = database[Collection.JOBS.value].with_options(write_concern=MAJORITY)
        self._job_retention_ms = job_retention_ms

    async def cancel_some(self, which: JobSelection, at_ms: WallMs, limit: int) -> CancelledSome:
        end = AttemptOutcome(JobState.CANCELLED)
        waits = {"state": {"$in": source_states(Move.CANCEL)}}
        ended = to_terminal(end, end.state.value, at_ms, kept_ms=self._job_retention_ms)
        runs = {"state": {"$in": source_states(Move.STOP)}, "cancel_requested_at_ms": None}
        requested = {"$set": {"cancel_requested_at_ms": at_ms}, "$inc": {"rev": 1}}
        return CancelledSome(*await self._changed_some(which, limit, (waits, ended), (runs, requested)))

    async def reprioritize_some(self, which: JobSelection, priority: int, limit: int) -> int:
        waits = {"state": JobState.PENDING.value, "priority": {"$ne": priority}}
        [changed] = await self._changed_some(which, limit, (waits, [{"$set": {"priority": priority, "rev": NEXT_REV}}]))
        return changed

    async def retry_some(self, which: JobSelection, at_ms: WallMs, limit: int) -> int:
        states = [state.value for state in revived_states(which)]
        ended = {"state": {"$in": states}, "finished_at_ms": {"$not": {"$gt": at_ms}}}
        [changed] = await self._changed_some(which, limit, (ended, revived()))
        return changed

    async def schedules_of(self, which: JobSelection) -> Sequence[str]:
        with faults("find the schedules of jobs"):
            found = await self._jobs.distinct("schedule", job_query(which))
        return [name for name in found if isinstance(name, str)]

    async def delete_some(self, which: JobSelection, at_ms: WallMs, limit: int) -> int:
        ended = {"state": {"$in": sorted(state.value for state in TERMINAL)}}
        deleted = {"$set": {"expire_at": expiry(at_ms, DELETED_IN_MS), "deleted_at_ms": at_ms}}
        [changed] = await self._changed_some(which.to_delete(at_ms), limit, (ended, deleted))
        return changed

    async def _changed_some(
        self, which: JobSelection, limit: int, *changes: tuple[dict[str, Any], Any]
    ) -> Sequence[int]:
        """Make each change of the jobs for which its condition holds, and return how many jobs each of them changed."""
        wanted = {"$and": [job_query(which), {"$or": [condition for condition, _ in changes]}]}
        with faults("change jobs"):
            for _ in range(_TRIES):
                found = await self._jobs.find(wanted, ["_id"]).limit(limit).to_list(None)
                if not found:
                    break
                ids = {"_id": {"$in": [job["_id"] for job in found]}}
                answers = [await self._jobs.update_many({**ids, **condition}, change) for condition, change in changes]
                if any(answer.modified_count for answer in answers):
                    return [answer.modified_count for answer in answers]
        return [0] * len(changes)
