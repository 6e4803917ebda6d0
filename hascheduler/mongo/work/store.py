"""The store of processors: registrations, heartbeats, progress, and the start and end of attempts.

Every write of a job names the attempt and the processor, so a duplicate message changes nothing, and is acknowledged by
a majority, so that a handler never runs for a start that a failover rolls back. Starts and ends of many attempts share
exchanges (`request_batcher`).
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import structlog
from pymongo import UpdateOne

from hascheduler.errors import InvalidInput, WorldError
from hascheduler.model.collection import Collection
from hascheduler.model.documents.processor import encode_processor
from hascheduler.model.job import AttemptEnd, JobState, Move
from hascheduler.model.processor import ANY_DEFINITION, ProcessorRef
from hascheduler.model.schema_version import NEWEST_VERSION
from hascheduler.model.values.instants import WallMs
from hascheduler.mongo.connection import MAJORITY, Database
from hascheduler.mongo.faults import faults
from hascheduler.mongo.request_batcher import RequestBatcher
from hascheduler.mongo.state_updates import BY_ID, back_to_pending, source_states
from hascheduler.mongo.work.finishes import ENDS, Finish, Finishes, attempt_filter, ended_attempt_filter
from hascheduler.mongo.work.starts import Start, StartedAttempts, Starts
from hascheduler.ports import AttemptOutcome, FinishAnswer, HandlerProgress, StartedJob, StopRequests

REGISTRATION_KEPT_MS = 600_000
_EXPIRY = {"expire_at": {"$add": ["$$NOW", REGISTRATION_KEPT_MS]}, "reads": NEWEST_VERSION}
"""A registration outlives its last heartbeat for a while, so that people can see it, and then expires.

``reads`` is the newest version of documents that its writer reads: the processor, or the replica that serves a polling
one over HTTP.
"""


_FINISHES_PAUSE_S = 0.03
"""Only a slot waits for the end of a job.

