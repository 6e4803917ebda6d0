"""What processors write: their registration and heartbeat, and the start and end of their attempts.

Every write of a job names the attempt and the processor and is acknowledged by a majority, so that a handler never
runs for a start that a failover takes back.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pymongo import ReturnDocument, UpdateOne

from hascheduler.errors import InvalidInput
from hascheduler.model.definition import Definition
from hascheduler.model.documents import Collection, encode_processor
from hascheduler.model.instants import WallMs
from hascheduler.model.job import OCCUPYING, TRANSITIONS, AttemptEnd, JobState, Move
from hascheduler.model.processor import ProcessorRef
from hascheduler.mongo.connection import MAJORITY, Database
from hascheduler.mongo.faults import faults
from hascheduler.mongo.moves import NEXT_REV, back_to_pending, sources, to_terminal
from hascheduler.mongo.rules import Rules
from hascheduler.ports import FinishAnswer, Outcome, Progress, Standing, StartedJob, encode_progress

LATE_RESULTS_KEPT_MAX = 10
REGISTRATION_KEPT_MS = 600_000
_EXPIRY = {"expire_at": {"$add": ["$$NOW", REGISTRATION_KEPT_MS]}}
"""A registration outlives its last heartbeat for a while, for people to see, and then goes by itself."""

_STARTED_FIELDS = (
    "attempt", "definition", "target", "payload", "tenant", "labels", "schedule", "nominal_ms", "submitted_at_ms",
    "started_at_ms", "first_started_at_ms", "failures",
)  # fmt: skip


class MongoWorkStore:
    """`hascheduler.ports.WorkStore`; a job that ends here is deleted ``job_retention_ms`` later."""

    def __init__(self, database: Database, job_retention_ms: int) -> None:
        self._jobs = database[Collection.JOBS.value].with_options(write_concern=MAJORITY)
        self._processors = database[Collection.PROCESSORS.value].with_options(write_concern=MAJORITY)
        self._rules = Rules(database)
        self._job_retention_ms = job_retention_ms

    # The processor

    async def register(self, processor: ProcessorRef) -> None:
        with faults("register the processor"):
            await self._processors.update_one(
                {"_id": processor.id},
                [{"$replaceWith": {"$mergeObjects": [{"$literal": encode_processor(processor)}, _EXPIRY]}}],
                upsert=True,
            )

    async def beat(self, processor_id: str, beat: int, *, draining: bool, parked: int) -> bool:
        with faults("write the heartbeat"):
            answer = await self._processors.update_one(
                {"_id": processor_id},
                [{"$set": {"beat": beat, "draining": draining, "parked": parked, **_EXPIRY}}],
            )
        return answer.matched_count == 1

    async def touch(self, processor_id: str, *, draining: bool | None = None) -> bool:
        account = {} if draining is None else {"draining": draining}
        with faults("write the heartbeat"):
            answer = await self._processors.update_one(
                {"_id": processor_id}, [{"$set": {"beat": {"$add": ["$beat", 1]}, **account, **_EXPIRY}}]
            )
        return answer.matched_count == 1

    async def deregister(self, processor_id: str) -> None:
        with faults("deregister the processor"):
            await self._processors.delete_one({"_id": processor_id})

    # Its attempts

    async def start(self, job_id: str, attempt: int, processor_id: str, at_ms: WallMs) -> StartedJob | None:
        # A running job matches too and is left as it is: the repeat after an unknown answer. As a write, even one
        # that changes nothing waits for the majority, so the first one's success is then certain.
        held = _held(job_id, attempt, processor_id)
        states = sorted({*sources(Move.START), JobState.RUNNING.value})
        starting = {"$in": ["$state", sources(Move.START)]}
        with faults("start the attempt"):
            job = await self._jobs.find_one_and_update(
                {**held, "state": {"$in": states}},
                [
                    {
                        "$set": {
                            "state": JobState.RUNNING.value,
                            "started_at_ms": {"$cond": [starting, at_ms, "$started_at_ms"]},
                            "first_started_at_ms": {"$ifNull": ["$first_started_at_ms", at_ms]},
                            "progress": {"$cond": [starting, None, "$progress"]},
                            "rev": {"$cond": [starting, NEXT_REV, "$rev"]},
                        }
                    }
                ],
                projection=_STARTED_FIELDS,
                return_document=ReturnDocument.AFTER,
            )
        return None if job is None else _started(job, await self._rules.of(job["definition"]))

    async def finish(
        self, job_id: str, attempt: int, processor_id: str, outcome: Outcome, at_ms: WallMs
    ) -> FinishAnswer:
        state = outcome.state
        move = Move.STOP if state is JobState.CANCELLED else Move.FINISH
        if state not in TRANSITIONS[move].targets:
            raise InvalidInput(("outcome", "state"), f"{state} ends no attempt", "succeeded, failed or cancelled")
        with faults("finish the attempt"):
            held = _held(job_id, attempt, processor_id)
            if outcome.retry_at_ms is not None and state is JobState.FAILED:
                answer = await self._jobs.update_one(
                    {**held, "state": {"$in": sources(Move.RETRY)}, "cancel_requested_at_ms": None},
                    back_to_pending(state.value, outcome.error, at_ms, retry_at_ms=outcome.retry_at_ms),
                )
                if answer.matched_count:
                    return FinishAnswer.DONE
                # Not again, if somebody has asked for it to be cancelled.
                move, outcome = Move.STOP, Outcome(JobState.CANCELLED, error=outcome.error)
            answer = await self._jobs.update_one(
                {**held, "state": {"$in": sources(move)}},
                to_terminal(outcome, state.value, at_ms, kept_ms=self._job_retention_ms),
            )
            if answer.matched_count:
                return FinishAnswer.DONE
            ends = sorted(end.value for end in TRANSITIONS[Move.FINISH].targets | TRANSITIONS[Move.STOP].targets)
            if await self._jobs.find_one(_ended(job_id, attempt, processor_id, ends), {"_id": True}):
                return FinishAnswer.DONE
            await self._keep_late_result(job_id, attempt, processor_id, outcome, at_ms)
        return FinishAnswer.LATE

    async def give_back(self, job_id: str, attempt: int, processor_id: str, reason: str, at_ms: WallMs) -> bool:
        with faults("give the attempt back"):
            answer = await self._jobs.update_one(
                {**_held(job_id, attempt, processor_id), "state": {"$in": sources(Move.GIVE_BACK)}},
                back_to_pending(AttemptEnd.GIVEN_BACK, reason, at_ms),
            )
            if answer.matched_count:
                return True
            return bool(
                await self._jobs.find_one(
                    _ended(job_id, attempt, processor_id, [AttemptEnd.GIVEN_BACK.value]), {"_id": True}
                )
            )

    async def report(self, processor_id: str, reports: Mapping[tuple[str, int], Progress]) -> None:
        # No rev: no mirror has it, and it is no version that anybody compares with.
        writes = [
            UpdateOne(
                {**_held(job_id, attempt, processor_id), "state": JobState.RUNNING.value},
                {"$set": {"progress": encode_progress(progress)}},
            )
            for (job_id, attempt), progress in reports.items()
        ]
        with faults("report the progress"):
            await self._jobs.bulk_write(writes, ordered=False)

    async def standing(self, processor_id: str, running: Sequence[tuple[str, int]]) -> Standing:
        fields = {"state": True, "attempt": True, "processor": True, "cancel_requested_at_ms": True}
        ids = sorted({job_id for job_id, _ in running})
        with faults("read the standing of the running jobs"):
            jobs = {job["_id"]: job async for job in self._jobs.find({"_id": {"$in": ids}}, fields)}
        cancelled, revoked = set(), set()
        for job_id, attempt in running:
            job = jobs.get(job_id)
            if job is None or not _is_held(job, attempt, processor_id):
                revoked.add((job_id, attempt))
            elif job.get("cancel_requested_at_ms") is not None:
                cancelled.add((job_id, attempt))
        return Standing(frozenset(cancelled), frozenset(revoked))

    async def _keep_late_result(
        self, job_id: str, attempt: int, processor_id: str, outcome: Outcome, at_ms: WallMs
    ) -> None:
        late = {
            "attempt": attempt,
            "processor": processor_id,
            "state": outcome.state.value,
            "result": outcome.result,
            "error": outcome.error,
            "at_ms": at_ms,
        }
        same = {"$elemMatch": {"attempt": attempt, "processor": processor_id}}
        await self._jobs.update_one(
            {"_id": job_id, "late_results": {"$not": same}},  # once, however often the finish is repeated
            {"$push": {"late_results": {"$each": [late], "$slice": -LATE_RESULTS_KEPT_MAX}}, "$inc": {"rev": 1}},
        )


def _held(job_id: str, attempt: int, processor_id: str) -> dict[str, Any]:
    return {"_id": job_id, "attempt": attempt, "processor": processor_id}


def _is_held(job: Mapping[str, Any], attempt: int, processor_id: str) -> bool:
    return str(job.get("state")) in OCCUPYING and job.get("attempt") == attempt and job.get("processor") == processor_id


def _ended(job_id: str, attempt: int, processor_id: str, outcomes: list[str]) -> dict[str, Any]:
    record = {"number": attempt, "processor": processor_id, "outcome": {"$in": outcomes}}
    return {"_id": job_id, "attempts": {"$elemMatch": record}}


def _started(job: Mapping[str, Any], rules: Definition) -> StartedJob:
    nominal_ms = job.get("nominal_ms")
    return StartedJob(
        id=job["_id"],
        attempt=job["attempt"],
        definition=job["definition"],
        target=job["target"],
        payload=job.get("payload"),
        tenant=job["tenant"],
        labels=job.get("labels") or {},
        schedule=job.get("schedule"),
        nominal_ms=None if nominal_ms is None else WallMs(nominal_ms),
        submitted_at_ms=WallMs(job["submitted_at_ms"]),
        started_at_ms=WallMs(job["started_at_ms"]),
        first_started_at_ms=WallMs(job["first_started_at_ms"]),
        failures=job.get("failures") or 0,
        rules=rules,
    )
