"""Writes down how many jobs of a schedule failed in a row, and pauses it after too many."""

from collections.abc import Sequence
from typing import Any

from hascheduler.dispatch.decisions import CountFailures, Settlement
from hascheduler.errors import HistoryLost, StoreUnavailable
from hascheduler.model.documents import Collection
from hascheduler.model.schedule_documents import TOO_MANY_FAILURES
from hascheduler.mongo.connection import MAJORITY, ONE, Database
from hascheduler.mongo.faults import faults


class FailureCounts:
    """The part of the claims that concerns `CountFailures`."""

    def __init__(self, database: Database) -> None:
        self._schedules = database[Collection.SCHEDULES.value]

    async def count(self, decisions: Sequence[CountFailures], *, majority: bool) -> dict[CountFailures, Settlement]:
        """LOST where the schedule is gone, another one of that name, or was edited since its failures were counted."""
        return {decision: await self._count(decision, majority=majority) for decision in decisions}

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
                # A repeat of a pause that was carried out meets the next revision.
                again = decision.pause_at_ms is not None and await schedules.find_one(repeated, ["_id"])
        except (StoreUnavailable, HistoryLost):
            return Settlement.UNKNOWN
        return Settlement.DONE if again else Settlement.LOST
