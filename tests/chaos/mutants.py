"""Bugs in the real processes, of the kind that a careless change would bring back; a row must go red on each.

`PLANTED` names them: which part of `hascheduler.assembly` is exchanged, and the row under which it shows. The
simulator has more of them (`tests.cluster_simulation.mutants`).
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from pymongo.errors import DuplicateKeyError

from hascheduler.dispatch.decisions import encode_decisions
from hascheduler.dispatch.schedules import trigger_periods
from hascheduler.model.documents.leadership import encode_journal_head
from hascheduler.model.event import number_of
from hascheduler.model.job import JobState
from hascheduler.model.values.instants import WallMs
from hascheduler.mongo.faults import faults
from hascheduler.mongo.state_updates import to_terminal
from hascheduler.ports import AttemptOutcome, Batch, FinishAnswer, JournalEntry, StartedJob
from hascheduler.triggers import walls
from tests.mutants.everywhere import Around, LeaseUpdateWithoutCompare, ResumesFromNow, never_fences_itself

_KEPT_MS = 604_800_000


@dataclass(frozen=True)
class Planted:
    """``instead`` takes what the assembly makes by the name ``part`` and gives what it is to have."""

    part: str
    instead: Callable[[Any], Any]
    row: str


class _JournalWithoutFence(Around):
    """An entry is one's own: it is inserted beside what another has written at its seq."""

    async def insert(self, entry: JournalEntry) -> bool:
        document = {
            **encode_journal_head(entry.head),
            "at_ms": entry.at_ms,
            "decisions": encode_decisions(entry.decisions),
        }
        document["_id"] = {**document["_id"], "by": entry.head.holder}
        with faults("append to the journal"), suppress(DuplicateKeyError):
            await self._part._journal.insert_one(document)
        return True


class _StartWithoutCompare(Around):
    """Starts whatever a message names, also what another has and what has ended."""

    async def start(self, job_id: str, attempt: int, processor_id: str, at_ms: WallMs) -> StartedJob | None:
        promised = {"state": JobState.DISPATCHED.value, "attempt": attempt, "processor": processor_id}
        with faults("start the attempt"):
            await self._part._jobs.update_one({"_id": job_id}, {"$set": promised})
        started: StartedJob | None = await self._part.start(job_id, attempt, processor_id, at_ms)
        return started


class _FinishWithoutAttempt(Around):
    """Ends a job that runs, also where another runs it by now."""

    async def finish(
        self, job_id: str, attempt: int, processor_id: str, outcome: AttemptOutcome, at_ms: WallMs
    ) -> FinishAnswer:
        with faults("finish the attempt"):
            await self._part._jobs.update_one(
                {"_id": job_id, "state": JobState.RUNNING.value},
                to_terminal(outcome, outcome.state.value, at_ms, kept_ms=_KEPT_MS),
            )
        return FinishAnswer.DONE


class _TransactionsWithoutEvents(Around):
    """What is inserted at the same moment as something before it has no place among the events."""

    async def open(self, resume: Any | None) -> Any:
        stream = await self._part.open(resume)
        next_batch = stream.next_batch

        async def next_with_gaps(wait_ms: int) -> Batch:
            batch: Batch = await next_batch(wait_ms)
            changes = [replace(each, position="") if number_of(each.position) else each for each in batch.changes]
            return replace(batch, changes=changes)

        stream.next_batch = next_with_gaps
        return stream


def _believed_alone(clock: Any) -> Any:
    """A replica goes by its own clock, whatever the database's says."""
    clock.compared = lambda *_: None
    return clock


def _forgets_other_zone_data(replica: Any) -> Any:
    """Each leader takes its own time-zone data for those by which a cursor was set."""
    for room in (walls, trigger_periods):
        room.keeps_order = lambda *_: True  # type: ignore[attr-defined]
    return replica


class _AlwaysConsuming:
    """A processor that says that it is able whether or not its queue is consumed."""

    def __init__(self, deliveries: Any) -> None:
        self.run = deliveries.run
        self.delete = deliveries.delete
        self.consuming = True


PLANTED: Mapping[str, Planted] = {
    "lease-without-compare-and-set": Planted("MongoLeaseStore", LeaseUpdateWithoutCompare, "leader-sigstop"),
    "fence-skipped": Planted("MongoJournal", _JournalWithoutFence, "leader-stops-at-fence"),
    "start-without-compare-and-set": Planted("MongoWorkStore", _StartWithoutCompare, "strange-messages"),
    "attempt-check-dropped-on-finish": Planted("MongoWorkStore", _FinishWithoutAttempt, "processor-stops-at-finish"),
    "resume-from-now-after-lost-history": Planted("MongoChangeSource", ResumesFromNow, "history-lost"),
    "transactions-without-events": Planted("MongoChangeSource", _TransactionsWithoutEvents, "leader-sigkill"),
    "clock-believed-alone": Planted("TrustedClock", _believed_alone, "clock-day-ahead"),
    "zone-data-of-others-forgotten": Planted("Replica", _forgets_other_zone_data, "zone-data-differ"),
    "able-without-consuming": Planted("RabbitDeliveries", _AlwaysConsuming, "processor-port-closed"),
    "processor-without-fence": Planted("Processor", never_fences_itself, "processor-without-mongodb"),
}
