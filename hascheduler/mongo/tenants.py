"""The documents of the tenants of one partition: compared, copied into this database, and deleted from it.

Each batch is one transaction that also writes the hold that it requires. So a writer that slept while another hold was
put is refused, and so is one of two writers at the same time.
"""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from collections.abc import Collection as SomeOf
from contextlib import asynccontextmanager
from typing import Any

from bson.raw_bson import RawBSONDocument
from pymongo import InsertOne, ReplaceOne
from pymongo.errors import BulkWriteError

from hascheduler.errors import StoreUnavailable
from hascheduler.model.collection import Collection
from hascheduler.model.job import LIVE
from hascheduler.model.partition import Hold, partition_of
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import Verdict
from hascheduler.mongo.connection import Database, awaited, transaction
from hascheduler.mongo.faults import DUPLICATE_KEY, faults, local_faults
from hascheduler.ports.tenants import KEYS, VERSION_FIELDS, Key, Version, marked, version_of, without_keys

_LIMIT_S = 10.0
"""The limit for each slice of a cursor and for each batch."""
_SLICE = 5_000
_IDS_AT_ONCE = 2_000
_NAMES_AT_ONCE = 100
_READ_BYTES_MAX = 16_000_000
_LIVE = sorted(state.value for state in LIVE)
_VERDICTS = sorted(verdict.value for verdict in Verdict)
_TENANT_OF = {"jobs": "tenant", "schedules": "job.tenant"}
"""The field that names a document's tenant; a bucket's is its id, and a verdict's is its schedule's."""


