"""Bugs in the real processes, of the kind that a careless change would bring back; a row must go red on each.

`PLANTED` names them: which part of `hascheduler.assembly` is exchanged, and the row under which it shows. The
simulator has more of them (`tests.sim.planted`).
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pymongo.errors import DuplicateKeyError

from hascheduler.dispatch.decisions import encode_decisions
from hascheduler.errors import HistoryLost
from hascheduler.model.documents import encode_journal_head
from hascheduler.model.instants import WallMs
from hascheduler.model.job import JobState
from hascheduler.model.lease import LeaseRecord
from hascheduler.mongo.faults import faults
from hascheduler.mongo.moves import to_terminal
from hascheduler.ports import Batch, FinishAnswer, JournalEntry, Outcome, StartedJob

_KEPT_MS = 604_800_000


@dataclass(frozen=True)
class Planted:
    """``instead`` takes what the assembly makes by the name ``part`` and gives what it is to have."""

    part: str
    instead: Callable[[Any], Any]
    row: str


class _LeaseWithoutCompare:
    """Writes whatever it is asked to, over whatever is there."""

    def __init__(self, leases: Any) -> None:
        self._leases = leases
        self.get = leases.get
        self.create = leases.create

    async def update(self, expected: LeaseRecord, proposed: LeaseRecord) -> bool:
        while (stored := await self._leases.get(expected.shard)) is not None:
            if await self._leases.update(stored, proposed):
                return True
        return False


class _JournalWithoutFence:
    """An entry is one's own: whoever else has written at its seq, it is inserted beside that."""

    def __init__(self, journal: Any) -> None:
        self._journal = journal

    def __getattr__(self, name: str) -> Any:
        return getattr(self._journal, name)

    async def insert(self, entry: JournalEntry) -> bool:
        document = {
            **encode_journal_head(entry.head),
            "at_ms": entry.at_ms,
            "decisions": encode_decisions(entry.decisions),
        }
        document["_id"] = {**document["_id"], "by": entry.head.holder}
        with faults("append to the journal"), suppress(DuplicateKeyError):
            await self._journal._journal.insert_one(document)
        return True


class _StartWithoutCompare:
    """Starts whatever a message names, whoever has it and whether it has ended."""

    def __init__(self, work: Any) -> None:
        self._work = work

    def __getattr__(self, name: str) -> Any:
        return getattr(self._work, name)

    async def start(self, job_id: str, attempt: int, processor_id: str, at_ms: WallMs) -> StartedJob | None:
        promised = {"state": JobState.DISPATCHED.value, "attempt": attempt, "processor": processor_id}
        with faults("start the attempt"):
            await self._work._jobs.update_one({"_id": job_id}, {"$set": promised})
        started: StartedJob | None = await self._work.start(job_id, attempt, processor_id, at_ms)
        return started


class _FinishWithoutAttempt:
    """Ends a job that runs, whoever runs it by now."""

    def __init__(self, work: Any) -> None:
        self._work = work

    def __getattr__(self, name: str) -> Any:
        return getattr(self._work, name)

    async def finish(
        self, job_id: str, attempt: int, processor_id: str, outcome: Outcome, at_ms: WallMs
    ) -> FinishAnswer:
        with faults("finish the attempt"):
            await self._work._jobs.update_one(
                {"_id": job_id, "state": JobState.RUNNING.value},
                to_terminal(outcome, outcome.state.value, at_ms, kept_ms=_KEPT_MS),
            )
        return FinishAnswer.DONE


class _FromNowOn:
    """After lost history the stream goes on with what happens next, as if nothing had been missed."""

    def __init__(self, source: Any) -> None:
        self._source = source

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    async def open(self, resume: Any | None) -> Any:
        try:
            stream = await self._source.open(resume)
        except HistoryLost:
            stream = await self._source.open(None)
        return _NeverLost(self._source, stream)


class _NeverLost:
    def __init__(self, source: Any, stream: Any) -> None:
        self._source = source
        self._stream = stream
        self.snapshot = stream.snapshot

    async def next_batch(self, wait_ms: int) -> Batch:
        try:
            batch: Batch = await self._stream.next_batch(wait_ms)
        except HistoryLost:
            self._stream = await self._source.open(None)
            batch = await self._stream.next_batch(wait_ms)
        return batch

    async def close(self) -> None:
        await self._stream.close()


def _believed_alone(clock: Any) -> Any:
    """A replica goes by its own clock, whatever the database's says."""
    clock.compared = lambda *_: None
    return clock


def _never_fences_itself(processor: Any) -> Any:
    class Open(type(processor._fence)):  # type: ignore[misc]  # the same, but for its judgement
        trusted = True

        def check(self) -> bool:
            return True

    processor._fence.__class__ = Open
    return processor


PLANTED: Mapping[str, Planted] = {
    "lease-without-compare-and-set": Planted("MongoLeaseStore", _LeaseWithoutCompare, "leader-sigstop"),
    "fence-skipped": Planted("MongoJournal", _JournalWithoutFence, "leader-stops-at-fence"),
    "start-without-compare-and-set": Planted("MongoWorkStore", _StartWithoutCompare, "strange-messages"),
    "attempt-check-dropped-on-finish": Planted("MongoWorkStore", _FinishWithoutAttempt, "processor-stops-at-finish"),
    "resume-from-now-after-lost-history": Planted("MongoChangeSource", _FromNowOn, "history-lost"),
    "clock-believed-alone": Planted("TrustedClock", _believed_alone, "clock-day-ahead"),
    "processor-without-fence": Planted("Processor", _never_fences_itself, "processor-without-mongodb"),
}
