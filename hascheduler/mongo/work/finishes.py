"""End attempts, many in one exchange: running → the handler's outcome, for jobs that this processor still holds.

Attempts with equal outcomes share a write. If as many documents matched as finishes were requested, all are done;
otherwise each finish is written alone. That may repeat a write, which is harmless: the record of the attempt shows if
the first write has ended the job.
"""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pymongo import UpdateMany

from hascheduler.errors import InvalidInput, StoreUnavailable
from hascheduler.model.collection import Collection
from hascheduler.model.job import TRANSITIONS, JobState, Move
from hascheduler.model.values.instants import WallMs
from hascheduler.mongo.connection import MAJORITY, Database
from hascheduler.mongo.faults import faults
from hascheduler.mongo.state_updates import (
    BY_ID,
    AttemptTimes,
    back_to_pending,
    expiry,
    plain_terminal_update,
    source_states,
    to_terminal,
)
from hascheduler.mongo.work.starts import StartedAttempts
from hascheduler.ports import AttemptOutcome, FinishAnswer

LATE_RESULTS_KEPT_MAX = 3
"""Each may take 1.5 MiB as BSON: with more, a job could grow beyond MongoDB's limit, and never end."""
ENDS = TRANSITIONS[Move.FINISH].targets | TRANSITIONS[Move.STOP].targets
_SINGLY_AT_ONCE = 16
"""Single writes must not occupy the whole connection pool."""
_SUCCEEDED = AttemptOutcome(JobState.SUCCEEDED)
_RUNNING = {"state": {"$in": source_states(Move.FINISH)}}


@dataclass(frozen=True, slots=True)
class Finish:
    job_id: str
    attempt: int
    processor_id: str
    outcome: AttemptOutcome
    at_ms: WallMs


