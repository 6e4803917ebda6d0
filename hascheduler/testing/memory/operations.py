"""Operations, one document each, and all jobs or schedules that match, slice by slice."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from hascheduler.model.collection import Collection
from hascheduler.model.values.instants import WallMs, to_datetime
from hascheduler.ports import (
    BulkOperation,
    JobSelection,
    JobSlice,
    ListPosition,
    MatchingSchedules,
    OperationState,
    ScheduleSlice,
    StoredDocument,
)
from hascheduler.ports.operations import (
    ENDED_KEPT_MAX,
    OPERATION_KEPT_MS,
    UNFINISHED_MAX,
    UnfinishedOperation,
    encode_operation,
    encode_progress_of,
    unfinished_operation,
)
from hascheduler.testing.memory.connection import MemoryConnection
from hascheduler.testing.memory.database import Document, MemoryDatabase
from hascheduler.testing.memory.jobs import MemoryJobStore
from hascheduler.testing.memory.storable import copied


class MemoryOperationStore:
    """`hascheduler.ports.OperationStore`."""

    def __init__(self, connection: MemoryConnection) -> None:
        self._connection = connection

    async def create(self, operation: BulkOperation, key: str | None = None) -> StoredDocument | None:
        async with self._connection.exchange("operations.create") as database:
            own_key = None if key is None else f"{operation.party}/{key}"
            stored = list(database.documents(Collection.OPERATIONS))
            known = next((one for one in stored if own_key is not None and one.get("key") == own_key), None)
            if known is not None:
                return copied(known)
            if sum(_is_running(one) and one["party"] == operation.party for one in stored) >= UNFINISHED_MAX:
                return None
            document = encode_operation(operation) | ({} if own_key is None else {"key": own_key})
            database.insert(Collection.OPERATIONS, document)
            _trim(database, operation.party)
            return document

    async def get(self, id: str) -> StoredDocument | None:
        async with self._connection.exchange("operations.get") as database:
            return copied(database.find(Collection.OPERATIONS, id))

    async def list(self, party: str | None, after: str | None, limit: int) -> Sequence[StoredDocument]:
        async with self._connection.exchange("operations.list") as database:
            return copied(_newest_first(database, party, after, limit))

    async def request_stop(self, id: str, at_ms: WallMs, by: str) -> StoredDocument | None:
        async with self._connection.exchange("operations.request_stop") as database:
            stored = database.find(Collection.OPERATIONS, id)
            if stored is not None and _is_running(stored) and stored["stop_requested_at_ms"] is None:
                asked = {"stop_requested_at_ms": at_ms, "stop_requested_by": by}
                stored = database.update(Collection.OPERATIONS, stored, asked)
            return copied(stored)

    async def unfinished(self, limit: int) -> Sequence[UnfinishedOperation]:
        async with self._connection.exchange("operations.unfinished") as database:
            found = database.page(Collection.OPERATIONS, None, limit, which=_is_running)
            return [unfinished_operation(one) for one in found]

    async def take(self, id: str, before: str | None, rev: int, runner: str) -> StoredDocument | None:
        return await self._changed(id, before, rev, {"runner": runner})

    async def save(self, operation: BulkOperation) -> StoredDocument | None:
        expiry: Mapping[str, Any] = {}
        if operation.ended_at_ms is not None:
            expiry = {"expire_at": to_datetime(operation.ended_at_ms + OPERATION_KEPT_MS)}
        fields = {**encode_progress_of(operation), **expiry}
        return await self._changed(operation.id, operation.runner, operation.rev, fields)

    async def give_back(self, operation: BulkOperation) -> None:
        await self._changed(operation.id, operation.runner, operation.rev, {"runner": None})

    async def _changed(self, id: str, runner: str | None, rev: int, fields: Mapping[str, Any]) -> StoredDocument | None:
        async with self._connection.exchange("operations.write") as database:
            stored = database.find(Collection.OPERATIONS, id)
            if stored is None or not _is_running(stored) or (stored["runner"], stored["rev"]) != (runner, rev):
                return None
            return copied(database.update(Collection.OPERATIONS, stored, {**fields, "rev": rev + 1}))


def _is_running(stored: Document) -> bool:
    return bool(stored["state"] == OperationState.RUNNING)


def _newest_first(database: MemoryDatabase, party: str | None, after: str | None, limit: int) -> list[Document]:
    return database.page(
        Collection.OPERATIONS, after, limit, newest_first=True, which=lambda one: party in (None, one["party"])
    )


def _trim(database: MemoryDatabase, party: str) -> None:
    for one in _newest_first(database, party, None, len(list(database.documents(Collection.OPERATIONS))))[
        ENDED_KEPT_MAX:
    ]:
        if not _is_running(one):
            database.delete(Collection.OPERATIONS, one["_id"])


class MemoryMatchStore:
    """`hascheduler.ports.MatchStore`."""

    def __init__(self, connection: MemoryConnection) -> None:
        self._connection = connection
        self._jobs = MemoryJobStore(connection, job_retention_ms=0)

    async def jobs(self, which: JobSelection, after: ListPosition | None, limit: int) -> JobSlice:
        newest_first = (await self._jobs.list(which, None, sys.maxsize)).documents
        places = [(job["submitted_at_ms"], str(job["_id"])) for job in reversed(newest_first)]
        left = [place for place in places if _is_after(after, place)]
        found = [ListPosition(*place) for place in left[:limit]]
        return JobSlice(found, found[-1] if len(left) > limit else None)

    async def schedules(self, which: MatchingSchedules, after: str | None, limit: int) -> ScheduleSlice:
        async with self._connection.exchange("matches.schedules") as database:
            found = database.page(Collection.SCHEDULES, after, limit + 1, which=lambda one: _is_meant(which, one))
            names = [str(one["_id"]) for one in found]
            return ScheduleSlice(names[:limit], names[limit - 1] if len(names) > limit else None)

    async def count_schedules(self, which: MatchingSchedules, limit: int) -> int:
        async with self._connection.exchange("matches.count_schedules") as database:
            return len(database.page(Collection.SCHEDULES, None, limit, which=lambda one: _is_meant(which, one)))


def _is_after(position: ListPosition | None, place: tuple[int, str]) -> bool:
    if position is None:
        return True
    return place[0] >= position.at_ms if position.id is None else place > (position.at_ms, position.id)


def _is_meant(which: MatchingSchedules, schedule: Document) -> bool:
    if which.names is not None and schedule["_id"] not in which.names:
        return False
    if which.text is not None and which.text.lower() not in str(schedule["_id"]).lower():
        return False
    if which.tenant is not None and schedule["job"]["tenant"] != which.tenant:
        return False
    if which.paused is not None and (schedule.get("paused_at_ms") is not None) != which.paused:
        return False
    return bool(which.labels.items() <= schedule["labels"].items())
