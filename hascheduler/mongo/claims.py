"""Carries the leader's decisions out, in groups: a few round trips a batch, however many decisions it holds.

First the fires (`fires`), which insert their jobs, as dispatched where that is decided too; then the other moves
(`waves`).
The journal has a majority behind it, so these writes need none unless asked for: what gets lost with a primary is
applied again.
"""

import asyncio
from collections.abc import Sequence

import pymongo

from hascheduler.dispatch.decisions import Decision, Dispatch, Fire, Settlement
from hascheduler.model.instants import WallMs
from hascheduler.mongo.connection import Database
from hascheduler.mongo.faults import EXCHANGE_LIMIT_S
from hascheduler.mongo.fires import Fires
from hascheduler.mongo.waves import Waves


class MongoClaimStore:
    """`hascheduler.ports.ClaimStore`; a job that fails here is deleted ``job_retention_ms`` later."""

    def __init__(self, database: Database, job_retention_ms: int) -> None:
        self._fires = Fires(database)
        self._waves = Waves(database, job_retention_ms)

    async def apply(self, decisions: Sequence[Decision], at_ms: WallMs, *, majority: bool) -> list[Settlement]:
        settled = dict.fromkeys(decisions, Settlement.UNKNOWN)
        fires = [decision for decision in decisions if isinstance(decision, Fire)]
        moves = [decision for decision in decisions if not isinstance(decision, Fire)]
        # One limit for all exchanges together: what has no answer by then is UNKNOWN.
        with pymongo.timeout(EXCHANGE_LIMIT_S):
            if fires:
                first = {move.job_id: move for move in moves if isinstance(move, Dispatch) and move.attempt == 1}
                answers, claimed = await self._fires.insert(fires, first, at_ms, majority=majority)
                settled.update(zip(fires, answers, strict=True))
                settled.update((first[job_id], Settlement.DONE) for job_id in claimed)
                unanswered = {fire.job_id for fire in fires if settled[fire] is Settlement.UNKNOWN}
                moves = [move for move in moves if move.job_id not in claimed and move.job_id not in unanswered]
            done = [fire for fire in fires if settled[fire] is Settlement.DONE]
            # The cursors and the jobs are different documents, so neither waits for the other.
            async with asyncio.TaskGroup() as tasks:
                advancing = tasks.create_task(self._fires.advance(done, majority=majority))
                moving = tasks.create_task(self._waves.carry_out(moves, at_ms, majority=majority))
        settled.update(zip(moves, moving.result(), strict=True))
        if not advancing.result():
            # The jobs are there, the cursors may not be: the whole fire is to be applied again.
            settled.update(dict.fromkeys(done, Settlement.UNKNOWN))
        return [settled[decision] for decision in decisions]
