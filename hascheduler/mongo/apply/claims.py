"""Apply the leader's decisions in groups: a few round trips a batch, however many decisions it holds.

First come the decisions that free slots, which the same batch may fill again. Then the decisions about schedules
(`outcomes`, `FailureCounts`): fires insert their jobs, as dispatched if the same batch decides that too. Then all other
changes of jobs (`job_updates`). A majority has the journal, so these writes wait for no majority unless the caller asks
for it: the leader applies again what is lost with a primary.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import pymongo

from hascheduler.dispatch.decisions import (
    CountFailures,
    Decision,
    Fire,
    JobMove,
    RecordVerdict,
    ReleaseHold,
    ResetCursor,
    Settlement,
    TimeOutcome,
)
from hascheduler.dispatch.schedules.planner import CursorSteps
from hascheduler.dispatch.settlements import freeing, riding
from hascheduler.errors import HistoryLost, StoreUnavailable
from hascheduler.model.collection import Collection
from hascheduler.model.documents.schedule import TOO_MANY_FAILURES
from hascheduler.model.values.instants import WallMs
from hascheduler.mongo.apply.job_updates import JobUpdates
from hascheduler.mongo.apply.time_outcomes import CursorResets, TimeOutcomeWriter
from hascheduler.mongo.connection import MAJORITY, ONE, Database
from hascheduler.mongo.faults import EXCHANGE_LIMIT_S, faults
from hascheduler.telemetry.tracing import NO_TRACING, Tracer


class MongoClaimStore:
    """`hascheduler.ports.ClaimStore`; a job that fails here is deleted ``job_retention_ms`` later."""

    def __init__(self, database: Database, job_retention_ms: int, tracer: Tracer = NO_TRACING) -> None:
        self._time_outcomes = TimeOutcomeWriter(database, job_retention_ms, tracer)
        self._failures = FailureCounts(database)
        self._resets = CursorResets(database)
        self._holds = HoldReleases(database)
        self._job_updates = JobUpdates(database, job_retention_ms)

    async def apply(self, decisions: Sequence[Decision], at_ms: WallMs, *, majority: bool) -> list[Settlement]:
        settled: dict[Decision, Settlement] = dict.fromkeys(decisions, Settlement.UNKNOWN)
        outcomes = [decision for decision in decisions if isinstance(decision, Fire | RecordVerdict)]
        counts = [decision for decision in decisions if isinstance(decision, CountFailures)]
        resets = [decision for decision in decisions if isinstance(decision, ResetCursor)]
        releases = [decision for decision in decisions if isinstance(decision, ReleaseHold)]
        freed = freeing(decisions)
        first = set(freed)
        moves = [decision for decision in decisions if isinstance(decision, JobMove) and decision not in first]
        sequences: Sequence[CursorSteps] = []
        written: Mapping[TimeOutcome, Settlement] = {}
        # One limit for all exchanges together: decisions without an answer by then are UNKNOWN.
        with pymongo.timeout(EXCHANGE_LIMIT_S):
            if freed:
                answers = await self._job_updates.free(freed, at_ms, majority=majority)
                if answers is None:
                    return [Settlement.UNKNOWN] * len(decisions)
                settled.update(zip(freed, answers, strict=True))
            if outcomes:
                riders = riding(decisions)
                written, claimed, sequences = await self._time_outcomes.write(
                    outcomes, riders, at_ms, majority=majority
                )
                settled.update(written.items())
                settled.update((riders[job_id], Settlement.DONE) for job_id in claimed)
                fires = [outcome for outcome in outcomes if isinstance(outcome, Fire)]
                unanswered = {fire.job_id for fire in fires if settled[fire] is Settlement.UNKNOWN}
                rest = [each for id, each in riders.items() if id not in claimed and id not in unanswered]
                settled.update(zip(rest, await self._job_updates.settle_riding(rest), strict=True))
                moves = [move for move in moves if move != riders.get(move.job_id) and move.job_id not in unanswered]
            if counts:
                settled.update((await self._failures.count(counts, majority=majority)).items())
            if resets:
                settled.update((await self._resets.reset(resets)).items())
            if releases:
                settled.update((await self._holds.release(releases, majority=majority)).items())
            # Cursors and jobs are different documents, so neither waits for the other.
            async with asyncio.TaskGroup() as tasks:
                advancing = tasks.create_task(self._time_outcomes.advance(sequences, written, majority=majority))
                moving = tasks.create_task(self._job_updates.carry_out(moves, at_ms, majority=majority))
        settled.update(zip(moves, moving.result(), strict=True))
        if not advancing.result():
            # The jobs and records are written, the cursors may not be: the leader must apply all of them again.
            over = (Settlement.DONE, Settlement.REFUSED)
            done = [outcome for outcome in outcomes if settled[outcome] in over]
            settled.update(dict.fromkeys(done, Settlement.UNKNOWN))
        return [settled[decision] for decision in decisions]


class FailureCounts:
    """The part of the claim store for `CountFailures`: a schedule's failures in a row, and its pause after too many."""

    def __init__(self, database: Database) -> None:
        self._schedules = database[Collection.SCHEDULES.value]

    async def count(self, decisions: Sequence[CountFailures], *, majority: bool) -> dict[CountFailures, Settlement]:
        """Settle the counts; LOST if the schedule is gone, replaced, or edited since its failures were counted."""
        settled = await asyncio.gather(*[self._count(decision, majority=majority) for decision in decisions])
        return dict(zip(decisions, settled, strict=True))

    async def _count(self, decision: CountFailures, *, majority: bool) -> Settlement:
        schedules = self._schedules.with_options(write_concern=MAJORITY if majority else ONE)
        which: dict[str, Any] = {"_id": decision.schedule}
        if decision.created_at_ms is not None:
            which["created_at_ms"] = decision.created_at_ms
        repeated = {**which, "paused_at_ms": decision.pause_at_ms}
        change: dict[str, Any] = {"$set": {"failures": decision.failures}}
        if decision.pause_at_ms is not None:
            which["rev"] = decision.rev
            change["$set"]["paused_at_ms"] = decision.pause_at_ms
            change["$set"]["paused_because"] = TOO_MANY_FAILURES.format(decision.failures)
            change["$inc"] = {"rev": 1}
        try:
            with faults("count failures"):
                answer = await schedules.update_one(which, change)
                if answer.matched_count:
                    return Settlement.DONE
                # A repeat of an applied pause finds the next revision.
                again = decision.pause_at_ms is not None and await schedules.find_one(repeated, ["_id"])
        except (StoreUnavailable, HistoryLost):
            return Settlement.UNKNOWN
        return Settlement.DONE if again else Settlement.LOST


class HoldReleases:
    """The part of the claim store for `ReleaseHold`."""

    def __init__(self, database: Database) -> None:
        self._holds = database[Collection.HOLDS.value]

    async def release(self, decisions: Sequence[ReleaseHold], *, majority: bool) -> dict[ReleaseHold, Settlement]:
        """Settle the releases; LOST if the hold has another revision by now."""
        holds = self._holds.with_options(write_concern=MAJORITY if majority else ONE)
        settled = dict.fromkeys(decisions, Settlement.UNKNOWN)
        with suppress(StoreUnavailable, HistoryLost), faults("release holds"):
            for decision in decisions:
                which = {"_id": decision.key, "rev": decision.rev}
                answer = await holds.update_one(which, {"$set": {"released": decision.rev}})
                settled[decision] = Settlement.DONE if answer.matched_count else Settlement.LOST
        return settled
