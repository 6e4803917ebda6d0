"""The backends that a suite runs on: all ports of one technology, and direct access to the stored documents."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import pytest

from hascheduler.kubernetes.leases import KubernetesLeaseStore
from hascheduler.model.collection import Collection
from hascheduler.mongo.access import MongoAuditStore, MongoTokenStore
from hascheduler.mongo.apply.claims import MongoClaimStore
from hascheduler.mongo.buckets import MongoBucketStore
from hascheduler.mongo.connection import Database
from hascheduler.mongo.holds import MongoHoldStore
from hascheduler.mongo.jobs.store import MongoJobStore
from hascheduler.mongo.journal import MongoJournal
from hascheduler.mongo.leases import MongoLeaseStore
from hascheduler.mongo.replicas import MongoAccountStore, MongoFailoverStore, MongoReplicaBoard
from hascheduler.mongo.resources import MongoResourceStore
from hascheduler.mongo.schedules import MongoScheduleStore
from hascheduler.mongo.stream.source import MongoChangeSource
from hascheduler.mongo.transport import MongoJobTraces
from hascheduler.mongo.verdicts import MongoVerdictStore
from hascheduler.mongo.work.store import MongoWorkStore
from hascheduler.ports import (
    AccountStore,
    AuditStore,
    BucketStore,
    ChangeSource,
    ClaimStore,
    FailoverStore,
    JobStore,
    JobTraces,
    Journal,
    LeaseStore,
    ReplicaBoard,
    ResourceStore,
    ScheduleStore,
    TokenStore,
    VerdictStore,
    WorkStore,
)
from hascheduler.ports.leadership import HoldStore
from hascheduler.schema.calendar import Calendar
from hascheduler.schema.definition import Definition
from hascheduler.schema.lane import Lane
from hascheduler.schema.noun import document_of
from hascheduler.schema.pause import StandingPause
from hascheduler.schema.tenant import Tenant
from hascheduler.testing.memory.access import MemoryAuditStore, MemoryBucketStore, MemoryTokenStore
from hascheduler.testing.memory.claims import MemoryClaimStore
from hascheduler.testing.memory.database import MemoryConnection, MemoryDatabase
from hascheduler.testing.memory.jobs import MemoryJobStore
from hascheduler.testing.memory.leadership import (
    MemoryAccountStore,
    MemoryFailoverStore,
    MemoryJournal,
    MemoryLeaseStore,
    MemoryReplicaBoard,
)
from hascheduler.testing.memory.resources import MemoryResourceStore, MemoryScheduleStore, MemoryVerdictStore
from hascheduler.testing.memory.stream import MemoryChangeSource
from hascheduler.testing.memory.work import MemoryWorkStore
from tests.doubles.holds import MemoryHoldStore
from tests.doubles.kubernetes.api_server import ApiServerDouble
from tests.doubles.kubernetes.service_account import NAMESPACE

RETENTION_MS = 600_000


class Behind(Protocol):
    """What people with access to the database can do, past every port."""

    async def find(self, collection: Collection, id: object) -> Mapping[str, Any] | None: ...

    async def insert(self, collection: Collection, document: Mapping[str, Any]) -> None: ...

    async def delete(self, collection: Collection, id: object) -> None: ...

    async def drop(self, collection: Collection) -> None: ...

    async def outdated(self, token: Any) -> Any:
        """A token like ``token`` whose history is gone."""
        ...


@dataclass(frozen=True, slots=True)
class Backend:
    leases: LeaseStore
    journal: Journal
    claims: ClaimStore
    source: ChangeSource
    accounts: AccountStore
    board: ReplicaBoard
    work: WorkStore
    schedules: ScheduleStore
    definitions: ResourceStore[Definition]
    lanes: ResourceStore[Lane]
    calendars: ResourceStore[Calendar]
    tenants: ResourceStore[Tenant]
    pauses: ResourceStore[StandingPause]
    tokens: TokenStore
    audit: AuditStore
    buckets: BucketStore
    jobs: JobStore
    verdicts: VerdictStore
    traces: JobTraces | None
    """None of stores in memory."""
    failovers: FailoverStore
    holds: HoldStore
    behind: Behind


def on(*names: str) -> pytest.MarkDecorator:
    """The suite runs on each of these backends."""
    # Motor is past its end of life and wraps the driver that pymongo's own asynchronous API replaces.
    marks = {"pymongo": [pytest.mark.real], "motor": [pytest.mark.real, pytest.mark.thorough]}
    params = [pytest.param(name, marks=marks.get(name, [])) for name in names]
    return pytest.mark.parametrize("backend", params, indirect=True)


def memory_backend(connection: MemoryConnection) -> Backend:
    return Backend(
        leases=MemoryLeaseStore(connection),
        journal=MemoryJournal(connection),
        claims=MemoryClaimStore(connection, RETENTION_MS),
        source=MemoryChangeSource(connection),
        accounts=MemoryAccountStore(connection),
        board=MemoryReplicaBoard(connection),
        work=MemoryWorkStore(connection, RETENTION_MS),
        schedules=MemoryScheduleStore(connection),
        definitions=MemoryResourceStore(connection, Collection.DEFINITIONS),
        lanes=MemoryResourceStore(connection, Collection.LANES),
        calendars=MemoryResourceStore(connection, Collection.CALENDARS),
        tenants=MemoryResourceStore(connection, Collection.TENANTS),
        pauses=MemoryResourceStore(connection, Collection.PAUSES),
        tokens=MemoryTokenStore(connection),
        audit=MemoryAuditStore(connection, RETENTION_MS),
        buckets=MemoryBucketStore(connection),
        jobs=MemoryJobStore(connection, RETENTION_MS),
        verdicts=MemoryVerdictStore(connection),
        traces=None,
        failovers=MemoryFailoverStore(connection),
        holds=MemoryHoldStore(connection),
        behind=_BehindMemory(connection.database),
    )


def mongo_backend(database: Database) -> Backend:
    return Backend(
        leases=MongoLeaseStore(database),
        journal=MongoJournal(database),
        claims=MongoClaimStore(database, RETENTION_MS),
        source=MongoChangeSource(database),
        accounts=MongoAccountStore(database),
        board=MongoReplicaBoard(database),
        work=MongoWorkStore(database, RETENTION_MS),
        schedules=MongoScheduleStore(database),
        definitions=MongoResourceStore(database, Collection.DEFINITIONS, document_of),
        lanes=MongoResourceStore(database, Collection.LANES, document_of),
        calendars=MongoResourceStore(database, Collection.CALENDARS, document_of),
        tenants=MongoResourceStore(database, Collection.TENANTS, document_of),
        pauses=MongoResourceStore(database, Collection.PAUSES, document_of),
        tokens=MongoTokenStore(database),
        audit=MongoAuditStore(database, RETENTION_MS),
        buckets=MongoBucketStore(database),
        jobs=MongoJobStore(database, RETENTION_MS),
        verdicts=MongoVerdictStore(database),
        traces=MongoJobTraces(database),
        failovers=MongoFailoverStore(database),
        holds=MongoHoldStore(database),
        behind=_BehindMongo(database),
    )


def kubernetes_backend(leases: KubernetesLeaseStore, cluster: ApiServerDouble) -> Backend:
    """Only the lease lives there."""
    others = memory_backend(MemoryConnection(MemoryDatabase()))
    return replace(others, leases=leases, behind=_BehindCluster(cluster))


class _BehindMemory:
    def __init__(self, database: MemoryDatabase) -> None:
        self._database = database

    async def find(self, collection: Collection, id: object) -> Mapping[str, Any] | None:
        return self._database.find(collection, id)

    async def insert(self, collection: Collection, document: Mapping[str, Any]) -> None:
        assert self._database.insert(collection, document)

    async def delete(self, collection: Collection, id: object) -> None:
        self._database.delete(collection, id)

    async def drop(self, collection: Collection) -> None:
        self._database.drop(collection)

    async def outdated(self, token: Any) -> Any:
        self._database.insert(Collection.DEFINITIONS, {"_id": "one more event"})
        self._database.history.forget()
        return token


class _BehindMongo:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, collection: Collection, id: object) -> Mapping[str, Any] | None:
        return await self._database[collection.value].find_one({"_id": id})

    async def insert(self, collection: Collection, document: Mapping[str, Any]) -> None:
        await self._database[collection.value].insert_one(dict(document))

    async def delete(self, collection: Collection, id: object) -> None:
        await self._database[collection.value].delete_one({"_id": id})

    async def drop(self, collection: Collection) -> None:
        await self._database[collection.value].drop()

    async def outdated(self, token: Any) -> Any:
        # A token begins with a type byte and the seconds of its cluster time: here those of 1970.
        return {"_data": token["_data"][:2] + "00000001" + token["_data"][10:]}


class _BehindCluster:
    """The Leases alone; nothing else is there."""

    def __init__(self, cluster: ApiServerDouble) -> None:
        self._leases = cluster.leases

    async def find(self, collection: Collection, id: object) -> Mapping[str, Any] | None:
        assert collection is Collection.LEASES
        name = f"hascheduler-{id}"
        return self._leases.get(NAMESPACE, name) if name in self._leases.names(NAMESPACE) else None

    async def delete(self, collection: Collection, id: object) -> None:
        assert collection is Collection.LEASES
        self._leases.delete(NAMESPACE, f"hascheduler-{id}")

    async def insert(self, collection: Collection, document: Mapping[str, Any]) -> None:
        raise NotImplementedError

    async def drop(self, collection: Collection) -> None:
        raise NotImplementedError

    async def outdated(self, token: Any) -> Any:
        raise NotImplementedError
