"""`MongoTenantStore`: the documents of the tenants of one partition, compared, put and taken under a hold."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pytest

from hascheduler.errors import StoreUnavailable
from hascheduler.model.collection import Collection
from hascheduler.model.documents.leadership import encode_hold
from hascheduler.model.job import JobState
from hascheduler.model.partition import Hold, partition_key, partition_of
from hascheduler.model.values.instants import to_datetime
from hascheduler.mongo.connection import Client, Database, open_database
from hascheduler.mongo.tenants import MongoTenantStore
from hascheduler.ports.tenants import Key, Version, marked
from hascheduler.testing.memory.database import MemoryConnection, MemoryDatabase
from tests.doubles.tenants import MemoryTenantStore
from tests.factories import NOW

KEPT_MS = 600_000
TENANT = "acme"
PARTITION = partition_of(TENANT)
OTHER = next(name for name in (f"t{n}" for n in range(600)) if partition_of(name) not in (PARTITION, 0))
SAME = next(name for name in (f"t{n}" for n in range(9_000)) if partition_of(name) == PARTITION)
HOLD = Hold(partition_key(PARTITION), 3, is_held=True, is_silent=True)
STORED_HOLD = Key("holds", HOLD.key)


class MemoryShard:
    def __init__(self) -> None:
        self._database = MemoryDatabase()
        self.store = MemoryTenantStore(MemoryConnection(self._database), KEPT_MS)

    async def find(self, key: Key) -> Mapping[str, Any] | None:
        return self._database.find(Collection(key.collection), key.id)

    async def insert(self, *documents: tuple[Key, Mapping[str, Any]]) -> None:
        for key, document in documents:
            assert self._database.insert(Collection(key.collection), document)


class MongoShard:
    def __init__(self, database: Database) -> None:
        self._database = database
        self.store = MongoTenantStore(database, KEPT_MS)

    async def find(self, key: Key) -> Mapping[str, Any] | None:
        return await self._database[key.collection].find_one({"_id": key.id})

    async def insert(self, *documents: tuple[Key, Mapping[str, Any]]) -> None:
        for key, document in documents:
            await self._database[key.collection].insert_one(dict(document))


Shard = MemoryShard | MongoShard


@pytest.fixture(params=["memory_shard", pytest.param("pymongo_shard", marks=pytest.mark.real)])
def shard(request: pytest.FixtureRequest) -> Shard:
    made: Shard = request.getfixturevalue(request.param)
    return made


@pytest.fixture
async def memory_shard() -> Shard:
    shard = MemoryShard()
    await shard.insert((STORED_HOLD, encode_hold(HOLD)))
    return shard


@pytest.fixture
async def pymongo_shard(pymongo_client: Client, ready_database: str) -> Shard:
    shard = MongoShard(open_database(pymongo_client, ready_database))
    await shard.insert((STORED_HOLD, encode_hold(HOLD)))
    return shard


def job(id: str, state: JobState = JobState.PENDING, tenant: str = TENANT, **more: Any) -> tuple[Key, dict[str, Any]]:
    fields = {"tenant": tenant, "state": state.value, "rev": 3, "submitted_at_ms": NOW, "definition": "log"}
    return Key("jobs", id), {"_id": id, **fields, **more}


def schedule(name: str, tenant: str = TENANT, **more: Any) -> tuple[Key, dict[str, Any]]:
    fields = {"rev": 2, "created_at_ms": NOW, "cursor_ms": NOW, "job": {"tenant": tenant}}
    return Key("schedules", name), {"_id": name, **fields, **more}


def verdict(schedule: str, first_ms: int, **more: Any) -> tuple[Key, dict[str, Any]]:
    id = f"{schedule}:{first_ms:013d}"
    fields = {"schedule": schedule, "verdict": "missed", "last_ms": first_ms, "decided_at_ms": first_ms}
    return Key("verdicts", id), {"_id": id, **fields, **more}


def bucket(tenant: str = TENANT, at_ms: int = NOW) -> tuple[Key, dict[str, Any]]:
    at = to_datetime(at_ms).replace(tzinfo=None)
    return Key("buckets", tenant), {"_id": tenant, "level": 1, "at": at}


def without_mark(document: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    return document and marked(document, 0)


ALL = [job("a"), job("over", JobState.FAILED), schedule("tick"), verdict("tick", NOW), bucket()]


# Tenants


async def test_the_tenants_of_a_partition_are_those_with_any_document(shard: Shard) -> None:
    assert await shard.store.tenants(PARTITION) == []
    odd = [name for name in (f'{{"$ne": {n}}}\0é\U0001f600' for n in range(3_000)) if partition_of(name) == PARTITION]
    await shard.insert(job("a", tenant=odd[0]), job("b", tenant=odd[0]), schedule("tick", SAME), bucket(TENANT))
    await shard.insert(job("c", tenant=OTHER), schedule("tock", OTHER))
    assert await shard.store.tenants(PARTITION) == sorted([odd[0], SAME, TENANT])
    assert (await shard.store.versions(odd[:1], None, ())).keys() == {Key("jobs", "a"), Key("jobs", "b")}


@pytest.mark.real
async def test_tenants_are_found_by_jumps_in_the_index(pymongo_client: Client, ready_database: str) -> None:
    """With few tenants of many jobs each, no more of the index is read than there are tenants."""
    database = open_database(pymongo_client, ready_database)
    for collection, field in (("jobs", "tenant"), ("schedules", "job.tenant")):
        pipeline = [{"$match": {field: {"$gt": ""}}}, {"$group": {"_id": f"${field}"}}]
        plan = await database.command(
            {"explain": {"aggregate": collection, "pipeline": pipeline, "cursor": {}}, "verbosity": "queryPlanner"}
        )
        assert "DISTINCT_SCAN" in str(plan)


# Versions


async def test_all_documents_have_versions_verdicts_and_buckets_too(shard: Shard) -> None:
    await shard.insert(*ALL, job("theirs", tenant=OTHER), schedule("tock", OTHER), verdict("tock", NOW))
    found = await shard.store.versions([TENANT], None, ())
    assert found == {
        Key("jobs", "a"): Version(NOW, 3, 0, 0, True),
        Key("jobs", "over"): Version(NOW, 3, 0, 0, False),
        Key("schedules", "tick"): Version(NOW, 2, NOW, 0, True),
        Key("verdicts", f"tick:{NOW:013d}"): Version(0, 0, 0, NOW, False),
        Key("buckets", TENANT): Version(0, 0, NOW, 0, False),
    }
    assert await shard.store.versions_of([*found, Key("jobs", "gone")]) == found
    live = await shard.store.versions([TENANT], None, (), live_only=True)
    assert live.keys() == {Key("jobs", "a"), Key("schedules", "tick")}


@pytest.mark.parametrize(("earlier", "later"), [
    (job("a"), job("a", rev=4)),
    (job("a", rev=9), job("a", rev=1, submitted_at_ms=NOW + 1)),
    (schedule("s"), schedule("s", rev=3, cursor_ms=1)),
    (schedule("s"), schedule("s", cursor_ms=NOW + 1)),
    (schedule("s", rev=9), schedule("s", rev=1, created_at_ms=NOW + 1)),
    (bucket(), bucket(at_ms=NOW + 1)),
])  # fmt: skip
async def test_put_replaces_earlier_versions_only(shard: Shard, earlier: Any, later: Any) -> None:
    key = earlier[0]
    await shard.insert(earlier)
    for mark in (7, 0):
        await shard.store.put(HOLD, dict([later]), mark=mark)
        for put in (earlier, later):
            await shard.store.put(HOLD, dict([put]), mark=mark)
            assert without_mark(await shard.find(key)) == later[1]


@pytest.mark.parametrize(("before", "after"), [
    (job("a", idempotency_key="k"), job("a")),
    (job("a", unique_key="k"), job("a")),
    (schedule("s", failures=1), schedule("s")),
    (verdict("s", NOW, last_ms=NOW + 9), verdict("s", NOW)),
])  # fmt: skip
async def test_what_changes_without_a_revision_makes_another_version(shard: Shard, before: Any, after: Any) -> None:
    key = before[0]
    await shard.insert(before)
    seen = (await shard.store.versions_of([key]))[key]
    assert not await shard.store.put(HOLD, dict([after]), mark=7)
    now = (await shard.store.versions_of([key]))[key]
    assert not now.is_same(seen)
    assert not now.is_after(seen)
    await shard.store.put(HOLD, dict([before]), mark=0)
    assert without_mark(await shard.find(key)) == after[1]


# Writes


@pytest.mark.parametrize("stored", [
    Hold(HOLD.key, HOLD.rev + 1, is_held=True, is_silent=True),
    Hold(HOLD.key, HOLD.rev, is_held=False),
    Hold(HOLD.key, HOLD.rev - 1, is_held=True, is_silent=True),
    Hold(partition_key(PARTITION ^ 1), HOLD.rev, is_held=True, is_silent=True),
])  # fmt: skip
async def test_nothing_is_put_or_taken_under_another_hold(shard: Shard, stored: Hold) -> None:
    await shard.insert(job("a"))
    versions = await shard.store.versions([TENANT], None, ())
    with pytest.raises(StoreUnavailable):
        await shard.store.put(stored, dict([job("b")]), mark=7)
    with pytest.raises(StoreUnavailable):
        await shard.store.take(stored, versions)
    assert (await shard.store.versions([TENANT], None, ())) == versions


async def test_only_what_still_has_its_version_is_taken(shard: Shard) -> None:
    await shard.insert(*ALL, job("b"))
    versions = await shard.store.versions([TENANT], None, ())
    changed = dict([job("a", rev=4), job("b", unique_key="k"), job("c")])
    await shard.store.put(HOLD, changed, mark=7)
    assert await shard.store.take(HOLD, versions | {Key("jobs", "gone"): Version(1, 1, 1, 1, True)}) == 4
    assert (await shard.store.versions([TENANT], None, ())).keys() == changed.keys()


@pytest.mark.parametrize("name", ["idempotency_key", "unique_key"])
async def test_a_late_job_whose_key_another_one_has_arrives_cancelled(shard: Shard, name: str) -> None:
    keyed: dict[str, Any] = {name: "k"}
    first, second, third = job("first", **keyed), job("second", **keyed), job("third")
    await shard.insert(first)
    assert not await shard.store.put(HOLD, dict([second, third]), mark=0)
    assert await shard.find(first[0]) == first[1]
    assert await shard.find(third[0]) == third[1]
    stored = await shard.find(second[0]) or {}
    assert (stored["state"], stored["error"], stored["rev"]) == ("cancelled", "another job has its key", 4)
    assert name not in stored
    assert isinstance(stored["expire_at"], datetime)


async def test_a_copy_whose_key_another_job_has_is_left_out(shard: Shard) -> None:
    first, second, third = job("first", unique_key="k"), job("second", unique_key="k"), job("third")
    await shard.insert(first)
    assert await shard.store.put(HOLD, dict([second, third]), mark=7) == {second[0]}
    assert await shard.find(second[0]) is None
    assert await shard.find(third[0]) is not None


@pytest.mark.real
async def test_documents_are_read_until_the_memory_for_them_is_full(pymongo_shard: Shard) -> None:
    await pymongo_shard.insert(*(job(f"j{n}", payload="x" * 7_000_000) for n in range(3)))
    keys = [Key("jobs", f"j{n}") for n in range(3)]
    assert len(await pymongo_shard.store.read(keys)) == 2