With 500 jobs a second on two cores this pause saves a third of the writes, and all jobs start an eighth sooner.
"""


class MongoWorkStore:
    """`hascheduler.ports.WorkStore`; a job that ends here is deleted ``job_retention_ms`` later.

    ``require_own`` raises `StoreUnavailable` until the database is known to be the right one: nobody registers before
    that, and a processor that is not registered gets no jobs.
    """

    def __init__(
        self, database: Database, job_retention_ms: int, require_own: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        self._require_own = require_own
        self._jobs = database[Collection.JOBS.value].with_options(write_concern=MAJORITY)
        self._processors = database[Collection.PROCESSORS.value].with_options(write_concern=MAJORITY)
        started = StartedAttempts(job_retention_ms)
        self._starts = RequestBatcher(Starts(database, started).carry_out, "start attempts")
        self._finishes = RequestBatcher(
            Finishes(database, job_retention_ms, started).carry_out, "finish attempts", pause_s=_FINISHES_PAUSE_S
        )

    # Registration of the processor

    async def register(self, processor: ProcessorRef) -> None:
        if self._require_own is not None:
            await self._require_own()
        with faults("register the processor"):
            await self._processors.update_one(
                {"_id": processor.id},
                [{"$replaceWith": {"$mergeObjects": [{"$literal": encode_processor(processor)}, _EXPIRY]}}],
                upsert=True,
            )

    async def beat(self, processor_id: str, beat: int, *, draining: bool, consuming: bool = True, parked: int) -> bool:
        with faults("write the heartbeat"):
            answer = await self._processors.update_one(
                {"_id": processor_id},
                [{"$set": {"beat": beat, "draining": draining, "consuming": consuming, "parked": parked, **_EXPIRY}}],
            )
        return answer.matched_count == 1

    async def touch(self, processor_id: str, *, draining: bool | None = None) -> bool:
        flags = {} if draining is None else {"draining": draining}
        with faults("write the heartbeat"):
            answer = await self._processors.update_one(
                {"_id": processor_id}, [{"$set": {"beat": {"$add": ["$beat", 1]}, **flags, **_EXPIRY}}]
            )
        return answer.matched_count == 1

    async def deregister(self, processor_id: str) -> None:
        with faults("deregister the processor"):
            await self._processors.delete_one({"_id": processor_id})

    # Its attempts

    async def start(self, job_id: str, attempt: int, processor_id: str, at_ms: WallMs) -> StartedJob | None:
        return await self._starts.send(Start(job_id, attempt, processor_id, at_ms))

    async def finish(
        self, job_id: str, attempt: int, processor_id: str, outcome: AttemptOutcome, at_ms: WallMs
    ) -> FinishAnswer:
        if outcome.state not in ENDS:
            raise InvalidInput(
                ("outcome", "state"), f"{outcome.state} ends no attempt", "succeeded, failed or cancelled"
            )
        return await self._finishes.send(Finish(job_id, attempt, processor_id, outcome, at_ms))

    async def give_back(
        self, job_id: str, attempt: int, processor_id: str, reason: str, at_ms: WallMs, *, lost: bool = False
    ) -> bool:
        end = AttemptEnd.LOST if lost else AttemptEnd.GIVEN_BACK
        with faults("give the attempt back"):
            answer = await self._jobs.update_one(
                {**attempt_filter(job_id, attempt, processor_id), "state": {"$in": source_states(Move.GIVE_BACK)}},
                back_to_pending(end, reason, at_ms),
                hint=BY_ID,
            )
            if answer.matched_count:
                return True
            return bool(
                await self._jobs.find_one(
                    ended_attempt_filter(job_id, attempt, processor_id, [end.value]), {"_id": True}
                )
            )

    async def report(self, processor_id: str, reports: Mapping[tuple[str, int], HandlerProgress]) -> None:
        # No ``rev``: no mirror has the progress, and no compare-and-set depends on it.
        writes = [
            UpdateOne(
                {**attempt_filter(job_id, attempt, processor_id), "state": JobState.RUNNING.value},
                {"$set": {"progress": asdict(progress)}},
            )
            for (job_id, attempt), progress in reports.items()
        ]
        with faults("report the progress"):
            await self._jobs.bulk_write(writes, ordered=False)

    async def report_overdue(self, processor_id: str, since: Mapping[tuple[str, int], WallMs]) -> None:
        writes = [
            UpdateOne(
                {
                    **attempt_filter(job_id, attempt, processor_id),
                    "state": JobState.RUNNING.value,
                    "overdue_attempt": {"$ne": attempt},
                },
                {"$set": {"overdue_attempt": attempt, "overdue_since_ms": at_ms}, "$inc": {"rev": 1}},
            )
            for (job_id, attempt), at_ms in since.items()
        ]
        with faults("report the overdue attempts"):
            await self._jobs.bulk_write(writes, ordered=False)

    async def stop_requests(self, processor_id: str, running: Sequence[tuple[str, int]]) -> StopRequests:
        fields = {"state": True, "attempt": True, "processor": True, "cancel_requested_at_ms": True}
        ids = sorted({job_id for job_id, _ in running})
        with faults("read the standing of the running jobs"):
            jobs = {job["_id"]: job async for job in self._jobs.find({"_id": {"$in": ids}}, fields)}
        return StopRequests.of(running, jobs, processor_id)


log = structlog.get_logger(__name__)

_LIMIT_S = 1.0
_COUNTED_MAX = 1_000


async def count_servers(database: Database, definitions: frozenset[str], dead_after_ms: int) -> int | None:
    """Return how many processors that run some of these definitions take jobs there, at most a thousand.

    Return None if the database does not answer. The expiry of a registration shows when its last heartbeat was written.
    """
    last_beat = {"$add": ["$$NOW", REGISTRATION_KEPT_MS - dead_after_ms]}
    wanted: dict[str, Any] = {"draining": False, "$expr": {"$gt": ["$expire_at", last_beat]}}
    if ANY_DEFINITION not in definitions:
        wanted["definitions"] = {"$in": [ANY_DEFINITION, *sorted(definitions)]}
    try:
        with faults("count the processors", _LIMIT_S):
            return await database[Collection.PROCESSORS.value].count_documents(wanted, limit=_COUNTED_MAX)
    except WorldError as error:
        log.debug("processor_count_failed", database=database.name, error=str(error))
        return None