class MongoTenantStore:
    """Everything that belongs to the tenants of one partition in one database.

    `put` and `take` raise `StoreUnavailable` if another hold than theirs is stored.
    """

    def __init__(self, database: Database, job_retention_ms: int) -> None:
        self._database = database
        self._job_retention_ms = job_retention_ms
        self._holds = database[Collection.HOLDS.value]
        self._as_stored: Any = database.codec_options.with_options(document_class=RawBSONDocument)

    async def tenants(self, partition: int) -> Sequence[str]:
        """Return the tenants of that partition that have a job, a schedule or a bucket here."""
        found: set[str] = set()
        for collection in (*_TENANT_OF, "buckets"):
            found |= {each async for each in self._tenants_in(collection) if partition_of(each) == partition}
        return sorted(found)

    async def live(self, partitions: SomeOf[int]) -> SomeOf[int]:
        """Return the given partitions that have a live job or a schedule here."""
        found: set[int] = set()
        for collection, field in _TENANT_OF.items():
            is_live = {"state": {"$in": _LIVE}} if collection == "jobs" else {}
            async for tenant in self._tenants_in(collection):
                if (partition := partition_of(tenant)) in partitions and partition not in found:
                    with faults("find live documents"):
                        one = await self._database[collection].find_one({field: tenant, **is_live}, ["_id"])
                    found |= set() if one is None else {partition}
        return found

    async def versions(
        self, tenants: Sequence[str], since: WallMs | None, known: SomeOf[Key], *, live_only: bool = False
    ) -> dict[Key, Version]:
        """Return the versions of all documents of these tenants, and of the verdicts of the schedules that are here.

        With ``since``, only documents that are live, were submitted or decided since, or are ``known``.
        """
        found: dict[Key, Version] = {}
        for names in _batches(tenants, _IDS_AT_ONCE):
            whose = {"$in": names}
            queries: list[tuple[str, Mapping[str, Any]]] = [("schedules", {"job.tenant": whose})]
            if live_only or since is not None:
                queries += [("jobs", {"tenant": whose, "state": {"$in": _LIVE}})]
            if not live_only:
                new = {} if since is None else {"submitted_at_ms": {"$gte": since}}
                queries += [("jobs", {"tenant": whose, **new}), ("buckets", {"_id": whose})]
            found |= await self._all_versions(queries)
        if not live_only:
            found |= await self.verdicts([key.id for key in found if key.collection == "schedules"], since)
        return found | await self.versions_of([key for key in known if key not in found])

    async def versions_of(self, keys: SomeOf[Key]) -> dict[Key, Version]:
        """Return the versions of the documents that exist."""
        batches = [(name, _batches(ids, _IDS_AT_ONCE)) for name, ids in _by_collection(keys).items()]
        return await self._all_versions((name, {"_id": {"$in": some}}) for name, all in batches for some in all)

    async def verdicts(self, schedules: Sequence[str], since: WallMs | None = None) -> dict[Key, Version]:
        """Return the versions of the verdicts of these schedules, which may be elsewhere themselves."""
        if since is not None:  # by the index of recent decisions
            recent = {"verdict": {"$in": _VERDICTS}, "decided_at_ms": {"$gte": since}}
            names = _batches(schedules, _IDS_AT_ONCE)
            return await self._all_versions(("verdicts", {**recent, "schedule": {"$in": some}}) for some in names)
        ranges = [{"_id": {"$gte": f"{name}:", "$lt": f"{name};"}, "schedule": name} for name in schedules]
        return await self._all_versions(("verdicts", {"$or": some}) for some in _batches(ranges, _NAMES_AT_ONCE))

    async def read(self, keys: Sequence[Key]) -> Mapping[Key, Mapping[str, Any]]:
        """Return the stored documents, as many as may be kept in memory."""
        found: dict[Key, Mapping[str, Any]] = {}
        room = _READ_BYTES_MAX
        for collection, ids in _by_collection(keys).items():
            documents = self._database[collection].with_options(codec_options=self._as_stored)
            with faults("read documents", _LIMIT_S):
                async for each in documents.find({"_id": {"$in": ids}}):
                    room -= len(each.raw)
                    if found and room < 0:
                        return found
                    found[Key(collection, each["_id"])] = each
        return found

    async def put(self, hold: Hold, documents: Mapping[Key, Mapping[str, Any]], *, mark: int) -> SomeOf[Key]:
        """Insert the documents, marked as copies by ``mark``, or replace those that are not newer.

        Return the jobs that were left out because another job has their key. With ``mark`` 0 the documents came late:
        they only replace earlier versions, and a job whose key another job has arrives cancelled, without its key.
        """
        left = {key: marked(document, mark) for key, document in documents.items()}
        refused: set[Key] = set()
        while left:
            try:
                with faults("copy documents", _LIMIT_S):
                    await self._put(hold, left, late=not mark)
                break
            except _KeyTaken as error:
                [key] = error.args
                job = left.pop(key)
                if not mark and any(job.get(name) for name in KEYS):
                    left[key] = without_keys(job, self._job_retention_ms)
                else:
                    refused.add(key)
        return refused

    async def take(self, hold: Hold, versions: Mapping[Key, Version]) -> int:
        """Delete the documents that still have these versions, and return how many."""
        taken = 0
        with faults("delete documents", _LIMIT_S):
            async with self._under(hold) as session:
                for collection, ids in _by_collection(versions).items():
                    there = await self._versions(collection, {"_id": {"$in": ids}}, session)
                    same = [key.id for key, version in there.items() if version == versions[key]]
                    answer = await self._database[collection].delete_many({"_id": {"$in": same}}, session=session)
                    taken += answer.deleted_count
        return taken

    async def _put(self, hold: Hold, documents: Mapping[Key, Mapping[str, Any]], *, late: bool) -> None:
        async with self._under(hold) as session:
            for collection, ids in _by_collection(documents).items():
                there = await self._versions(collection, {"_id": {"$in": ids}}, session)
                replaced: list[Any] = []
                inserted: list[Any] = []
                for id in ids:
                    document, stored = dict(documents[Key(collection, id)]), there.get(Key(collection, id))
                    version = version_of(collection, document)
                    if stored is None:
                        inserted.append(InsertOne(document))
                    elif version.is_after(stored) or not (late or stored.is_after(version)):
                        replaced.append(ReplaceOne({"_id": id}, document))
                if replaced or inserted:  # in this order: a replaced job may give up the key of another one
                    try:
                        await self._database[collection].bulk_write([*replaced, *inserted], session=session)
                    except BulkWriteError as error:
                        raise _taken_key(collection, error) from error

    @asynccontextmanager
    async def _under(self, hold: Hold) -> AsyncIterator[Any]:
        """Begin a transaction that is committed at the end; raise `StoreUnavailable` if another hold is stored."""
        async with transaction(self._database) as session:
            which = {"_id": hold.key, "rev": hold.rev, "held": hold.is_held}
            demanded = await self._holds.update_one(which, {"$inc": {"demanded": 1}}, session=session)
            if not demanded.matched_count:
                raise StoreUnavailable(f"the hold on {hold.key} has changed")
            yield session
            await session.commit_transaction()

    async def _tenants_in(self, collection: str) -> AsyncIterator[str]:
        """Yield each tenant once. The server skips from one to the next in the index, and the answer has any length."""
        field = _TENANT_OF.get(collection, "_id")
        each_once: list[dict[str, Any]] = [{"$match": {field: {"$gt": ""}}}, {"$group": {"_id": f"${field}"}}]
        with faults("find the tenants", _LIMIT_S):
            cursor = await awaited(self._database[collection].aggregate(each_once, batchSize=_SLICE))
        while True:
            async with local_faults("find the tenants", _LIMIT_S):
                some = await cursor.to_list(_SLICE)
            if not some:
                return
            for each in some:
                yield each["_id"]

    async def _all_versions(self, queries: Iterable[tuple[str, Mapping[str, Any]]]) -> dict[Key, Version]:
        found: dict[Key, Version] = {}
        for collection, which in queries:
            found |= await self._versions(collection, which)
        return found

    async def _versions(self, collection: str, which: Mapping[str, Any], session: Any = None) -> dict[Key, Version]:
        found: dict[Key, Version] = {}
        fields = VERSION_FIELDS[collection]
        cursor = self._database[collection].find(which, fields, batch_size=_SLICE, session=session)
        while True:
            async with local_faults("compare documents", _LIMIT_S):
                some = await cursor.to_list(_SLICE)
            found |= {Key(collection, each["_id"]): version_of(collection, each) for each in some}
            if len(some) < _SLICE:
                return found


class _KeyTaken(Exception):
    """Another job has the key of the job by this `Key`."""


def _taken_key(collection: str, error: BulkWriteError) -> Exception:
    failed = error.details["writeErrors"][0]
    if failed["code"] != DUPLICATE_KEY or "_id" in failed.get("keyPattern", ("_id",)):
        return error
    return _KeyTaken(Key(collection, failed["op"].get("u", failed["op"])["_id"]))


def _by_collection(keys: Iterable[Key]) -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key in keys:
        found.setdefault(key.collection, []).append(key.id)
    return found


def _batches(all: Sequence[Any], size: int) -> Iterable[list[Any]]:
    return (list(all[at : at + size]) for at in range(0, len(all), size))
