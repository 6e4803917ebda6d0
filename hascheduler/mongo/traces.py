"""The traces of jobs that are being dispatched: one read by id for a whole batch of messages."""

from collections.abc import Mapping, Sequence

from hascheduler.model.collection import Collection
from hascheduler.model.trace import trace_context
from hascheduler.mongo.connection import LOCAL_READ, Database
from hascheduler.mongo.faults import faults
from hascheduler.ports import TracedJob

READ_LIMIT_S = 0.5
"""Messages wait for this read; a message without its trace is better than a late one."""


class MongoJobTraces:
    """`hascheduler.ports.JobTraces`."""

    def __init__(self, database: Database) -> None:
        # A local read: it must see claims of a moment ago, with or without a majority.
        self._jobs = database[Collection.JOBS.value].with_options(read_concern=LOCAL_READ)

    async def of(self, job_ids: Sequence[str]) -> Mapping[str, TracedJob]:
        fields = {"definition": True, "schedule": True, "trace": True}
        with faults("read the traces of jobs", READ_LIMIT_S):
            jobs = await self._jobs.find({"_id": {"$in": list(job_ids)}}, fields).to_list(None)
        return {
            job["_id"]: TracedJob(str(job.get("definition")), job.get("schedule"), trace_context(job.get("trace")))
            for job in jobs
        }
