"""Apply the decisions about nominal times: insert jobs, record verdicts, then advance the cursors.

::

    read the schedules ─► which decisions follow from the cursor (`hascheduler.dispatch.schedules.planner`)
                      ─► insert the jobs of times that fire, record those that do not
                      ─► advance each cursor along its steps, as far as all of them are written

The insert of ``fire:<schedule>:<nominal>`` *is* the fire: a duplicate key means that it happened. A job too large to
store is recorded as unstorable instead, and the cursor update counts it in the schedule. After a crash between these
writes and the cursor, the journal entry is applied again. The cursor update requires the cursor that was read.

`ResetCursor` moves the cursor back and deletes the withdrawn verdicts, in one transaction.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import reduce
from typing import Any, NamedTuple

from pymongo import ASCENDING, DESCENDING, UpdateMany

from hascheduler.dispatch.decisions import (
    Dispatch,
    Fire,
    RecordVerdict,
    ResetCursor,
    Settlement,
    TimeOutcome,
    missed,
    throttled,
)
from hascheduler.dispatch.schedules.edits import reset_cursor
from hascheduler.dispatch.schedules.planner import (
    SETTLEMENT_OF,
    CursorStep,
    CursorSteps,
    counted,
    cursor_steps,
    is_current,
)
from hascheduler.errors import HistoryLost, InvalidInput, StoreUnavailable
from hascheduler.model.collection import Collection
from hascheduler.model.documents.schedule import (
    decode_schedule,
    encode_fire_counts,
    encode_missed,
    encode_offsets,
    encode_reset,
)
from hascheduler.model.documents.trigger import ZONE_FIELDS
from hascheduler.model.documents.verdict import decode_verdict, verdict_id
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import FireCounts, MissedTimes, Verdict, VerdictRun
from hascheduler.mongo.apply.fired_jobs import FiredJobs
from hascheduler.mongo.apply.verdict_records import VerdictRecords
from hascheduler.mongo.connection import MAJORITY, ONE, Database, transaction
from hascheduler.mongo.faults import faults
from hascheduler.schema.schedule import ScheduleRef, ZoneOffsets
from hascheduler.telemetry.tracing import Tracer

_READ = [
    "job", "payload", "payloads", "render", "labels", "policy.overlap", "created_at_ms", "since_ms", "paused_at_ms",
    "cursor_ms", "tally", "on_failure", *(f"trigger.{name}" for name in ZONE_FIELDS),
]  # fmt: skip

Settlements = Mapping[TimeOutcome, Settlement]
_WRITTEN, _DECIDED = CursorStep.WRITTEN, CursorStep.DECIDED


class _Move(NamedTuple):
    """One change of a cursor: its value before, its value after, and what is written with it."""

    before_ms: int
    nominal_ms: int
    tally: FireCounts
    throttled: int
    unstorable: int
    missed: MissedTimes | None
    offsets: ZoneOffsets


class TimeOutcomeWriter:
    """The part of the claim store for `Fire` and `RecordVerdict`; keeps records and cancelled jobs for ``kept_ms``."""

    def __init__(self, database: Database, kept_ms: int, tracer: Tracer) -> None:
        self._schedules = database[Collection.SCHEDULES.value]
        self._jobs = FiredJobs(database, kept_ms, tracer)
        self._records = VerdictRecords(database, kept_ms)

    async def write(
        self, outcomes: Sequence[TimeOutcome], claims: Mapping[str, Dispatch], at_ms: WallMs, *, majority: bool
    ) -> tuple[Settlements, set[str], list[CursorSteps]]:
        """Write jobs and records, and return a settlement each, the jobs inserted as dispatched, and the cursor steps.

        DONE if it is written, now or before; REFUSED if no job can be stored and that is recorded; LOST if the schedule
        is gone or edited; UNKNOWN if there was no answer, or if an earlier one is missing.
        """
        settled: dict[TimeOutcome, Settlement] = dict.fromkeys(outcomes, Settlement.UNKNOWN)
        try:
            # Read for each batch: a cached template may be outdated by an edit.
            schedules = await self._read_schedules({outcome.schedule for outcome in outcomes})
            sequences = await self._cursor_steps(schedules, outcomes)
            steps = {outcome: step for sequence in sequences for outcome, step in sequence.links}
            lost = [each for each, step in steps.items() if isinstance(each, Fire) and step is CursorStep.OTHER]
            if lost:
                await self._jobs.cancel_incomplete(lost, at_ms)
            settled |= {outcome: SETTLEMENT_OF[step] for outcome, step in steps.items() if step in SETTLEMENT_OF}
            # Rare: only when an entry is applied again.
            before = [
                outcome for outcome, step in steps.items() if isinstance(outcome, Fire) and step in (_WRITTEN, _DECIDED)
            ]
            settled |= dict.fromkeys(await self._unstorable(before), Settlement.REFUSED)
        except (StoreUnavailable, HistoryLost):
            return settled, set(), []
        claimed: set[str] = set()
        for fires, verdicts in _rounds(sequences):
            try:
                if verdicts:
                    settled |= await self._records.record(verdicts, at_ms)
                templates = {fire: schedules[fire.schedule] for fire in fires}
                inserted, claimed_now = await self._jobs.insert(templates, claims, at_ms, majority=majority)
                refused = [fire for fire in fires if inserted[fire] is Settlement.REFUSED]
                if refused:
                    inserted |= dict.fromkeys(refused, Settlement.UNKNOWN)
                    inserted |= await self._records.record_unstorable(refused, at_ms)
            except (StoreUnavailable, HistoryLost):
                break  # the later rounds have to wait for this one
            settled |= inserted
            claimed |= claimed_now
        return settled, claimed, sequences

    async def advance(self, sequences: Sequence[CursorSteps], settled: Settlements, *, majority: bool) -> bool:
        """Advance the cursors, and return True if all are known to have advanced."""
        schedules = self._schedules.with_options(write_concern=MAJORITY if majority else ONE)
        moves: dict[_Move, list[str]] = defaultdict(list)
        for sequence in sequences:
            written = _written_in_a_row(sequence, settled)
            if written:
                last = written[-1]
                unstorable = sum(settled[each] is Settlement.REFUSED for each in written)
                counts = sum(map(throttled, written)), unstorable, missed(written)
                tally = reduce(counted, written, sequence.tally)
                moves[_Move(sequence.cursor_ms, last.nominal_ms, tally, *counts, last.offsets)].append(last.schedule)
        if not moves:
            return True
        writes = [
            UpdateMany({"_id": {"$in": names}, "cursor_ms": move.before_ms}, _moved(move))
            for move, names in moves.items()
        ]
        try:
            with faults("advance the cursors"):
                answer = await schedules.bulk_write(writes, ordered=False)
            if answer.matched_count == sum(len(names) for names in moves.values()):
                return True
            # Another leader advanced some of them first, or schedules are gone.
            targets = {name: move.nominal_ms for move, names in moves.items() for name in names}
            stored = await self._read_schedules(set(targets))
        except (StoreUnavailable, HistoryLost):
            return False
        return all(schedule["cursor_ms"] >= targets[name] for name, schedule in stored.items())

    async def _read_schedules(self, names: set[str]) -> dict[str, dict[str, Any]]:
        with faults("read the schedules that fire"):
            documents = await self._schedules.find({"_id": {"$in": sorted(names)}}, _READ).to_list(None)
        return {document["_id"]: document for document in documents}

    async def _cursor_steps(
        self, schedules: Mapping[str, Mapping[str, Any]], outcomes: Sequence[TimeOutcome]
    ) -> list[CursorSteps]:
        of_schedule: dict[str, list[TimeOutcome]] = defaultdict(list)
        doubtful = []
        for outcome in outcomes:
            of_schedule[outcome.schedule].append(outcome)
            schedule = schedules.get(outcome.schedule)
            if schedule is None or not is_current(schedule, outcome):
                doubtful.append(outcome)
        written = await self._written(doubtful) if doubtful else set()
        return [cursor_steps(schedules.get(name), of_one, written) for name, of_one in of_schedule.items()]

    async def _written(self, outcomes: Sequence[TimeOutcome]) -> set[TimeOutcome]:
        fires = [outcome for outcome in outcomes if isinstance(outcome, Fire)]
        verdicts = [outcome for outcome in outcomes if isinstance(outcome, RecordVerdict)]
        fired = await self._jobs.found(fires) | await self._records.found_unstorable(fires)
        return fired | await self._records.found(verdicts)

    async def _unstorable(self, fires: Sequence[Fire]) -> set[TimeOutcome]:
        """Return the fires that have a record of an unstorable job, and no job."""
        recorded = await self._records.found_unstorable(fires)
        return recorded - await self._jobs.found([fire for fire in fires if fire in recorded])


def _rounds(sequences: Sequence[CursorSteps]) -> list[tuple[list[Fire], list[RecordVerdict]]]:
    """Return groups of decisions that may be written at once.

    No group holds a fire and a verdict of the same schedule.
    """
    rounds: list[tuple[list[Fire], list[RecordVerdict]]] = []
    for sequence in sequences:
        place, before = -1, None
        for outcome, step in sequence.links:
            if step is not CursorStep.NEXT:
                continue
            if type(outcome) is not before:
                place, before = place + 1, type(outcome)
            if place == len(rounds):
                rounds.append(([], []))
            fires, verdicts = rounds[place]
            if isinstance(outcome, Fire):
                fires.append(outcome)
            else:
                verdicts.append(outcome)
    return rounds


def _moved(move: _Move) -> Any:
    """Return the update of a cursor. It is no edit, so ``rev`` stays.

    Counts are added once, as the same update moves the cursor that its filter requires.
    """
    fields: dict[str, Any] = {"cursor_ms": move.nominal_ms, "tally": encode_fire_counts(move.tally)}
    fields |= encode_offsets(move.nominal_ms, move.offsets)
    if move.missed is not None:
        fields["missed"] = encode_missed(move.missed)
    if not move.unstorable:
        return {"$set": fields} | ({"$inc": {"throttled": move.throttled}} if move.throttled else {})
    for name, more in (("throttled", move.throttled), ("unstorable", move.unstorable)):
        if more:
            # A count broken by hand must not stop the leader.
            fields[name] = {"$add": [{"$cond": [{"$isNumber": f"${name}"}, f"${name}", 0]}, more]}
    return [{"$set": fields}]


def _written_in_a_row(sequence: CursorSteps, settled: Settlements) -> list[TimeOutcome]:
    """Return the outcomes through which the cursor may advance; a job stays unstorable, so it blocks nothing."""
    written = []
    for outcome, step in sequence.links:
        if step in (CursorStep.NEXT, CursorStep.WRITTEN):
            if settled[outcome] is Settlement.UNKNOWN:
                break
            written.append(outcome)
    return written


_RUNS_MAX = 1_000


class CursorResets:
    """The part of the claim store for `ResetCursor`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._schedules = database[Collection.SCHEDULES.value]
        self._verdicts = database[Collection.VERDICTS.value]

    async def reset(self, decisions: Sequence[ResetCursor]) -> dict[ResetCursor, Settlement]:
        """Settle the resets; LOST if the schedule is gone or replaced, DONE if the request is gone (it was applied)."""
        settled = dict.fromkeys(decisions, Settlement.UNKNOWN)
        with suppress(StoreUnavailable, HistoryLost):
            for decision in decisions:
                with faults("reset the cursor"):
                    settled[decision] = await self._reset(decision)
        return settled

    async def _reset(self, decision: ResetCursor) -> Settlement:
        asked = {
            "_id": decision.schedule,
            "created_at_ms": decision.created_at_ms,
            "reset_at_ms": decision.reset_at_ms,
        }
        stored = await self._schedules.find_one(asked)
        if stored is None:
            answered = {"_id": decision.schedule, "created_at_ms": decision.created_at_ms}
            is_same = await self._schedules.count_documents(answered, limit=1)
            return Settlement.DONE if is_same else Settlement.LOST
        try:
            schedule = decode_schedule(decision.schedule, stored)
            done = reset_cursor(schedule, await self._runs(schedule, decision.reset_at_ms))
            fields = encode_reset(done.schedule)
        except InvalidInput:  # broken by hand since
            done, fields = None, {"reset_at_ms": None}
        as_it_was = {**asked, "rev": stored.get("rev"), "cursor_ms": stored.get("cursor_ms")}
        async with transaction(self._database) as session:
            change = {"$set": fields, "$inc": {"rev": 1}}
            answer = await self._schedules.update_one(as_it_was, change, session=session)
            if not answer.matched_count:
                await session.abort_transaction()
                return Settlement.UNKNOWN  # an edit came in between
            for run, left in done.withdrawn if done is not None else ():
                which = {"_id": verdict_id(run.schedule, run.first_ms)}
                if left is None:
                    await self._verdicts.delete_one(which, session=session)
                else:
                    cut = {"$set": {"last_ms": left.last_ms, "count": left.count}}
                    await self._verdicts.update_one(which, cut, session=session)
            await session.commit_transaction()
        return Settlement.DONE

    async def _runs(self, schedule: ScheduleRef, at_ms: int) -> list[VerdictRun]:
        """Return up to `_RUNS_MAX` runs that begin by the cursor and end after ``at_ms``, oldest first."""
        made = {"schedule_created_at_ms": schedule.created_at_ms}
        ids = {"$gt": verdict_id(schedule.name, at_ms), "$lte": verdict_id(schedule.name, schedule.cursor_ms)}
        later = await self._verdicts.find({"_id": ids, **made}).sort("_id", ASCENDING).limit(_RUNS_MAX).to_list(None)
        earlier = {"$gt": f"{schedule.name}:", "$lte": verdict_id(schedule.name, at_ms)}
        before = await self._verdicts.find_one({"_id": earlier, **made}, sort=[("_id", DESCENDING)])
        runs = [decode_verdict(document) for document in ([] if before is None else [before]) + later]
        return [run for run in runs if run.last_ms > at_ms and run.verdict is not Verdict.UNSTORABLE]
