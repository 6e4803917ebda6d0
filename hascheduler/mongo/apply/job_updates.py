"""Apply decisions about existing jobs (dispatch, requeue, fail, cancel), grouped by equal changes.

A wave holds at most one decision a job, so all its groups go out in one unordered bulk write; a job with two decisions
in one batch takes them in two waves, in order. If as many documents matched as there were decisions, all are done.
Otherwise each document is read back, which shows if its decision was applied.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from pymongo import UpdateMany
from pymongo.errors import BulkWriteError

from hascheduler.dispatch.decisions import Cancel, Dispatch, JobMove, Requeue, Settlement, attempt_end
from hascheduler.dispatch.settlements import CLASSIFIED_FIELDS, classify_outcome
from hascheduler.errors import HistoryLost, StoreUnavailable
from hascheduler.model.collection import Collection
from hascheduler.model.job import JobState, Move
from hascheduler.model.values.instants import WallMs
from hascheduler.mongo.connection import LOCAL_READ, MAJORITY, ONE, Database
from hascheduler.mongo.faults import faults
from hascheduler.mongo.state_updates import BY_ID, back_to_pending, claimed_fields, source_states, to_terminal
from hascheduler.ports import AttemptOutcome


class JobUpdates:
    """The part of the claim store for existing jobs."""

    def __init__(self, database: Database, job_retention_ms: int) -> None:
        # Local reads: reading back must see the latest writes, with or without a majority.
        self._jobs = database[Collection.JOBS.value].with_options(read_concern=LOCAL_READ)
        self._job_retention_ms = job_retention_ms

    async def free(self, moves: Sequence[JobMove], at_ms: WallMs, *, majority: bool) -> list[Settlement] | None:
        """Apply the moves, at most one a job, and return one settlement each; None without an answer."""
        try:
            return await self._carry_out_wave(moves, at_ms, majority=majority)
        except (StoreUnavailable, HistoryLost):
            return None

    async def carry_out(self, moves: Sequence[JobMove], at_ms: WallMs, *, majority: bool) -> list[Settlement]:
        """Apply the moves and return one settlement each, UNKNOWN from the first wave without an answer on."""
        settled = [Settlement.UNKNOWN] * len(moves)
        for wave in _waves(moves):
            try:
                answers = await self._carry_out_wave([move for _, move in wave], at_ms, majority=majority)
            except (StoreUnavailable, HistoryLost):
                # Later waves concern the same jobs; they must not overtake this one.
                return settled
            for (place, _), settlement in zip(wave, answers, strict=True):
                settled[place] = settlement
        return settled

    async def _carry_out_wave(self, moves: Sequence[JobMove], at_ms: WallMs, *, majority: bool) -> list[Settlement]:
        jobs = self._jobs.with_options(write_concern=MAJORITY if majority else ONE)
        with faults("apply decisions"):
            try:
                answer = await jobs.bulk_write(self._writes(moves, at_ms), ordered=False)
                matched = answer.matched_count
            except BulkWriteError as error:
                if error.details.get("writeConcernErrors"):
                    return [Settlement.UNKNOWN] * len(moves)
                matched = 0  # a document that can't be updated stopped its group: read all of them back
        if matched == len(moves):
            return [Settlement.DONE] * len(moves)
        return await self._read_back(moves)

    async def settle_riding(self, dispatches: Sequence[Dispatch]) -> list[Settlement]:
        """Return DONE for a dispatch that the insert of its job applied, now or earlier, else LOST."""
        if not dispatches:
            return []
        try:
            settled = await self._read_back(dispatches)
        except (StoreUnavailable, HistoryLost):
            return [Settlement.UNKNOWN] * len(dispatches)
        return [each if each is Settlement.DONE else Settlement.LOST for each in settled]

    async def _read_back(self, moves: Sequence[JobMove]) -> list[Settlement]:
        with faults("read back decisions"):
            documents = await self._jobs.find(
                {"_id": {"$in": [move.job_id for move in moves]}}, CLASSIFIED_FIELDS
            ).to_list(None)
        by_id = {document["_id"]: document for document in documents}
        return [classify_outcome(move, by_id.get(move.job_id)) for move in moves]

    def _writes(self, moves: Iterable[JobMove], at_ms: WallMs) -> list[UpdateMany]:
        groups: dict[tuple[type[JobMove], int, str], list[str]] = defaultdict(list)
        for move in moves:
            value = move.processor if isinstance(move, Dispatch) else move.reason
            groups[(type(move), move.attempt, value)].append(move.job_id)
        return [
            write
            for (kind, attempt, value), ids in groups.items()
            for write in self._write_group(kind, ids, attempt, value, at_ms)
        ]

    def _write_group(
        self, kind: type[JobMove], ids: list[str], attempt: int, value: str, at_ms: WallMs
    ) -> list[UpdateMany]:
        if kind is not Cancel:
            return [self._write(kind, ids, attempt, value, at_ms)]
        # At most one of the two updates matches a job: it has not started, or it is running.
        selected: dict[str, Any] = {"_id": {"$in": ids}, "attempt": attempt}
        ended = AttemptOutcome(JobState.CANCELLED, error=value)
        kept_ms = self._job_retention_ms
        return [
            UpdateMany(
                {**selected, "state": {"$in": source_states(Move.CANCEL)}},
                to_terminal(ended, JobState.CANCELLED.value, at_ms, kept_ms=kept_ms),
                hint=BY_ID,
            ),
            UpdateMany(
                {**selected, "state": {"$in": source_states(Move.STOP)}, "cancel_requested_at_ms": None},
                {"$set": {"cancel_requested_at_ms": at_ms}, "$inc": {"rev": 1}},
                hint=BY_ID,
            ),
        ]

    def _write(self, kind: type[JobMove], ids: list[str], attempt: int, value: str, at_ms: WallMs) -> UpdateMany:
        selected: dict[str, Any] = {"_id": {"$in": ids}}
        if kind is Dispatch:
            return UpdateMany(
                {**selected, "state": {"$in": source_states(Move.CLAIM)}, "attempt": attempt - 1},
                {"$set": claimed_fields(Dispatch("", attempt, value), at_ms), "$inc": {"rev": 1}},
                hint=BY_ID,
            )
        if kind is Requeue:
            return UpdateMany(
                {**selected, "state": {"$in": source_states(Requeue("", attempt, value).move)}, "attempt": attempt},
                back_to_pending(attempt_end(value), value, at_ms),
                hint=BY_ID,
            )
        return UpdateMany(
            {**selected, "state": {"$in": source_states(Move.FAIL)}, "attempt": attempt},
            to_terminal(
                AttemptOutcome(JobState.FAILED, error=value), attempt_end(value), at_ms, kept_ms=self._job_retention_ms
            ),
            hint=BY_ID,
        )


def _waves(moves: Sequence[JobMove]) -> list[list[tuple[int, JobMove]]]:
    waves: list[list[tuple[int, JobMove]]] = []
    earlier: dict[str, int] = defaultdict(int)
    for place, move in enumerate(moves):
        number = earlier[move.job_id]
        earlier[move.job_id] += 1
        if number == len(waves):
            waves.append([])
        waves[number].append((place, move))
    return waves
