"""The stores of several shards, in memory: routing, names of schedules, holds, moves of slots."""

from collections.abc import Sequence
from contextlib import suppress

from hascheduler.errors import InvalidInput
from hascheduler.model.collection import Collection
from hascheduler.model.documents.routing import ROUTING_ID, decode_routing, encode_routing
from hascheduler.model.hold import partition_of_key
from hascheduler.model.job import OCCUPYING, TERMINAL, JobState
from hascheduler.model.routing import Routing, slot_of
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import StoredDocument
from hascheduler.ports.sharding import (
    MovedDocuments,
    Passage,
    ReservedName,
    decode_reserved_name,
    duplicate_of_another,
    encode_reserved_name,
    is_late_copy,
    looks_at_live_jobs,
    next_use,
)
from hascheduler.testing.memory.database import MemoryConnection, MemoryDatabase, MemoryStore


class MemoryRoutingStore(MemoryStore):
    """`hascheduler.ports.sharding.RoutingStore`."""

    async def get(self) -> Routing | None:
        async with self._connection.exchange("routing.get") as database:
            found = database.find(Collection.ROUTING, ROUTING_ID)
            return None if found is None else decode_routing(found)

    async def is_unused(self) -> bool:
        async with self._connection.exchange("routing.is_unused") as database:
            return not any(any(database.documents(used)) for used in (Collection.JOBS, Collection.SCHEDULES))

    async def reserve_names(self, at_ms: WallMs) -> None:
        async with self._connection.exchange("routing.reserve_names") as database:
            for schedule in list(database.documents(Collection.SCHEDULES)):
                reserved = next_use(schedule["_id"], schedule["job"]["tenant"], None, at_ms)
                database.insert(Collection.NAMES, encode_reserved_name(reserved))

    async def create(self, routing: Routing) -> bool:
        async with self._connection.exchange("routing.create") as database:
            return database.insert(Collection.ROUTING, encode_routing(routing))

    async def replace(self, epoch: int, routing: Routing) -> bool:
        async with self._connection.exchange("routing.replace") as database:
            found = database.find(Collection.ROUTING, ROUTING_ID)
            if found is None or found["epoch"] != epoch:
                return False
            database.replace(Collection.ROUTING, encode_routing(routing))
            return True


class MemoryNameStore(MemoryStore):
    """`hascheduler.ports.sharding.NameStore`."""

    async def get(self, name: str) -> ReservedName | None:
        async with self._connection.exchange("names.get") as database:
            found = database.find(Collection.NAMES, name)
            with suppress(InvalidInput):
                return None if found is None else decode_reserved_name(found)
            return None

    async def reserve(self, name: str, tenant: str, before: ReservedName | None, at_ms: WallMs) -> ReservedName | None:
        async with self._connection.exchange("names.reserve") as database:
            found = database.find(Collection.NAMES, name)
            if (None if found is None else decode_reserved_name(found)) != before:
                return None
            reserved = next_use(name, tenant, before, at_ms)
            database.replace(Collection.NAMES, encode_reserved_name(reserved))
            return reserved

    async def release(self, reserved: ReservedName) -> bool:
        async with self._connection.exchange("names.release") as database:
            if database.find(Collection.NAMES, reserved.name) != encode_reserved_name(reserved):
                return False
            return database.delete(Collection.NAMES, reserved.name)


