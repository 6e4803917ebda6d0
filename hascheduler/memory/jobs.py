"""Jobs as the API writes and reads them."""

from collections.abc import Sequence
from copy import deepcopy

from hascheduler.memory.connection import MemoryConnection
from hascheduler.memory.database import Document
from hascheduler.memory.moves import may, to_terminal
from hascheduler.model.documents import Collection, new_job_document
from hascheduler.model.instants import WallMs
from hascheduler.model.job import JobState, Move, NewJob
from hascheduler.ports import CancelAnswer, JobFilter, Outcome, StoredDocument

_NOT_LISTED = frozenset({"payload", "result", "attempts", "late_results"})


class MemoryJobStore:
    """`hascheduler.ports.JobStore`; a job that is cancelled here is deleted ``job_retention_ms`` later."""

    def __init__(self, connection: MemoryConnection, job_retention_ms: int) -> None:
        self._connection = connection
        self._job_retention_ms = job_retention_ms

    async def submit(self, job: NewJob) -> StoredDocument:
        async with self._connection.exchange("jobs.submit") as database:
            database.insert(Collection.JOBS, new_job_document(job))
            stored = database.find(Collection.JOBS, job.id)
            assert stored is not None
            return deepcopy(stored)

    async def submit_many(self, jobs: Sequence[NewJob]) -> Sequence[bool]:
        async with self._connection.exchange("jobs.submit_many") as database:
            return [database.insert(Collection.JOBS, new_job_document(job)) for job in jobs]

    async def get(self, job_id: str) -> StoredDocument | None:
        async with self._connection.exchange("jobs.get") as database:
            return deepcopy(database.find(Collection.JOBS, job_id))

    async def list(self, which: JobFilter, after: str | None, limit: int) -> Sequence[StoredDocument]:
        async with self._connection.exchange("jobs.list") as database:
            jobs = database.page(
                Collection.JOBS, after, limit, newest_first=True, which=lambda job: _matches(which, job)
            )
            return [deepcopy({name: job[name] for name in job if name not in _NOT_LISTED}) for job in jobs]

    async def cancel(self, job_id: str, at_ms: WallMs) -> CancelAnswer | None:
        async with self._connection.exchange("jobs.cancel") as database:
            job = database.find(Collection.JOBS, job_id)
            if job is None:
                return None
            if may(Move.CANCEL, job):
                end = Outcome(JobState.CANCELLED)
                fields = to_terminal(job, end, end.state.value, at_ms, kept_ms=self._job_retention_ms)
                database.update(Collection.JOBS, job, fields)
                return CancelAnswer.CANCELLED
            if not may(Move.STOP, job):
                return CancelAnswer.ALREADY_DONE
            if job.get("cancel_requested_at_ms") is None:
                database.update(Collection.JOBS, job, {"cancel_requested_at_ms": at_ms, "rev": job["rev"] + 1})
            return CancelAnswer.ALREADY_RUNNING


def _matches(which: JobFilter, job: Document) -> bool:
    wanted = {"state": which.state, "definition": which.definition, "schedule": which.schedule}
    return all(value is None or job.get(name) == value for name, value in wanted.items())
