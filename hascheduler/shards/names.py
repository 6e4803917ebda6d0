"""Binds the name of each schedule to a partition, so that no two shards have schedules of one name.

Jobs have the name of their schedule in their ids. So a name is reserved before its schedule is made, and once more
afterwards, and a sweep frees names whose shard has neither the schedule nor a job any more.

::

    create    reserve ─► the shard's own route makes it ─► reserve again      each raises ``use``
    sweep     read ─► check the shard ─► delete what was read                 only what nobody used for a minute

*Of two creates in two partitions at most one succeeds*: the one that does not get the name after its insert deletes
what it made. *No schedule loses its name*: a sweep deletes the version that it read before it checked the shard, so a
create that reserved since keeps its name. A create that stalls for a minute before its insert finds at its second
reservation that the name is another's, or binds it again. A sweep skips a moving partition, and reads the layout before
and after.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from pymongo import ASCENDING
from pymongo.errors import BulkWriteError, DuplicateKeyError

from hascheduler.model.collection import Collection
from hascheduler.model.partition import PARTITION_COUNT, partition_of
from hascheduler.model.values.fields import as_document, is_integer
from hascheduler.model.values.instants import WallMs
from hascheduler.mongo.connection import MAJORITY, Database, awaited
from hascheduler.mongo.faults import DUPLICATE_KEY, faults, local_faults
from hascheduler.shards.layout import Layout
from hascheduler.shards.repeating import repeat

_UNUSED_FOR_MS = 60_000
_AT_ONCE = 1_000
_SWEEP_EVERY_S = 5.0
TENANTS_OF_SCHEDULES: Sequence[Mapping[str, Any]] = [
    {"$match": {"schedule": {"$gt": ""}}},
    {"$sort": {"schedule": ASCENDING, "submitted_at_ms": ASCENDING, "_id": ASCENDING}},
    {"$group": {"_id": "$schedule", "tenant": {"$first": "$tenant"}}},
]
"""In the order of an index: the server jumps from one schedule to the next."""


ReadLayout = Callable[[], Awaitable[Layout | None]]


class Names:
    """The names in the home; owner of how far the present sweep is. Every write is acknowledged by a majority."""

    def __init__(self, home: Database, now: Callable[[], WallMs]) -> None:
        self._names = home[Collection.NAMES.value].with_options(write_concern=MAJORITY)
        self._now = now
        self._swept = ""

    async def partition_of(self, name: str) -> int | None:
        """Return the partition that the name is bound to; None if it is free."""
        with faults("read a reserved name"):
            found = await self._names.find_one({"_id": name})
        return None if found is None else bound_partition(found)

    async def reserve(self, name: str, partition: int) -> bool:
        """Bind the name to that partition, or confirm it; return False if it is bound to another one."""
        with faults("reserve a name"):
            for _ in range(2):  # the first try may race with an insert of the same name
                with suppress(DuplicateKeyError):
                    used = {"$inc": {"use": 1}, "$set": {"at_ms": self._now()}}
                    await self._names.update_one({"_id": name, "partition": partition}, used, upsert=True)
                    return True
        return False

    async def reserve_all(self, shard: Database) -> None:
        """Reserve the names of all schedules of a deployment's only shard, and names that only jobs still have."""
        schedules = shard[Collection.SCHEDULES.value].find({}, ["job.tenant"])
        async for batch in slices(schedules, "read the names of schedules"):
            await self._insert((each["_id"], (as_document(each.get("job")) or {}).get("tenant")) for each in batch)
        with faults("read the schedules of jobs"):
            jobs = await awaited(shard[Collection.JOBS.value].aggregate(TENANTS_OF_SCHEDULES))
        async for batch in slices(jobs, "read the schedules of jobs"):
            await self._insert((each["_id"], each.get("tenant")) for each in batch)

    async def run(self, leading: Callable[[], bool], layout: ReadLayout, shards: Sequence[Database]) -> None:
        """Sweep while this process leads the home, some of the names at a time."""

        async def sweep() -> None:
            if leading():
                await self.sweep(layout, shards)

        await repeat(sweep, lambda: _SWEEP_EVERY_S, "names_unswept")

    async def sweep(self, read_layout: ReadLayout, shards: Sequence[Database]) -> int:
        """Free the unused ones of the next thousand names; return how many."""
        layout = await read_layout()
        with faults("find unused names"):
            found = self._names.find({"_id": {"$gt": self._swept}}).sort("_id", ASCENDING).limit(_AT_ONCE)
            read = await found.to_list(None)
        self._swept = read[-1]["_id"] if len(read) == _AT_ONCE else ""
        by_shard: dict[int, dict[str, Any]] = {}
        for name in read:
            partition, at_ms = bound_partition(name), name.get("at_ms")
            # Don't wait for a clock that was set back.
            is_old = is_integer(at_ms) and abs(self._now() - at_ms) >= _UNUSED_FOR_MS
            if layout is not None and partition is not None and is_old and layout.is_at_rest(partition):
                by_shard.setdefault(layout.shard_of[partition], {})[name["_id"]] = name.get("use")
        unused = {name: names[name] for at, names in by_shard.items() for name in await _unused(shards[at], names)}
        if not unused or await read_layout() != layout:
            return 0
        with faults("free unused names"):
            freed = [await self._names.delete_one({"_id": name, "use": use}) for name, use in unused.items()]
        return sum(each.deleted_count for each in freed)

    async def _insert(self, tenants: Iterable[tuple[str, Any]]) -> None:
        """Reserve each name for its tenant's partition, unless it is reserved."""
        used = {"use": 1, "at_ms": self._now()}
        reserved = [{"_id": name, "partition": partition_of(of), **used} for name, of in tenants if isinstance(of, str)]
        with faults("reserve the names of schedules"):
            try:
                if reserved:
                    await self._names.insert_many(reserved, ordered=False)
            except BulkWriteError as error:
                if any(each["code"] != DUPLICATE_KEY for each in (error.details or {}).get("writeErrors", [{}])):
                    raise


def bound_partition(stored: Mapping[str, Any]) -> int | None:
    """Return the partition that a stored name is bound to; None if its document was damaged by hand."""
    partition = stored.get("partition")
    return partition if is_integer(partition) and 0 <= partition < PARTITION_COUNT else None


async def _unused(shard: Database, names: Iterable[str]) -> Sequence[str]:
    """Return those names of which the shard has neither the schedule nor a job."""
    with faults("find the schedules of names"):
        found = await shard[Collection.SCHEDULES.value].find({"_id": {"$in": [*names]}}, ["_id"]).to_list(None)
    unused = []
    for name in {*names} - {each["_id"] for each in found}:
        with faults("find jobs of a name"):
            if await shard[Collection.JOBS.value].find_one({"schedule": name}, ["_id"]) is None:
                unused.append(name)
    return unused


async def slices(cursor: Any, doing: str) -> AsyncIterator[list[dict[str, Any]]]:
    """Yield all documents of the cursor, some at a time; each exchange has a time limit of its own."""
    while True:
        async with local_faults(doing):
            documents = await cursor.to_list(_AT_ONCE)
        yield documents
        if len(documents) < _AT_ONCE:
            return
