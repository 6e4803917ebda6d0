"""Applies the decisions about nominal times: inserts jobs, records verdicts, then advances the cursors.

::

    read the schedules ─► which decisions follow from the cursor (`hascheduler.dispatch.schedules.cursor_steps`)
                      ─► insert the jobs of times that fire, record those that do not
                      ─► advance each cursor along its chain, as far as all of it is written

The insert of ``fire:<schedule>:<nominal>`` *is* the fire: a duplicate key means that it happened. A job that no
database can hold is recorded as unstorable instead, and the update of the cursor counts it in the schedule. After a
crash between these writes and the cursor, the journal entry is applied again. The update of a cursor demands the
cursor that was read.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pymongo import UpdateMany

from hascheduler.dispatch.decisions import Dispatch, Fire, RecordVerdict, Settlement, TimeOutcome, throttled
from hascheduler.dispatch.schedules.cursor_steps import SETTLEMENT_OF, CursorStep, CursorSteps, cursor_steps, is_current
from hascheduler.errors import HistoryLost, StoreUnavailable
from hascheduler.model.collection import Collection
from hascheduler.model.documents.schedule import encode_fire_counts
from hascheduler.model.instants import WallMs
from hascheduler.model.verdict import FireCounts
from hascheduler.mongo.apply.fired_jobs import FiredJobs
from hascheduler.mongo.apply.verdict_records import VerdictRecords
from hascheduler.mongo.connection import MAJORITY, ONE, Database
from hascheduler.mongo.faults import faults
from hascheduler.telemetry.tracing import Tracer

_READ = [
    "job", "payload", "render", "labels", "policy.overlap", "created_at_ms", "since_ms", "paused_at_ms", "cursor_ms",
]  # fmt: skip

Settlements = Mapping[TimeOutcome, Settlement]
_WRITTEN, _DECIDED = CursorStep.WRITTEN, CursorStep.DECIDED


class _Move(NamedTuple):
    """One change of a cursor: where it must be, where it goes, and the counts that are written with it."""

    before_ms: int
    nominal_ms: int
    tally: FireCounts
    throttled: int
    unstorable: int


class Conclusions:
    """The part of the claims that concerns `Fire` and `RecordVerdict`; records live for ``kept_ms``."""

    def __init__(self, database: Database, kept_ms: int, tracer: Tracer) -> None:
        self._schedules = database[Collection.SCHEDULES.value]
        self._jobs = FiredJobs(database, tracer)
        self._records = VerdictRecords(database, kept_ms)

    async def write(
        self, conclusions: Sequence[TimeOutcome], claims: Mapping[str, Dispatch], at_ms: WallMs, *, majority: bool
    ) -> tuple[Settlements, set[str], list[CursorSteps]]:
        """Write their jobs and records: one settlement each, the jobs that were inserted as dispatched, the chains.

        DONE when it is written, now or before; REFUSED where no job can be stored, and that is recorded; LOST where
        the schedule is gone or edited; UNKNOWN where there was no answer, or where one before it is missing.
        """
        settled: dict[TimeOutcome, Settlement] = dict.fromkeys(conclusions, Settlement.UNKNOWN)
        try:
            # Read for each batch: a cached template could have been edited since.
            schedules = await self._read_schedules({conclusion.schedule for conclusion in conclusions})
            chains = await self._chains(schedules, conclusions)
            links = {conclusion: link for one in chains for conclusion, link in one.links}
            settled |= {conclusion: SETTLEMENT_OF[link] for conclusion, link in links.items() if link in SETTLEMENT_OF}
            # Rare: only when an entry is applied again.
            before = [one for one, link in links.items() if isinstance(one, Fire) and link in (_WRITTEN, _DECIDED)]
            settled |= dict.fromkeys(await self._unstorable(before), Settlement.REFUSED)
        except (StoreUnavailable, HistoryLost):
            return settled, set(), []
        claimed: set[str] = set()
        for fires, passed_over in _rounds(chains):
            try:
                if passed_over:
                    settled |= await self._records.record(passed_over, at_ms)
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
        return settled, claimed, chains

    async def advance(self, chains: Sequence[CursorSteps], settled: Settlements, *, majority: bool) -> bool:
        """Advance the cursors; whether all are known to be where they should be."""
        schedules = self._schedules.with_options(write_concern=MAJORITY if majority else ONE)
        moves: dict[_Move, list[str]] = defaultdict(list)
        for one in chains:
            written = _written_in_a_row(one, settled)
            if written:
                last = written[-1]
                unstorable = sum(settled[each] is Settlement.REFUSED for each in written)
                move = _Move(one.cursor_ms, last.nominal_ms, last.tally, sum(map(throttled, written)), unstorable)
                moves[move].append(last.schedule)
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

    async def _chains(
        self, schedules: Mapping[str, Mapping[str, Any]], conclusions: Sequence[TimeOutcome]
    ) -> list[CursorSteps]:
        of_schedule: dict[str, list[TimeOutcome]] = defaultdict(list)
        doubtful = []
        for conclusion in conclusions:
            of_schedule[conclusion.schedule].append(conclusion)
            schedule = schedules.get(conclusion.schedule)
            if schedule is None or not is_current(schedule, conclusion):
                doubtful.append(conclusion)
        written = await self._written(doubtful) if doubtful else set()
        return [cursor_steps(schedules.get(name), of_one, written) for name, of_one in of_schedule.items()]

    async def _written(self, conclusions: Sequence[TimeOutcome]) -> set[TimeOutcome]:
        fires = [conclusion for conclusion in conclusions if isinstance(conclusion, Fire)]
        passed_over = [conclusion for conclusion in conclusions if isinstance(conclusion, RecordVerdict)]
        fired = await self._jobs.found(fires) | await self._records.found_unstorable(fires)
        return fired | await self._records.found(passed_over)

    async def _unstorable(self, fires: Sequence[Fire]) -> set[TimeOutcome]:
        """Those with a record of an unstorable job, and without a job."""
        recorded = await self._records.found_unstorable(fires)
        return recorded - await self._jobs.found([fire for fire in fires if fire in recorded])


def _rounds(chains: Sequence[CursorSteps]) -> list[tuple[list[Fire], list[RecordVerdict]]]:
    """Groups of decisions that may be written at once: in none a fire beside a skip of its schedule that it follows, or
    that follows it."""
    rounds: list[tuple[list[Fire], list[RecordVerdict]]] = []
    for one in chains:
        place, before = -1, None
        for conclusion, link in one.links:
            if link is not CursorStep.NEXT:
                continue
            if type(conclusion) is not before:
                place, before = place + 1, type(conclusion)
            if place == len(rounds):
                rounds.append(([], []))
            fires, passed_over = rounds[place]
            if isinstance(conclusion, Fire):
                fires.append(conclusion)
            else:
                passed_over.append(conclusion)
    return rounds


def _moved(move: _Move) -> Any:
    """No edit, so ``rev`` stays. Counts are added once, as the same update moves the cursor that its filter demands."""
    fields: dict[str, Any] = {"cursor_ms": move.nominal_ms, "tally": encode_fire_counts(move.tally)}
    if not move.unstorable:
        return {"$set": fields} | ({"$inc": {"throttled": move.throttled}} if move.throttled else {})
    for name, more in (("throttled", move.throttled), ("unstorable", move.unstorable)):
        if more:
            # A count that was broken by hand must not stop the leader.
            fields[name] = {"$add": [{"$cond": [{"$isNumber": f"${name}"}, f"${name}", 0]}, more]}
    return [{"$set": fields}]


def _written_in_a_row(one: CursorSteps, settled: Settlements) -> list[TimeOutcome]:
    """As far as the cursor may go. An unstorable job stays unstorable, so it holds nothing up."""
    written = []
    for conclusion, link in one.links:
        if link in (CursorStep.NEXT, CursorStep.WRITTEN):
            if settled[conclusion] is Settlement.UNKNOWN:
                break
            written.append(conclusion)
    return written