class Finishes:
    """The part of the work store that ends attempts; a job that ends here is deleted ``job_retention_ms`` later.

    ``started`` has the times of attempts that this process started.
    """

    def __init__(self, database: Database, job_retention_ms: int, started: StartedAttempts) -> None:
        self._started_attempts = started
        self._jobs = database[Collection.JOBS.value].with_options(write_concern=MAJORITY)
        self._job_retention_ms = job_retention_ms

    async def carry_out(self, finishes: Sequence[Finish]) -> Sequence[FinishAnswer | Exception]:
        # A failure may be a retry, which has cases of its own: those go through `_finish_one`.
        known = [(finish, self._started_attempts.take(finish.job_id, finish.attempt)) for finish in finishes]
        simple = [(finish, times) for finish, times in known if finish.outcome.state is JobState.SUCCEEDED]
        try:
            together = await self._finish_many(simple) == len(simple) if simple else False
        except InvalidInput:
            together = False  # one of them can't be stored; the single writes show which
        done = {id(finish) for finish, _ in simple} if together else set()
        answers: list[FinishAnswer | Exception] = []
        for first in range(0, len(finishes), _SINGLY_AT_ONCE):
            some = finishes[first : first + _SINGLY_AT_ONCE]
            answers += await asyncio.gather(*(self._answer(finish, done=id(finish) in done) for finish in some))
        return answers

    async def _finish_many(self, finishes: Sequence[tuple[Finish, AttemptTimes | None]]) -> int:
        # Only updates of many: the driver would repeat an update of one after a break, for which the server makes one
        # more write each. Here the caller repeats.
        writes: list[UpdateMany] = []
        alike: dict[tuple[int, str, AttemptTimes | None], list[Finish]] = defaultdict(list)
        for finish, times in finishes:
            if finish.outcome == _SUCCEEDED:
                alike[(finish.attempt, finish.processor_id, times)].append(finish)
            else:
                selected = {**attempt_filter(finish.job_id, finish.attempt, finish.processor_id), **_RUNNING}
                writes.append(UpdateMany(*self._ending(finish, selected, times, finish.at_ms), hint=BY_ID))
        for (attempt, processor_id, times), group in alike.items():
            selected = {
                "_id": {"$in": [finish.job_id for finish in group]},
                "attempt": attempt,
                "processor": processor_id,
            }
            at_ms = max(finish.at_ms for finish in group)
            writes.append(UpdateMany(*self._ending(group[0], {**selected, **_RUNNING}, times, at_ms), hint=BY_ID))
        with faults("finish the attempts"):
            return (await self._jobs.bulk_write(writes, ordered=False)).matched_count

    def _ending(
        self, finish: Finish, selected: dict[str, Any], times: AttemptTimes | None, at_ms: WallMs
    ) -> tuple[dict[str, Any], Any]:
        """Return the filter and the update for the jobs of ``selected``, whose attempts end as ``finish`` does."""
        outcome, kept_ms = finish.outcome, self._job_retention_ms
        if times is None:
            return selected, to_terminal(outcome, outcome.state.value, at_ms, kept_ms=kept_ms)
        return {**selected, **times.filter(expiry(at_ms, kept_ms))}, plain_terminal_update(
            outcome, (finish.attempt, finish.processor_id), times, at_ms, kept_ms=kept_ms
        )

    async def _answer(self, finish: Finish, *, done: bool) -> FinishAnswer | Exception:
        try:
            return FinishAnswer.DONE if done else await self._finish_one(finish)
        except (StoreUnavailable, InvalidInput) as error:
            return error

    async def _finish_one(self, finish: Finish) -> FinishAnswer:
        outcome = finish.outcome
        state = outcome.state
        move = Move.STOP if state is JobState.CANCELLED else Move.FINISH
        held_now = attempt_filter(finish.job_id, finish.attempt, finish.processor_id)
        with faults("finish the attempt"):
            if outcome.retry_at_ms is not None and state is JobState.FAILED:
                answer = await self._jobs.update_one(
                    {**held_now, "state": {"$in": source_states(Move.RETRY)}, "cancel_requested_at_ms": None},
                    back_to_pending(
                        state.value,
                        outcome.error,
                        finish.at_ms,
                        retry_at_ms=outcome.retry_at_ms,
                        traceback=outcome.traceback,
                    ),
                    hint=BY_ID,
                )
                if answer.matched_count:
                    return FinishAnswer.DONE
                # A job whose cancellation was requested is not retried.
                move, outcome = Move.STOP, AttemptOutcome(JobState.CANCELLED, error=outcome.error)
            answer = await self._jobs.update_one(
                {**held_now, "state": {"$in": source_states(move)}},
                to_terminal(outcome, outcome.attempt_end, finish.at_ms, kept_ms=self._job_retention_ms),
                hint=BY_ID,
            )
            if answer.matched_count:
                return FinishAnswer.DONE
            ends = sorted({outcome.attempt_end, *(end.value for end in ENDS)})
            if await self._jobs.find_one(
                ended_attempt_filter(finish.job_id, finish.attempt, finish.processor_id, ends), {"_id": True}
            ):
                return FinishAnswer.DONE
            await self._keep_late_result(finish, outcome)
        return FinishAnswer.LATE

    async def _keep_late_result(self, finish: Finish, outcome: AttemptOutcome) -> None:
        late = {
            "attempt": finish.attempt,
            "processor": finish.processor_id,
            "state": outcome.state.value,
            "result": outcome.result,
            "error": outcome.error,
            "at_ms": finish.at_ms,
        }
        same = {"$elemMatch": {"attempt": finish.attempt, "processor": finish.processor_id}}
        await self._jobs.update_one(
            {"_id": finish.job_id, "late_results": {"$not": same}},  # once, however often the finish is repeated
            {"$push": {"late_results": {"$each": [late], "$slice": -LATE_RESULTS_KEPT_MAX}}, "$inc": {"rev": 1}},
        )


def attempt_filter(job_id: str, attempt: int, processor_id: str) -> dict[str, Any]:
    """Return the filter for a job whose attempt that processor holds."""
    return {"_id": job_id, "attempt": attempt, "processor": processor_id}


def ended_attempt_filter(job_id: str, attempt: int, processor_id: str, outcomes: list[str]) -> dict[str, Any]:
    """Return the filter for a job in which that attempt has ended with one of ``outcomes``."""
    record = {"number": attempt, "processor": processor_id, "outcome": {"$in": outcomes}}
    return {"_id": job_id, "attempts": {"$elemMatch": record}}
