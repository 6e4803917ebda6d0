"""The pace of a scan, and the small collections that it reads first, as the others are checked against them."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

from bson.datetime_ms import DatetimeMS
from pymongo import ASCENDING

from hascheduler.check.documents import decode_or_finding, read_schema
from hascheduler.check.finding import Finding, FindingKind, Report, short_id
from hascheduler.check.jobs import CheckContext, RegisteredProcessor
from hascheduler.model.collection import Collection
from hascheduler.model.documents.lean_fields import LEAN_FIELDS
from hascheduler.model.partition import partition_of_key
from hascheduler.mongo.check.indexes import PresentIndexes
from hascheduler.mongo.connection import Database
from hascheduler.mongo.faults import faults, local_faults
from hascheduler.mongo.replicas import REPLICA_KEPT_MS
from hascheduler.mongo.work.store import REGISTRATION_KEPT_MS
from hascheduler.ports.invariant_scan import ScanBounds, ScanProgress

BATCH_LIMIT_S = 30.0


class ScanTimeOver(Exception):  # no error: the next scan reads the rest
    """The time limit of the scan has passed."""


class ScanPace:
    """Owner of the progress of a scan: how many documents of each section it has read."""

    def __init__(self, bounds: ScanBounds, progress: ScanProgress) -> None:
        self._bounds = bounds
        self._progress = progress
        loop = asyncio.get_running_loop()
        self._until_s = None if bounds.limit_s is None else loop.time() + bounds.limit_s
        self.looked_at: Counter[str] = Counter()

    async def pause(self) -> None:
        """Sleep for the pause between batches; raise `ScanTimeOver` after the time limit."""
        await asyncio.sleep(self._bounds.pause_s)
        if self._until_s is not None and asyncio.get_running_loop().time() > self._until_s:
            raise ScanTimeOver

    def advanced(self, section: str, count: int) -> None:
        self.looked_at[section] += count
        self._progress(section, self.looked_at[section])

    async def batches(
        self, section: str, cursor: Any, size: int | None = None
    ) -> AsyncGenerator[list[dict[str, Any]], None]:
        """Yield the documents of ``cursor`` in batches, with a pause after each."""
        size = size or self._bounds.batch
        cursor = cursor.batch_size(size)
        try:
            while True:
                async with local_faults(f"read {section}", BATCH_LIMIT_S):
                    documents = await cursor.to_list(size)
                if not documents:
                    return
                self.advanced(section, len(documents))
                yield documents
                await self.pause()
        finally:
            await cursor.close()


_SMALL = (
    Collection.META, Collection.LEASES, Collection.PROCESSORS, Collection.REPLICAS, Collection.DEFINITIONS,
    Collection.LANES, Collection.CALENDARS, Collection.TENANTS, Collection.TOKENS, Collection.PAUSES,
    Collection.HOLDS,
)  # fmt: skip
_LIVE_FOR_MS = 30_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


async def server_now_ms(database: Database) -> int:
    """Return the database's time, with which all instants are compared."""
    with faults("read the server's time"):
        answer = await database.command("hello")
    now_ms = expiry_ms(answer.get("localTime"))
    assert now_ms is not None, "every server reports its time"
    return now_ms


def expiry_ms(value: object) -> int | None:
    """Return a BSON date (`expire_at`) in ms, even beyond Python's years; None for any other value."""
    if isinstance(value, datetime):
        moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value
        return int((moment - _EPOCH).total_seconds() * 1_000)
    return int(value) if isinstance(value, DatetimeMS) else None


async def read_small_collections(database: Database, pace: ScanPace, into: CheckContext, report: Report) -> None:
    """Report unreadable and overdue documents of the small collections; all others go ``into`` the context."""
    for collection in _SMALL:
        fields = [*LEAN_FIELDS[collection], "expire_at"]
        cursor = database[collection.value].find({}, fields).sort("_id", ASCENDING)
        async with aclosing(pace.batches(str(collection), cursor)) as batches:
            async for documents in batches:
                report(_take(collection, document, into) for document in documents)


def _take(collection: Collection, document: Mapping[str, Any], into: CheckContext) -> Finding | None:
    if collection is Collection.META:
        return read_schema(document)
    resource = decode_or_finding(collection, document)
    if isinstance(resource, Finding):
        return resource
    expire_at_ms = expiry_ms(document.get("expire_at"))
    match collection:
        case Collection.PROCESSORS:
            heartbeat_at_ms = None if expire_at_ms is None else expire_at_ms - REGISTRATION_KEPT_MS
            into.processors[resource.id] = RegisteredProcessor(resource, heartbeat_at_ms)
        case Collection.CALENDARS:
            into.calendars[resource.name] = resource
        case Collection.DEFINITIONS:
            into.definitions[resource.name] = resource
        case Collection.REPLICAS if expire_at_ms is not None:
            if into.now - (expire_at_ms - REPLICA_KEPT_MS) <= _LIVE_FOR_MS:
                into.replicas[resource.id] = resource
        case Collection.PAUSES:
            into.pauses[resource.id] = resource
        case Collection.HOLDS if resource.is_held and (partition := partition_of_key(resource.key)) is not None:
            into.held.add(partition)
        case Collection.LEASES:
            into.leases[resource.name] = resource
        case Collection.TENANTS if resource.max_running is not None:
            into.max_running[resource.name] = resource.max_running
        case _:
            pass
    if collection in (Collection.PROCESSORS, Collection.REPLICAS) and expire_at_ms is None:
        return Finding(
            FindingKind.NOT_EXPIRED,
            f"{collection}/{short_id(document['_id'])}",
            "it has no expire_at, so it never expires and does not show if its process is alive",
            f"end that process; if there is none, delete the document: db.{collection}.deleteOne({{_id: …}})",
        )
    return None


async def long_expired(database: Database, indexes: PresentIndexes, now: int, expiry_max_ms: int) -> Sequence[Finding]:
    """Return the oldest document of each collection that expired more than ``expiry_max_ms`` ago and still exists."""
    found = []
    before = datetime.fromtimestamp((now - expiry_max_ms) / 1_000, UTC)
    for collection in Collection:
        if not indexes.has(collection, "expire_at"):
            continue
        with faults(f"find expired {collection}"):
            document = await database[collection.value].find_one(
                {"expire_at": {"$lt": before}}, {"expire_at": True}, sort=[("expire_at", ASCENDING)]
            )
        if document is None:
            continue
        since_ms = expiry_ms(document["expire_at"])
        late = f"{(now - since_ms) // 1_000} s ago" if since_ms is not None else "long ago"
        id = short_id(document["_id"])
        what = f"it expired {late} and still exists; it is the oldest such document"
        hint = (
            "MongoDB deletes expired documents once a minute: check that ttlMonitorEnabled is on, and that the primary"
            " is not overloaded"
        )
        found.append(Finding(FindingKind.NOT_EXPIRED, f"{collection}/{id}", what, hint, since_ms, witness=id))
    return found