class MemorySlotStore:
    """`hascheduler.ports.sharding.SlotStore`, as in one MongoDB. ``connections`` are those of the shards."""

    def __init__(self, connections: Sequence[MemoryConnection], job_retention_ms: int) -> None:
        self._connections = connections
        self._job_retention_ms = job_retention_ms

    async def move_first(self, passage: Passage, limit: int, at_ms: WallMs) -> MovedDocuments:
        async with self._connections[passage.source].exchange("slots.move_first") as here:
            there = self._connections[passage.target].database
            if not _is_unchanged(passage, here, there):
                return MovedDocuments(0, 1)
            jobs, schedules = _of_slot(passage, here)
            waiting = [job for job in jobs if job["state"] == JobState.PENDING]
            looking = {one["_id"] for one in schedules if looks_at_live_jobs(one)}
            tied = [job for job in waiting if job.get("schedule") in looking or job.get("waits_for")]
            awaited = {id for job in tied for id in _awaited(job)}
            first = [job for job in jobs if _names(job) & awaited and job not in tied and job["state"] not in OCCUPYING]
            some = (first + tied)[:limit]
            more = schedules[: limit - len(some)]
            self._move(Collection.JOBS, some, here, there, at_ms)
            self._move(Collection.SCHEDULES, more, here, there, at_ms)
            moved = len(some) + len(more)
            return MovedDocuments(moved, 1 if moved else sum(job["state"] in OCCUPYING for job in jobs))

    async def move_rest(self, passage: Passage, limit: int, at_ms: WallMs) -> MovedDocuments:
        async with self._connections[passage.source].exchange("slots.move_rest") as here:
            there = self._connections[passage.target].database
            if not _is_unchanged(passage, here, there):
                return MovedDocuments(0, 1)
            jobs, schedules = _of_slot(passage, here)
            here_still = {name for job in jobs for name in _names(job)}
            waiting = [job for job in jobs if job["state"] == JobState.PENDING]
            alone = sorted((job for job in waiting if not job.get("waits_for")), key=_most_urgent_first)
            ended = [job for job in jobs if job["state"] in TERMINAL]
            names = {one["_id"] for database in (here, there) for one in _of_slot(passage, database)[1]}
            verdicts = [one for one in here.documents(Collection.VERDICTS) if one["schedule"] in names]
            dependents = [job for job in waiting if _awaited(job) and here_still.isdisjoint(_awaited(job))]
            for collection, found in (
                (Collection.JOBS, alone),
                (Collection.JOBS, ended),
                (Collection.VERDICTS, verdicts),
                (Collection.SCHEDULES, schedules),
                (Collection.JOBS, dependents),
            ):
                if some := found[:limit]:
                    self._move(collection, some, here, there, at_ms)
                    return MovedDocuments(len(some), 1)
            return MovedDocuments(0, len(jobs))

    async def underway(self, index: int) -> frozenset[int]:
        return frozenset()

    async def deliver(self, passage: Passage, at_ms: WallMs) -> int:
        return 0

    def _move(
        self,
        collection: Collection,
        documents: Sequence[StoredDocument],
        here: MemoryDatabase,
        there: MemoryDatabase,
        at_ms: WallMs,
    ) -> None:
        for document in documents:
            if collection is Collection.JOBS:
                self._move_job(here, there, document, at_ms)
            else:
                here.delete(collection, document["_id"])
                there.insert(collection, document)

    def _move_job(self, here: MemoryDatabase, there: MemoryDatabase, job: StoredDocument, at_ms: WallMs) -> None:
        here.delete(Collection.JOBS, job["_id"])
        late = there.find(Collection.JOBS, job["_id"])
        if late is not None and is_late_copy(late, job):
            there.delete(Collection.JOBS, job["_id"])
        is_taken = any(
            job.get(key) and other.get(key) == job[key] and (key == "unique_key" or other["tenant"] == job["tenant"])
            for other in there.documents(Collection.JOBS)
            for key in ("idempotency_key", "unique_key")
            if other["_id"] != job["_id"]
        )
        there.insert(Collection.JOBS, duplicate_of_another(job, at_ms, self._job_retention_ms) if is_taken else job)


def _is_unchanged(passage: Passage, here: MemoryDatabase, there: MemoryDatabase) -> bool:
    for database, hold in ((here, passage.closed), (there, passage.there)):
        stored = database.find(Collection.HOLDS, hold.key) or {}
        if (stored.get("rev"), stored.get("held")) != (hold.rev, hold.is_held):
            return False
    return True


def _of_slot(passage: Passage, database: MemoryDatabase) -> tuple[list[StoredDocument], list[StoredDocument]]:
    """Its jobs and its schedules."""
    slot = partition_of_key(passage.closed.key)
    return (
        [job for job in database.documents(Collection.JOBS) if slot_of(job["tenant"]) == slot],
        [one for one in database.documents(Collection.SCHEDULES) if slot_of(one["job"]["tenant"]) == slot],
    )


def _awaited(job: StoredDocument) -> set[str]:
    """What the job waits for; its own id stands for no other job."""
    return {*(job.get("waits_for") or ())} - {job["_id"]}


def _names(job: StoredDocument) -> set[str | None]:
    """What another job may wait for that waits for this one."""
    return {job["_id"], job.get("batch")}


def _most_urgent_first(job: StoredDocument) -> tuple[int, int, str]:
    return (-job.get("priority", 0), job.get("submitted_at_ms", 0), job["_id"])


class MemoryCopyStore(MemoryStore):
    """`hascheduler.ports.sharding.CopyStore`."""

    async def get(self, collection: Collection, name: str) -> StoredDocument | None:
        async with self._connection.exchange("copies.get") as database:
            return database.find(collection, name)

    async def insert(self, collection: Collection, document: StoredDocument) -> bool:
        async with self._connection.exchange("copies.insert") as database:
            return database.insert(collection, document)

    async def replace(self, collection: Collection, before: StoredDocument, document: StoredDocument) -> bool:
        async with self._connection.exchange("copies.replace") as database:
            if not _is_still(database.find(collection, before["_id"]), before):
                return False
            database.replace(collection, document)
            return True

    async def delete(self, collection: Collection, before: StoredDocument) -> bool:
        async with self._connection.exchange("copies.delete") as database:
            return _is_still(database.find(collection, before["_id"]), before) and database.delete(
                collection, before["_id"]
            )


def _is_still(found: StoredDocument | None, before: StoredDocument) -> bool:
    return found is not None and found.get("rev") == before.get("rev")
