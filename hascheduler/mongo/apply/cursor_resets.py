"""Applies `ResetCursor`: the cursor goes back and the verdicts that are withdrawn go, in one transaction."""

from collections.abc import Sequence
from contextlib import suppress

from pymongo import ASCENDING, DESCENDING

from hascheduler.dispatch.decisions import ResetCursor, Settlement
from hascheduler.dispatch.schedules.resets import reset_cursor
from hascheduler.errors import HistoryLost, InvalidInput, StoreUnavailable
from hascheduler.model.collection import Collection
from hascheduler.model.documents.schedule import decode_schedule, encode_reset
from hascheduler.model.documents.verdict import decode_verdict, verdict_id
from hascheduler.model.verdict import Verdict, VerdictRun
from hascheduler.mongo.connection import Database, transaction
from hascheduler.mongo.faults import faults
from hascheduler.schema.schedule import ScheduleRef

_RUNS_MAX = 1_000


class CursorResets:
    """The part of the claims that concerns `ResetCursor`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._schedules = database[Collection.SCHEDULES.value]
        self._verdicts = database[Collection.VERDICTS.value]

    async def reset(self, decisions: Sequence[ResetCursor]) -> dict[ResetCursor, Settlement]:
        """LOST if the schedule is gone or another one; DONE if the request is gone: it was carried out before."""
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
        """Those that end after ``at_ms``, oldest first, and begin by the cursor; no more than `_RUNS_MAX`."""
        made = {"schedule_created_at_ms": schedule.created_at_ms}
        ids = {"$gt": verdict_id(schedule.name, at_ms), "$lte": verdict_id(schedule.name, schedule.cursor_ms)}
        later = await self._verdicts.find({"_id": ids, **made}).sort("_id", ASCENDING).limit(_RUNS_MAX).to_list(None)
        earlier = {"$gt": f"{schedule.name}:", "$lte": verdict_id(schedule.name, at_ms)}
        before = await self._verdicts.find_one({"_id": earlier, **made}, sort=[("_id", DESCENDING)])
        runs = [decode_verdict(document) for document in ([] if before is None else [before]) + later]
        return [run for run in runs if run.last_ms > at_ms and run.verdict is not Verdict.UNSTORABLE]
