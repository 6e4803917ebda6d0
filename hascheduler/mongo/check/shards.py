"""Reads what tells where things are in a deployment of several shards: the routing, tenants of jobs, schedules, names.

Each scan looks at its own shard; that of the home looks at the reserved names too, and in all shards for their
schedules and jobs. Of the jobs only the tenants are read, by jumps in the index that lists them by tenant: the cost of
a look grows with the number of tenants, not of jobs.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from collections.abc import Collection as SomeOf
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any

from pymongo import ASCENDING

from hascheduler.check.documents import unreadable
from hascheduler.check.finding import Finding
from hascheduler.check.jobs import CheckContext
from hascheduler.check.shards import (
    CheckedShard,
    NamedSchedule,
    check_name,
    check_place_of_job,
    check_place_of_schedule,
    check_routing,
    is_kept_for_long,
    unused_name,
)
from hascheduler.errors import InvalidInput
from hascheduler.model.collection import Collection
from hascheduler.model.documents.routing import ROUTING_ID
from hascheduler.model.routing import slot_of
from hascheduler.model.values.fields import NAME_CHARACTERS_MAX
from hascheduler.mongo.check.pace import BATCH_LIMIT_S, ScanPace
from hascheduler.mongo.connection import Database
from hascheduler.mongo.faults import faults
from hascheduler.mongo.routing import MongoRoutingStore
from hascheduler.ports.invariant_scan import ScanBounds
from hascheduler.ports.sharding import UNUSED_FOR_MS, ReservedName, decode_reserved_name

_BY_TENANT = [("tenant", ASCENDING), ("submitted_at_ms", ASCENDING), ("_id", ASCENDING)]
_SCHEDULE_FIELDS = ["job.tenant", "created_at_ms"]
_NAME_FIELDS = ["tenant", "use", "at_ms"]


@dataclass
class ScanTurn:
    """After which text the next bounded scan continues; "": from the beginning."""

    after: str = ""


@dataclass
class ShardTurns:
    tenants: ScanTurn = field(default_factory=ScanTurn)
    schedules: ScanTurn = field(default_factory=ScanTurn)
    names: ScanTurn = field(default_factory=ScanTurn)


class ShardScan:
    """Owner of what the routing says of ``shard``, once it was read. ``databases``: by shard, the home's first."""

    def __init__(
        self, databases: Mapping[str, Database], shard: str, context: CheckContext, bounds: ScanBounds, pace: ScanPace
    ) -> None:
        self._shards = tuple(databases)
        self._shard = shard
        self._databases = tuple(databases.values())
        self._home = self._databases[0]
        self._database = databases[shard]
        self._now = context.now
        self._kept_ms = UNUSED_FOR_MS + context.config.motion_ms
        self._bounds = bounds
        self._pace = pace
        self._here: CheckedShard | None = None

    async def all(self, turns: ShardTurns) -> AsyncIterator[Finding]:
        async for finding in self._read_routing():
            yield finding
        if self._here is None:
            return
        async for finding in self._jobs(self._here, turns.tenants):
            yield finding
        async for finding in self._schedules(self._here, None, turns.schedules):
            yield finding
        if self._is_home:
            async for finding in self._names(None, turns.names):
                yield finding

    async def again(self, jobs: SomeOf[str], schedules: SomeOf[str], names: SomeOf[str]) -> AsyncIterator[Finding]:
        """The same reads for those jobs, schedules and names alone."""
        async for finding in self._read_routing():
            yield finding
        if self._here is None:
            return
        async for documents in self._by_id(self._database, Collection.JOBS, ["tenant"], jobs, ScanTurn()):
            for document in documents:
                for finding in check_place_of_job(document["_id"], document["tenant"], self._here):
                    yield finding
        async for finding in self._schedules(self._here, schedules, ScanTurn()):
            yield finding
        async for finding in self._names(names, ScanTurn()):
            yield finding

    async def moving(self) -> frozenset[int]:
        """The slots of which something may be in another shard still, or already."""
        with suppress(InvalidInput):
            routing = await MongoRoutingStore(self._home).get()
            if routing is not None:
                return frozenset({*routing.moving, *routing.leaving})
        return frozenset()

    @property
    def _is_home(self) -> bool:
        return self._shard == self._shards[0]

    async def _read_routing(self) -> AsyncIterator[Finding]:
        """What is wrong with it the scan of the home says, and no other."""
        found: list[Finding] = []
        try:
            routing = await MongoRoutingStore(self._home).get()
        except InvalidInput as error:
            found.append(unreadable(Collection.ROUTING, ROUTING_ID, error))
        else:
            found += check_routing(routing, self._shards)
            if routing is not None and not found:
                self._here = CheckedShard(routing, self._shards.index(self._shard), self._database.name)
        for finding in found if self._is_home else []:
            yield finding

    async def _jobs(self, here: CheckedShard, turn: ScanTurn) -> AsyncIterator[Finding]:
        async for tenant in self._tenants(turn):
            if here.shard_of(tenant) == here.name:
                continue
            found = self._database[Collection.JOBS.value].find({"tenant": tenant}, ["tenant"]).sort(_BY_TENANT)
            if self._bounds.placed_max is not None:
                found = found.limit(self._bounds.placed_max)
            async with aclosing(self._pace.batches("misplaced jobs", found)) as batches:
                async for documents in batches:
                    for document in documents:
                        for finding in check_place_of_job(document["_id"], tenant, here):
                            yield finding

    async def _tenants(self, turn: ScanTurn) -> AsyncIterator[str]:
        """Those that have jobs here: after each batch of jobs it goes on with the next tenant."""
        jobs = self._database[Collection.JOBS.value]
        left = self._bounds.tenants_max
        while left is None or left > 0:
            found = jobs.find({"tenant": {"$gt": turn.after}}, ["tenant"]).sort(_BY_TENANT).limit(self._bounds.batch)
            read: list[dict[str, Any]] = []
            async with aclosing(self._pace.batches("tenants of jobs", found)) as batches:
                async for documents in batches:
                    read += documents
            # A list in the place of a text, written by hand, is found by what it holds.
            tenants = sorted({job["tenant"] for job in read if isinstance(job["tenant"], str)})
            for tenant in tenants:
                yield tenant
            # A text that is none to the driver might come back for ever.
            if len(read) < self._bounds.batch or not tenants or tenants[-1] <= turn.after:
                turn.after = ""
                return
            turn.after = tenants[-1]
            left = None if left is None else left - len(tenants)

    async def _schedules(self, here: CheckedShard, only: SomeOf[str] | None, turn: ScanTurn) -> AsyncIterator[Finding]:
        async for documents in self._by_id(self._database, Collection.SCHEDULES, _SCHEDULE_FIELDS, only, turn):
            schedules = [schedule for schedule in map(_named_schedule, documents) if schedule is not None]
            reserved = await self._reserved([schedule.name for schedule in schedules])
            for schedule in schedules:
                found = list(check_place_of_schedule(schedule, here))
                by = reserved.get(schedule.name)
                if not found and not isinstance(by, Finding):
                    found += check_name(schedule, None if by is None else by.tenant)
                for finding in found:
                    yield finding

    async def _reserved(self, names: Sequence[str]) -> Mapping[str, ReservedName | Finding]:
        with faults("read reserved names", BATCH_LIMIT_S):
            found = self._home[Collection.NAMES.value].find({"_id": {"$in": names}}, _NAME_FIELDS)
            documents = await found.to_list(None)
        return {document["_id"]: _reserved_name(document) for document in documents}

    async def _names(self, only: SomeOf[str] | None, turn: ScanTurn) -> AsyncIterator[Finding]:
        async for documents in self._by_id(self._home, Collection.NAMES, _NAME_FIELDS, only, turn):
            old: list[ReservedName] = []
            for reserved in map(_reserved_name, documents):
                if isinstance(reserved, Finding):
                    yield reserved
                elif self._moves(reserved.tenant):
                    continue  # its schedule may be on its way
                elif is_kept_for_long(reserved.at_ms, self._now, self._kept_ms):
                    old.append(reserved)
            there = await self._schedules_by_names([reserved.name for reserved in old])
            for reserved in old:
                if reserved.name in there:
                    continue
                await self._pace.pause()
                if not await self._has_jobs(reserved.name):
                    yield unused_name(reserved.name, reserved.tenant, reserved.use, reserved.at_ms)

    def _moves(self, tenant: str) -> bool:
        return self._here is not None and not self._here.routing.is_at_rest(slot_of(tenant))

    async def _schedules_by_names(self, names: Sequence[str]) -> set[str]:
        """Those of ``names`` of which some shard has the schedule."""
        left = set(names)
        for database in self._databases:
            if left:
                with faults("look for schedules of reserved names", BATCH_LIMIT_S):
                    found = database[Collection.SCHEDULES.value].find({"_id": {"$in": sorted(left)}}, {"_id": True})
                    left -= {document["_id"] for document in await found.to_list(None)}
        return set(names) - left

    async def _has_jobs(self, schedule: str) -> bool:
        """Whether some shard has a job of a schedule of that name: then the name is not free."""
        for database in self._databases:
            with faults("look for jobs of a reserved name"):
                if await database[Collection.JOBS.value].find_one({"schedule": schedule}, {"_id": True}) is not None:
                    return True
        return False

    async def _by_id(
        self, database: Database, collection: Collection, fields: list[str], only: SomeOf[str] | None, turn: ScanTurn
    ) -> AsyncIterator[list[dict[str, Any]]]:
        """Batches of the documents with the ids in ``only``; or of all, of which it is this ``turn``."""
        which: Mapping[str, Any] = {"$gt": turn.after} if only is None else {"$in": sorted(only)}
        limit = self._bounds.placed_max if only is None else None
        found = database[collection.value].find({"_id": which}, fields).sort("_id", ASCENDING)
        if limit is not None:
            found = found.limit(limit)
        count = 0
        async with aclosing(self._pace.batches(f"{collection} by shard", found)) as batches:
            async for documents in batches:
                yield documents
                count += len(documents)
                turn.after = documents[-1]["_id"]
        if limit is None or count < limit:
            turn.after = ""


def _named_schedule(document: Mapping[str, Any]) -> NamedSchedule | None:
    """None where it can't be read, which `hascheduler.check.documents` says."""
    name, job = document["_id"], document.get("job")
    tenant = job.get("tenant") if isinstance(job, Mapping) else None
    if not isinstance(tenant, str) or not tenant or len(name) > NAME_CHARACTERS_MAX:
        return None
    return NamedSchedule(name, tenant, document.get("created_at_ms"))


def _reserved_name(document: Mapping[str, Any]) -> ReservedName | Finding:
    try:
        return decode_reserved_name(document)
    except InvalidInput as error:
        return unreadable(Collection.NAMES, document["_id"], error)
