"""Stores with one bug each, of the kind that a careless change would bring back.

They wrap the sound store of any backend, so the bug meets the real server as well.
"""

import asyncio
from collections.abc import Sequence

from hascheduler.dispatch.decisions import Decision, Settlement
from hascheduler.model.collection import Collection
from hascheduler.model.documents.leadership import journal_id
from hascheduler.model.leadership import LeaseRecord
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import (
    AttemptOutcome,
    ClaimStore,
    FinishAnswer,
    JobStore,
    Journal,
    JournalEntry,
    LeaseStore,
    StartedJob,
    WorkStore,
)
from tests.contract.backends import Behind
from tests.mutants.everywhere import LeaseUpdateWithoutCompare


class LeaseUpdateThatComparesFirst:
    """Compares, and sets some time after that."""

    def __init__(self, leases: LeaseStore) -> None:
        self._unchecked = LeaseUpdateWithoutCompare(leases)
        self.get = leases.get
        self.create = leases.create

    async def update(self, expected: LeaseRecord, proposed: LeaseRecord) -> bool:
        if await self.get(expected.name) != expected:
            return False
        await asyncio.sleep(0.05)
        return await self._unchecked.update(expected, proposed)


class ClaimsThatTakeARefusalForSuccess:
    """That a job can't be stored is not looked at: its time counts as fired."""

    def __init__(self, claims: ClaimStore) -> None:
        self._claims = claims

    async def apply(self, decisions: Sequence[Decision], at_ms: WallMs, *, majority: bool) -> list[Settlement]:
        settled = await self._claims.apply(decisions, at_ms, majority=majority)
        return [Settlement.DONE if each is Settlement.REFUSED else each for each in settled]


class JournalThatOverwrites:
    """The fence is skipped: an entry goes to its seq, whichever leader has written there."""

    def __init__(self, journal: Journal, behind: Behind) -> None:
        self._journal = journal
        self._behind = behind
        self.tail = journal.tail
        self.get = journal.get
        self.read = journal.read
        self.trim = journal.trim

    async def insert(self, entry: JournalEntry) -> bool:
        while not await self._journal.insert(entry):
            await self._behind.delete(Collection.JOURNAL, journal_id(entry.head.name, entry.head.seq))
        return True


class WorkWithoutAttemptCheck:
    """Starts and finishes whatever attempt the job has now."""

    def __init__(self, work: WorkStore, jobs: JobStore) -> None:
        self._work = work
        self._jobs = jobs
        self.register = work.register
        self.beat = work.beat
        self.deregister = work.deregister
        self.give_back = work.give_back
        self.stop_requests = work.stop_requests
        self.report = work.report
        self.report_overdue = work.report_overdue
        self.touch = work.touch

    async def start(self, job_id: str, attempt: int, processor_id: str, at_ms: WallMs) -> StartedJob | None:
        return await self._work.start(job_id, await self._newest(job_id), processor_id, at_ms)

    async def finish(
        self, job_id: str, attempt: int, processor_id: str, outcome: AttemptOutcome, at_ms: WallMs
    ) -> FinishAnswer:
        return await self._work.finish(job_id, await self._newest(job_id), processor_id, outcome, at_ms)

    async def _newest(self, job_id: str) -> int:
        job = await self._jobs.get(job_id)
        assert job is not None
        return int(job["attempt"])


class StartForAnyProcessor(WorkWithoutAttemptCheck):
    """Starts the attempt for any processor that asks."""

    async def start(self, job_id: str, attempt: int, processor_id: str, at_ms: WallMs) -> StartedJob | None:
        job = await self._jobs.get(job_id)
        assert job is not None
        return await self._work.start(job_id, attempt, str(job["processor"]), at_ms)
