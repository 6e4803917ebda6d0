"""What became of nominal times: the fired ones by their jobs, the others by their records."""

from collections.abc import Collection as SomeOf
from collections.abc import Iterator, Sequence
from contextlib import suppress

from hascheduler.errors import InvalidInput
from hascheduler.memory.connection import MemoryConnection
from hascheduler.memory.database import MemoryDatabase
from hascheduler.model.documents import Collection, decode_verdict
from hascheduler.model.instants import WallMs
from hascheduler.model.job import JobState, fire_job_id, schedule_of
from hascheduler.model.verdict import Verdict, VerdictRun
from hascheduler.ports import VerdictRecord


class MemoryVerdictStore:
    """`hascheduler.ports.VerdictStore`."""

    def __init__(self, connection: MemoryConnection) -> None:
        self._connection = connection

    async def list(
        self, schedule: str, verdicts: SomeOf[Verdict], after_ms: WallMs, before_ms: WallMs, limit: int
    ) -> Sequence[VerdictRecord]:
        async with self._connection.exchange("verdicts.list") as database:
            records = [
                record
                for record in [*_passed_over(database, schedule), *_fired(database, schedule)]
                if record.run.verdict in verdicts and after_ms < record.run.first_ms < before_ms
            ]
        return sorted(records, key=lambda record: record.run.first_ms, reverse=True)[:limit]


def _passed_over(database: MemoryDatabase, schedule: str) -> Iterator[VerdictRecord]:
    for document in database.documents(Collection.VERDICTS):
        if document["schedule"] == schedule:
            with suppress(InvalidInput):  # written by hand and broken: nobody's verdict
                run = decode_verdict(document)
                is_fired = database.find(Collection.JOBS, fire_job_id(schedule, run.first_ms)) is not None
                if run.verdict is not Verdict.UNSTORABLE or not is_fired:
                    yield VerdictRecord(run)


def _fired(database: MemoryDatabase, schedule: str) -> Iterator[VerdictRecord]:
    for job in database.documents(Collection.JOBS):
        if str(job["_id"]).startswith("fire:") and schedule_of(job["_id"]) == schedule:
            nominal_ms = job["nominal_ms"]
            yield VerdictRecord(VerdictRun(schedule, Verdict.FIRED, nominal_ms, nominal_ms, 1), JobState(job["state"]))
