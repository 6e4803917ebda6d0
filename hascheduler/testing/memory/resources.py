"""Definitions, lanes, tenants and schedules as the API writes them, and the verdicts on schedules' nominal times."""

from collections.abc import Collection as SomeOf
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar

from hascheduler.errors import InvalidInput
from hascheduler.model.collection import Collection
from hascheduler.model.documents.job import maker_of
from hascheduler.model.documents.verdict import decode_verdict
from hascheduler.model.job import JobState, ScheduleId, fire_job_id, fired_at
from hascheduler.model.values.fields import integer
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import Verdict, VerdictRun
from hascheduler.ports import DecidedVerdict, ListPosition, StoredDocument, VerdictPage, VerdictRecord, VerdictSelection
from hascheduler.schema.noun import Part, document_of
from hascheduler.testing.memory.database import (
    Document,
    MemoryConnection,
    MemoryDatabase,
    MemoryStore,
    copied,
    is_after,
    stored_form,
)

Resource = TypeVar("Resource", bound=Part)


class _NamedStore(MemoryStore):
    """The common part of stores of named documents."""

    _collection: Collection

    async def get(self, name: str) -> StoredDocument | None:
        async with self._connection.exchange(f"{self._collection}.get") as database:
            return copied(database.find(self._collection, name))

    async def delete(self, name: str, rev: int | None = None) -> bool:
        async with self._connection.exchange(f"{self._collection}.delete") as database:
            stored = database.find(self._collection, name)
            if stored is None or rev not in (None, stored.get("rev")):
                return False
            return database.delete(self._collection, name)


class MemoryResourceStore(_NamedStore, Generic[Resource]):
    """`hascheduler.ports.ResourceStore`."""

    def __init__(self, connection: MemoryConnection, collection: Collection) -> None:
        super().__init__(connection)
        self._collection = collection

    async def create(self, resource: Resource) -> StoredDocument | None:
        async with self._connection.exchange(f"{self._collection}.create") as database:
            document = document_of(resource) | {"rev": 1}
            return document if database.insert(self._collection, document) else None

    async def replace(self, resource: Resource, rev: int) -> StoredDocument | None:
        async with self._connection.exchange(f"{self._collection}.replace") as database:
            fields = document_of(resource) | {"rev": rev + 1}
            stored = database.find(self._collection, fields["_id"])
            if stored is None or stored["rev"] != rev:
                return None
            return copied(database.update(self._collection, stored, fields))

    async def list(self, after: str | None, limit: int) -> Sequence[StoredDocument]:
        async with self._connection.exchange(f"{self._collection}.list") as database:
            return copied(database.page(self._collection, after, limit))


class MemoryScheduleStore(_NamedStore):
    """`hascheduler.ports.ScheduleStore`."""

    _collection = Collection.SCHEDULES

    async def create(self, document: StoredDocument) -> StoredDocument | None:
        async with self._connection.exchange("schedules.create") as database:
            stored = stored_form(document)
            return stored if database.insert(Collection.SCHEDULES, stored) else None

    async def edit(self, name: str, rev: int, fields: Mapping[str, Any]) -> StoredDocument | None:
        async with self._connection.exchange("schedules.edit") as database:
            stored = database.find(Collection.SCHEDULES, name)
            if stored is None or stored.get("rev") != rev:
                return None
            return copied(database.update(Collection.SCHEDULES, stored, {**fields, "rev": rev + 1}))

    async def list(
        self, after: str | None, limit: int, labels: Mapping[str, str] | None = None, *, tenant: str | None = None
    ) -> Sequence[StoredDocument]:
        def matches(schedule: StoredDocument) -> bool:
            return _matches(schedule, labels or {}, tenant)

        async with self._connection.exchange("schedules.list") as database:
            return copied(database.page(Collection.SCHEDULES, after, limit, which=matches))

    async def among(
        self, names: Sequence[str], labels: Mapping[str, str], limit: int, *, tenant: str | None = None
    ) -> Sequence[StoredDocument]:
        async with self._connection.exchange("schedules.among") as database:
            return copied(_among(database, names, labels, tenant)[:limit])

    async def names_among(
        self, names: Sequence[str], labels: Mapping[str, str], *, tenant: str | None = None
    ) -> Sequence[str]:
        async with self._connection.exchange("schedules.names_among") as database:
            return [str(one["_id"]) for one in _among(database, names, labels, tenant)]

    async def count(self, tenant: str, limit: int) -> int:
        async with self._connection.exchange("schedules.count") as database:
            tenants = [schedule["job"]["tenant"] for schedule in database.documents(Collection.SCHEDULES)]
            return min(tenants.count(tenant), limit)


def _among(
    database: MemoryDatabase, names: Sequence[str], labels: Mapping[str, str], tenant: str | None
) -> list[StoredDocument]:
    found = (database.find(Collection.SCHEDULES, name) for name in sorted(set(names)))
    return [one for one in found if one is not None and _matches(one, labels, tenant)]


def _matches(schedule: StoredDocument, labels: Mapping[str, str], tenant: str | None) -> bool:
    if tenant is not None and schedule["job"]["tenant"] != tenant:
        return False
    return bool(labels.items() <= schedule["labels"].items())


class MemoryVerdictStore(MemoryStore):
    """`hascheduler.ports.VerdictStore`."""

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

    async def first_fired(self, schedule: ScheduleId, after_ms: WallMs) -> WallMs | None:
        async with self._connection.exchange("verdicts.first_fired") as database:
            times = [record.run.first_ms for record in _fired(database, schedule)]
        return min((nominal_ms for nominal_ms in times if nominal_ms > after_ms), default=None)

    async def of_all(self, which: VerdictSelection, after: ListPosition | None, limit: int) -> VerdictPage:
        async with self._connection.exchange("verdicts.of_all") as database:
            found = [(place, verdict) for place, verdict in _decided(database, which) if is_after(after, place)]
        found.sort(key=lambda one: one[0], reverse=True)
        next = ListPosition(*found[limit - 1][0]) if len(found) > limit else None
        return VerdictPage([verdict for _, verdict in found[:limit]], next)


def _decided(database: MemoryDatabase, which: VerdictSelection) -> Iterator[tuple[tuple[int, str], DecidedVerdict]]:
    for document in database.documents(Collection.VERDICTS):
        with suppress(InvalidInput):  # malformed by hand: no verdict
            verdict = DecidedVerdict(decode_verdict(document), integer(document, "decided_at_ms"))
            since_ms, before_ms = which.since_ms, which.until_ms
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
                job.get("error"),
            )
