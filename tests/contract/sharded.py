"""The backend of a deployment of three shards: the composites of `hascheduler.sharding` over three other backends.

Beside them stands what a test needs of the shards themselves: definitions that are in each, as their leaders copy them,
claims that are applied where the job or the schedule is, and direct access to whatever shard has a document.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hascheduler.clock import SystemClock
from hascheduler.dispatch.decisions import CountFailures, Decision, Fire, RecordVerdict, Settlement
from hascheduler.model.collection import Collection
from hascheduler.model.definition import Definition
from hascheduler.model.routing import Routing
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import ResourceStore, StoredDocument
from hascheduler.sharding.buckets import ShardedBucketStore
from hascheduler.sharding.failovers import ShardedFailoverStore
from hascheduler.sharding.jobs import ShardedJobStore
from hascheduler.sharding.matches import ShardedMatchStore
from hascheduler.sharding.places import ShardPlaces
from hascheduler.sharding.schedules import ShardedScheduleStore
from hascheduler.sharding.verdicts import ShardedVerdictStore
from hascheduler.sharding.work import ShardedWorkStore
from tests.contract.backends import Backend, Behind

SHARDS = ("default", "0001", "0002")
"""``tenant`` and ``beta`` are of the last, ``acme`` of the first."""


def sharded_backend(shards: Sequence[Backend]) -> Backend:
    home = shards[0]
    places = ShardPlaces(Routing.even(SHARDS), home.names)
    behind = _BehindShards(shards, places)
    return replace(
        home,
        jobs=ShardedJobStore(places, [shard.jobs for shard in shards]),
        schedules=ShardedScheduleStore(places, home.names, [shard.schedules for shard in shards], SystemClock()),
        verdicts=ShardedVerdictStore(places, [shard.verdicts for shard in shards]),
        matches=ShardedMatchStore(places, [shard.matches for shard in shards]),
        work=ShardedWorkStore(places, [shard.work for shard in shards]),
        buckets=ShardedBucketStore(places, [shard.buckets for shard in shards]),
        failovers=ShardedFailoverStore(places, [shard.failovers for shard in shards]),
        definitions=_InEachShard([shard.definitions for shard in shards]),
        claims=_ClaimsOfShards(shards, behind),
        behind=behind,
    )


class _InEachShard:
    """`ResourceStore` of definitions."""

    def __init__(self, stores: Sequence[ResourceStore[Definition]]) -> None:
        self._home, *self._others = stores

    async def create(self, noun: Definition) -> StoredDocument | None:
        for store in self._others:
            await store.create(noun)
        return await self._home.create(noun)

    async def put(self, noun: Definition) -> tuple[StoredDocument, bool]:
        for store in self._others:
            await store.put(noun)
        return await self._home.put(noun)

    async def replace(self, noun: Definition, rev: int) -> StoredDocument | None:
        for store in self._others:
            await store.replace(noun, rev)
        return await self._home.replace(noun, rev)

    async def get(self, name: str) -> StoredDocument | None:
        return await self._home.get(name)

    async def list(self, after: str | None, limit: int) -> Sequence[StoredDocument]:
        return await self._home.list(after, limit)

    async def delete(self, name: str, rev: int | None = None) -> bool:
        for store in self._others:
            await store.delete(name, rev)
        return await self._home.delete(name, rev)


class _BehindShards:
    """`Behind`, in whatever shard it is; what is inserted goes where its store would have put it."""

    def __init__(self, shards: Sequence[Backend], places: ShardPlaces) -> None:
        self._shards: Sequence[Behind] = [shard.behind for shard in shards]
        self._places = places

    async def shard_of(self, collection: Collection, id: object) -> int | None:
        for index, shard in enumerate(self._shards):
            if await shard.find(collection, id) is not None:
                return index
        return None

    async def shard_of_schedule(self, name: object) -> int:
        """Where that is gone, all that it had was of the tenant of these suites."""
        index = await self.shard_of(Collection.SCHEDULES, name)
        return self._places.of_tenant("tenant") if index is None else index

    async def find(self, collection: Collection, id: object) -> Mapping[str, Any] | None:
        index = await self.shard_of(collection, id)
        return None if index is None else await self._shards[index].find(collection, id)

    async def insert(self, collection: Collection, document: Mapping[str, Any]) -> None:
        match collection:
            case Collection.JOBS:
                index = self._places.of_tenant(document["tenant"])
            case Collection.SCHEDULES:
                index = self._places.of_tenant(document["job"]["tenant"])
            case Collection.VERDICTS:
                index = await self.shard_of_schedule(document["schedule"])
            case Collection.BUCKETS:
                index = self._places.of_tenant(document["_id"])
            case Collection.DEFINITIONS:
                for shard in self._shards:
                    await shard.insert(collection, document)
                return
            case _:
                index = 0
        await self._shards[index].insert(collection, document)

    async def delete(self, collection: Collection, id: object) -> None:
        for shard in self._shards:
            await shard.delete(collection, id)

    async def drop(self, collection: Collection) -> None:
        for shard in self._shards:
            await shard.drop(collection)

    async def outdated(self, token: Any) -> Any:
        raise NotImplementedError  # a stream is of one shard


class _ClaimsOfShards:
    """`ClaimStore`: each decision in the shard whose leader would have made it."""

    def __init__(self, shards: Sequence[Backend], behind: _BehindShards) -> None:
        self._shards = shards
        self._behind = behind

    async def apply(self, decisions: Sequence[Decision], at_ms: WallMs, *, majority: bool) -> list[Settlement]:
        by_shard: dict[int, list[int]] = {}
        for place, decision in enumerate(decisions):
            by_shard.setdefault(await self._shard_of(decision), []).append(place)
        settled: dict[int, Settlement] = {}
        for index, places in by_shard.items():
            some = [decisions[place] for place in places]
            answers = await self._shards[index].claims.apply(some, at_ms, majority=majority)
            settled |= dict(zip(places, answers, strict=True))
        return [settled[place] for place in range(len(decisions))]

    async def _shard_of(self, decision: Decision) -> int:
        if isinstance(decision, Fire | RecordVerdict | CountFailures):
            return await self._behind.shard_of_schedule(decision.schedule)
        return await self._behind.shard_of(Collection.JOBS, decision.job_id) or 0
