"""The store of processors: registrations, heartbeats, progress, and the start and end of attempts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from hascheduler import ports
from hascheduler.dispatch.settlements import has_attempt_record
from hascheduler.errors import InvalidInput
from hascheduler.model.collection import Collection
from hascheduler.model.documents.processor import encode_processor
from hascheduler.model.job import TRANSITIONS, AttemptEnd, JobState, Move
from hascheduler.model.processor import ProcessorRef
from hascheduler.model.values.instants import WallMs
from hascheduler.testing.memory.database import Document, MemoryDatabase, RetainingStore, copied
from hascheduler.testing.memory.state_updates import back_to_pending, is_held, may, started, to_terminal

LATE_RESULTS_KEPT_MAX = 3
REGISTRATION_KEPT_MS = 600_000


class MemoryWorkStore(RetainingStore):
    """`hascheduler.ports.WorkStore`; a job that ends here is deleted ``retention_ms`` later."""

    # The processor

    async def register(self, processor: ProcessorRef) -> None:
        async with self._connection.exchange("work.register") as database:
            database.replace(Collection.PROCESSORS, {**encode_processor(processor), **_expiry(database)})

    async def beat(self, processor_id: str, beat: int, *, draining: bool, consuming: bool = True, parked: int) -> bool:
        async with self._connection.exchange("work.beat") as database:
            account = {"beat": beat, "draining": draining, "consuming": consuming, "parked": parked}
            return _update(database, processor_id, lambda _: account)

    async def touch(self, processor_id: str, *, draining: bool | None = None) -> bool:
        def account(processor: Document) -> Mapping[str, Any]:
            drains = {} if draining is None else {"draining": draining}
            return {"beat": processor["beat"] + 1, **drains}

        async with self._connection.exchange("work.touch") as database:
            return _update(database, processor_id, account)

    async def deregister(self, processor_id: str) -> None:
        async with self._connection.exchange("work.deregister") as database:
            database.delete(Collection.PROCESSORS, processor_id)

    # Its attempts

    async def start(self, job_id: str, attempt: int, processor_id: str, at_ms: WallMs) -> ports.StartedJob | None:
        async with self._connection.exchange("work.start") as database:
            job = database.find(Collection.JOBS, job_id)
            if job is None or not is_held(job, attempt, processor_id):
                return None
            if may(Move.START, job):
                job = database.update(Collection.JOBS, job, started(job, at_ms))
            elif job.get("state") != JobState.RUNNING:
                return None
            definition = database.find(Collection.DEFINITIONS, job["definition"])
            return ports.StartedJob.of(
                job, copied(job.get("payload")), ports.rules_of(job["definition"], definition), at_ms
            )

    async def finish(
        self, job_id: str, attempt: int, processor_id: str, outcome: ports.AttemptOutcome, at_ms: WallMs
    ) -> ports.FinishAnswer:
        state = outcome.state
        move = Move.STOP if state is JobState.CANCELLED else Move.FINISH
        if state not in TRANSITIONS[move].targets:
            raise InvalidInput(("outcome", "state"), f"{state} ends no attempt", "succeeded, failed or cancelled")
        async with self._connection.exchange("work.finish") as database:
            job = database.find(Collection.JOBS, job_id)
            if job is None:
                return ports.FinishAnswer.LATE
            if outcome.retry_at_ms is not None and state is JobState.FAILED:
                is_wanted = job.get("cancel_requested_at_ms") is None
                if is_held(job, attempt, processor_id) and may(Move.RETRY, job) and is_wanted:
                    back = back_to_pending(
                        job,
                        state.value,
                        outcome.error,
                        at_ms,
                        retry_at_ms=outcome.retry_at_ms,
                        traceback=outcome.traceback,
                    )
                    database.update(Collection.JOBS, job, back)
                    return ports.FinishAnswer.DONE
                # A job whose cancellation was requested is not retried.
                move, outcome = Move.STOP, ports.AttemptOutcome(JobState.CANCELLED, error=outcome.error)
            if is_held(job, attempt, processor_id) and may(move, job):
                fields = to_terminal(job, outcome, outcome.attempt_end, at_ms, kept_ms=self._retention_ms)
                database.update(Collection.JOBS, job, fields)
                return ports.FinishAnswer.DONE
            ends = {outcome.attempt_end, *TRANSITIONS[Move.FINISH].targets, *TRANSITIONS[Move.STOP].targets}
            if any(has_attempt_record(job, number=attempt, processor=processor_id, outcome=str(end)) for end in ends):
                return ports.FinishAnswer.DONE
            late = {"state": state, "result": outcome.result, "error": outcome.error, "at_ms": at_ms}
            _keep_late_result(database, job, {"attempt": attempt, "processor": processor_id, **late})
            return ports.FinishAnswer.LATE

    async def give_back(
        self, job_id: str, attempt: int, processor_id: str, reason: str, at_ms: WallMs, *, lost: bool = False
    ) -> bool:
        end = AttemptEnd.LOST if lost else AttemptEnd.GIVEN_BACK
        async with self._connection.exchange("work.give_back") as database:
            job = database.find(Collection.JOBS, job_id)
            if job is None:
                return False
            if is_held(job, attempt, processor_id) and may(Move.GIVE_BACK, job):
                database.update(Collection.JOBS, job, back_to_pending(job, end, reason, at_ms))
                return True
            return has_attempt_record(job, number=attempt, processor=processor_id, outcome=end)

    async def report(self, processor_id: str, reports: Mapping[tuple[str, int], ports.HandlerProgress]) -> None:
        async with self._connection.exchange("work.report") as database:
            for (job_id, attempt), progress in reports.items():
                job = database.find(Collection.JOBS, job_id)
                if job is not None and job.get("state") == JobState.RUNNING and is_held(job, attempt, processor_id):
                    database.update(Collection.JOBS, job, {"progress": asdict(progress)})

    async def report_overdue(self, processor_id: str, since: Mapping[tuple[str, int], WallMs]) -> None:
        async with self._connection.exchange("work.report_overdue") as database:
            for (job_id, attempt), at_ms in since.items():
                job = database.find(Collection.JOBS, job_id)
                if job is None or job.get("state") != JobState.RUNNING or not is_held(job, attempt, processor_id):
                    continue
                if job.get("overdue_attempt") != attempt:
                    mark = {"overdue_attempt": attempt, "overdue_since_ms": at_ms, "rev": job["rev"] + 1}
                    database.update(Collection.JOBS, job, mark)

    async def stop_requests(self, processor_id: str, running: Sequence[tuple[str, int]]) -> ports.StopRequests:
        async with self._connection.exchange("work.stop_requests") as database:
            jobs = {id: job for id, _ in running if (job := database.find(Collection.JOBS, id)) is not None}
            return ports.StopRequests.of(running, jobs, processor_id)


def _update(database: MemoryDatabase, processor_id: str, account: Callable[[Document], Mapping[str, Any]]) -> bool:
    processor = database.find(Collection.PROCESSORS, processor_id)
    if processor is None:
        return False
    database.update(Collection.PROCESSORS, processor, {**account(processor), **_expiry(database)})
    return True


def _expiry(database: MemoryDatabase) -> Mapping[str, Any]:
    return {"expire_at": database.instant_in(REGISTRATION_KEPT_MS)}


def _keep_late_result(database: MemoryDatabase, job: Document, late: Mapping[str, Any]) -> None:
    kept = list(job.get("late_results") or ())
    if any(_whose(other) == _whose(late) for other in kept):
        return  # keep it once, however often the finish is repeated
    kept.append(late)
    database.update(Collection.JOBS, job, {"late_results": kept[-LATE_RESULTS_KEPT_MAX:], "rev": job["rev"] + 1})


def _whose(late: Mapping[str, Any]) -> tuple[object, object]:
    return late["attempt"], late["processor"]
