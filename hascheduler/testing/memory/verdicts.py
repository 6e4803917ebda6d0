"""The verdicts on nominal times: of fired ones the jobs, of all others their records."""

from collections.abc import Collection as SomeOf
from collections.abc import Iterator, Sequence
from contextlib import suppress

from hascheduler.errors import InvalidInput
from hascheduler.model.collection import Collection
from hascheduler.model.documents.job import maker_of
from hascheduler.model.documents.verdict import decode_verdict
from hascheduler.model.fields import integer
from hascheduler.model.instants import WallMs
from hascheduler.model.job import JobState, ScheduleId, fire_job_id, fired_at
from hascheduler.model.verdict import Verdict, VerdictRun
from hascheduler.ports import DecidedVerdict, ListPosition, VerdictPage, VerdictRecord, VerdictSelection
from hascheduler.testing.memory.connection import MemoryConnection
from hascheduler.testing.memory.database import Document, MemoryDatabase


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

    async def of_all(self, which: VerdictSelection, after: ListPosition | None, limit: int) -> VerdictPage:
        async with self._connection.exchange("verdicts.of_all") as database:
            found = [(place, verdict) for place, verdict in _decided(database, which) if _is_after(after, place)]
        found.sort(key=lambda one: one[0], reverse=True)
        next = ListPosition(*found[limit - 1][0]) if len(found) > limit else None
        return VerdictPage([verdict for _, verdict in found[:limit]], next)


def _decided(database: MemoryDatabase, which: VerdictSelection) -> Iterator[tuple[tuple[int, str], DecidedVerdict]]:
    for document in database.documents(Collection.VERDICTS):
        with suppress(InvalidInput):  # malformed by hand: no verdict
            verdict = DecidedVerdict(decode_verdict(document), integer(document, "decided_at_ms"))
            since_ms, before_ms = which.since_ms, which.before_ms
            if (
                verdict.run.verdict in which.verdicts
                and (since_ms is None or verdict.decided_at_ms >= since_ms)
                and (before_ms is None or verdict.decided_at_ms < before_ms)
                and (which.text or "").lower() in verdict.run.schedule.lower()
                and which.takes(document, database.find(Collection.SCHEDULES, verdict.run.schedule))
                and not _has_fired(database, document, verdict)
            ):
                yield (verdict.decided_at_ms, str(document["_id"])), verdict


def _has_fired(database: MemoryDatabase, document: Document, verdict: DecidedVerdict) -> bool:
    job = database.find(Collection.JOBS, fire_job_id(verdict.run.schedule, verdict.run.first_ms))
    if verdict.run.verdict is not Verdict.UNSTORABLE or job is None:
        return False
    made_ms = job.get("schedule_created_at_ms")
    return made_ms is None or document.get("schedule_created_at_ms") in (None, made_ms)


def _is_after(position: ListPosition | None, place: tuple[int, str]) -> bool:
    if position is None:
        return True
    return place[0] <= position.at_ms if position.id is None else place < (position.at_ms, position.id)


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
        maker = maker_of(job) if fired_at(str(job["_id"])) is not None else None
        if maker is not None and maker.is_same(schedule):
            nominal_ms = job["nominal_ms"]
            yield VerdictRecord(
                VerdictRun(schedule.name, Verdict.FIRED, nominal_ms, nominal_ms, 1),
                JobState(job["state"]),
                job.get("first_started_at_ms"),
            )
