"""The documents of tenants, in memory."""

from collections.abc import Collection as SomeOf
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hascheduler.errors import StoreUnavailable
from hascheduler.model.collection import Collection
from hascheduler.model.job import LIVE
from hascheduler.model.partition import Hold, partition_of
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import StoredDocument
from hascheduler.ports.tenants import KEYS, Key, Version, marked, version_of, without_keys
from hascheduler.testing.memory.database import MemoryDatabase, RetainingStore


class MemoryTenantStore(RetainingStore):
    """A `hascheduler.mongo.tenants.MongoTenantStore` in memory."""

    async def tenants(self, partition: int) -> Sequence[str]:
        async with self._connection.exchange("tenants.tenants") as database:
            found = {_tenant_of(key, each) for key, each in _documents(database) if key.collection != "verdicts"}
            return sorted(each for each in found if partition_of(each) == partition)

    async def live(self, partitions: SomeOf[int]) -> SomeOf[int]:
        async with self._connection.exchange("tenants.live") as database:
            found = {
                partition_of(_tenant_of(key, each))
                for key, each in _documents(database)
                if version_of(key.collection, each).is_live
            }
            return found & {*partitions}

    async def versions(
        self, tenants: Sequence[str], since: WallMs | None, known: SomeOf[Key], *, live_only: bool = False
    ) -> dict[Key, Version]:
        async with self._connection.exchange("tenants.versions") as database:
            names = {
                each["_id"] for each in database.documents(Collection.SCHEDULES) if each["job"]["tenant"] in tenants
            }

            def is_asked(key: Key, document: StoredDocument) -> bool:
                is_theirs = (
                    document["schedule"] in names
                    if key.collection == "verdicts"
                    else _tenant_of(key, document) in tenants
                )
                is_live = key.collection == "schedules" or document.get("state") in LIVE
                at_ms = document.get("submitted_at_ms", document.get("decided_at_ms"))
                is_new = since is None or at_ms is None or at_ms >= since
                return key in known or (is_theirs and (is_live or (is_new and not live_only)))

            return {key: version_of(key.collection, each) for key, each in _documents(database) if is_asked(key, each)}

    async def versions_of(self, keys: SomeOf[Key]) -> dict[Key, Version]:
        async with self._connection.exchange("tenants.versions_of") as database:
            return _versions(database, keys)

    async def verdicts(self, schedules: Sequence[str]) -> dict[Key, Version]:
        async with self._connection.exchange("tenants.verdicts") as database:
            found = [each for each in database.documents(Collection.VERDICTS) if each["schedule"] in schedules]
            return {Key("verdicts", each["_id"]): version_of("verdicts", each) for each in found}

    async def read(self, keys: Sequence[Key]) -> Mapping[Key, Mapping[str, Any]]:
        async with self._connection.exchange("tenants.read") as database:
            found = {key: database.find(Collection(key.collection), key.id) for key in keys}
            return {key: document for key, document in found.items() if document is not None}

    async def put(self, hold: Hold, documents: Mapping[Key, Mapping[str, Any]], *, mark: int) -> SomeOf[Key]:
        refused: set[Key] = set()
        async with self._connection.exchange("tenants.put") as database:
            require_hold(database, hold)
            stored = _versions(database, documents)
            for key, document in sorted(documents.items(), key=lambda item: item[0] not in stored):
                before, version = stored.get(key), version_of(key.collection, document)
                if not version.is_after(before) and (not mark or (before is not None and before.is_after(version))):
                    continue
                put = marked(document, mark)
                if key.collection == "jobs" and _is_key_taken(database, put):
                    if mark:
                        refused.add(key)
                        continue
                    put = without_keys(put, self._retention_ms)
                database.replace(Collection(key.collection), put)
        return refused

    async def take(self, hold: Hold, versions: Mapping[Key, Version]) -> int:
        async with self._connection.exchange("tenants.take") as database:
            require_hold(database, hold)
            same = [key for key, version in _versions(database, versions).items() if version == versions[key]]
            return sum(database.delete(Collection(key.collection), key.id) for key in same)


def require_hold(database: MemoryDatabase, hold: Hold) -> None:
    stored = database.find(Collection.HOLDS, hold.key) or {}
    if (stored.get("rev"), stored.get("held")) != (hold.rev, hold.is_held):
        raise StoreUnavailable(f"the hold on {hold.key} has changed")


def _documents(database: MemoryDatabase) -> Iterator[tuple[Key, StoredDocument]]:
    for collection in (Collection.JOBS, Collection.SCHEDULES, Collection.VERDICTS, Collection.BUCKETS):
        for document in database.documents(collection):
            yield Key(collection.value, document["_id"]), document


def _tenant_of(key: Key, document: StoredDocument) -> str:
    match key.collection:
        case "jobs":
            return str(document["tenant"])
        case "schedules":
            return str(document["job"]["tenant"])
        case _:
            return key.id


def _versions(database: MemoryDatabase, keys: SomeOf[Key]) -> dict[Key, Version]:
    found = {key: database.find(Collection(key.collection), key.id) for key in keys}
    return {key: version_of(key.collection, each) for key, each in found.items() if each is not None}


def _is_key_taken(database: MemoryDatabase, job: StoredDocument) -> bool:
    return any(
        job.get(name) and other.get(name) == job[name] and (name == "unique_key" or other["tenant"] == job["tenant"])
        for other in database.documents(Collection.JOBS)
        if other["_id"] != job["_id"]
        for name in KEYS
    )
