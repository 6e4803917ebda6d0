"""The traces of jobs that are being dispatched."""

from collections.abc import Mapping, Sequence

from hascheduler.model.collection import Collection
from hascheduler.model.trace import trace_context
from hascheduler.ports import TracedJob
from hascheduler.testing.memory.connection import MemoryConnection


class MemoryJobTraces:
    """`hascheduler.ports.JobTraces`."""

    def __init__(self, connection: MemoryConnection) -> None:
        self._connection = connection

    async def of(self, job_ids: Sequence[str]) -> Mapping[str, TracedJob]:
        async with self._connection.exchange("traces.of") as database:
            found = [job for id in job_ids if (job := database.find(Collection.JOBS, id)) is not None]
        return {
            job["_id"]: TracedJob(str(job.get("definition")), job.get("schedule"), trace_context(job.get("trace")))
            for job in found
        }
