"""The verdicts on nominal times: of fired ones the jobs, of all others their records."""

from collections.abc import Collection as SomeOf
from collections.abc import Iterator, Sequence
from contextlib import suppress

from hascheduler.errors import InvalidInput
from hascheduler.model.collection import Collection
from hascheduler.model.documents.job import maker_of
from hascheduler.model.documents.verdict import decode_verdict
from hascheduler.model.instants import WallMs
from hascheduler.model.job import JobState, ScheduleId, fire_job_id
from hascheduler.model.verdict import Verdict, VerdictRun
from hascheduler.ports import VerdictRecord
from hascheduler.testing.memory.connection import MemoryConnection
from hascheduler.testing.memory.database import MemoryDatabase


class MemoryVerdictStore:
    """`hascheduler.ports.VerdictStore`."""

    def __init__(self, connection: MemoryConnection) -> None:
        self._connection = connection

    async def list(
        self, schedule: ScheduleId, verdicts: SomeOf[Verdict], after_ms: WallMs, before_ms: WallMs, limit: int
    ) -> Sequence[VerdictRecord]:
        async with self._connection.exchange("verdicts.list") as database:
            records = [
                record
                for record in [*_passed_over(database, schedule), *_fired(database, schedule)]
                if record.run.verdict in verdicts and after_ms < record.run.first_ms < before_ms
            ]
        return sorted(records, key=lambda record: record.run.first_ms, reverse=True)[:limit]


def _passed_over(database: MemoryDatabase, schedule: ScheduleId) -> Iterator[VerdictRecord]:
    for document in database.documents(Collection.VERDICTS):
        is_own = document.get("schedule_created_at_ms") in (None, schedule.created_at_ms)
        if document["schedule"] == schedule.name and is_own:
            with suppress(InvalidInput):  # malformed by hand: no verdict
                run = decode_verdict(document)
                job = database.find(Collection.JOBS, fire_job_id(schedule.name, run.first_ms))
                maker = None if job is None else maker_of(job)
                is_fired = maker is not None and maker.is_same(schedule)
                if run.verdict is not Verdict.UNSTORABLE or not is_fired:
                    yield VerdictRecord(run)


def _fired(database: MemoryDatabase, schedule: ScheduleId) -> Iterator[VerdictRecord]:
    for job in database.documents(Collection.JOBS):
        maker = maker_of(job) if str(job["_id"]).startswith("fire:") else None
        if maker is not None and maker.is_same(schedule):
            nominal_ms = job["nominal_ms"]
            yield VerdictRecord(
                VerdictRun(schedule.name, Verdict.FIRED, nominal_ms, nominal_ms, 1), JobState(job["state"])
            )
