"""A backend of several shards: the composites over one backend a shard. What leaders write goes where the job is."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hascheduler.clock import SystemClock
from hascheduler.dispatch.decisions import Decision, Settlement
from hascheduler.model.collection import Collection
from hascheduler.model.definition import Definition
from hascheduler.model.job import schedule_of
from hascheduler.model.routing import Routing, shard_name
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import ResourceStore, StoredDocument
from hascheduler.ports.sharding import NameStore
from hascheduler.sharding.failovers import ShardedFailoverStore
from hascheduler.sharding.jobs import ShardedJobStore
from hascheduler.sharding.places import ShardPlaces
from hascheduler.sharding.schedules import ShardedScheduleStore
from hascheduler.sharding.verdicts import ShardedVerdictStore
from hascheduler.sharding.work import ShardedWorkStore
from tests.contract.backends import Backend

SHARD_COUNT = 3


def sharded_backend(shards: Sequence[Backend], names: NameStore) -> Backend:
    """The first one is the home, and has what there is once."""
    home = shards[0]
    routing = Routing.even([shard_name("default", index) for index in range(len(shards))])
    places = ShardPlaces(routing, names)
    behind = _BehindAll(places, shards)
    return replace(
        home,
        claims=_ClaimsOfAll(shards, behind),
        work=ShardedWorkStore(places, [shard.work for shard in shards]),
        definitions=_InEachShard([shard.definitions for shard in shards]),
        schedules=ShardedScheduleStore(
            places, names, [shard.schedules for shard in shards], [shard.jobs for shard in shards], SystemClock()
        ),
        jobs=ShardedJobStore(places, [shard.jobs for shard in shards]),
        verdicts=ShardedVerdictStore(places, [shard.verdicts for shard in shards]),
        failovers=ShardedFailoverStore(places, [shard.failovers for shard in shards]),
        behind=behind,
    )


class _InEachShard:
    """`ResourceStore` of definitions, as the leaders of the shards copy them."""

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


class _BehindAll:
    """A document with a tenant goes to its shard, any other to the home; each is looked for in all."""

    def __init__(self, places: ShardPlaces, shards: Sequence[Backend]) -> None:
        self._places = places
        self._shards = shards

    async def find(self, collection: Collection, id: object) -> Mapping[str, Any] | None:
        index = await self.shard_of(collection, id)
        return None if index is None else await self._shards[index].behind.find(collection, id)

    async def shard_of(self, collection: Collection, id: object) -> int | None:
        for index, shard in enumerate(self._shards):
            if await shard.behind.find(collection, id) is not None:
                return index
        return None

    async def insert(self, collection: Collection, document: Mapping[str, Any]) -> None:
        job = document if collection is Collection.JOBS else document.get("job")
        tenant = job.get("tenant") if isinstance(job, Mapping) else None
        index = self._places.of_tenant(tenant) if isinstance(tenant, str) else 0
        if collection is Collection.VERDICTS:
            index = await self.shard_of(Collection.SCHEDULES, document.get("schedule")) or 0
        await self._shards[index].behind.insert(collection, document)

    async def delete(self, collection: Collection, id: object) -> None:
        for shard in self._shards:
            await shard.behind.delete(collection, id)

    async def drop(self, collection: Collection) -> None:
        for shard in self._shards:
            await shard.behind.drop(collection)

    async def outdated(self, token: Any) -> Any:
        return await self._shards[0].behind.outdated(token)


class _ClaimsOfAll:
    """`hascheduler.ports.ClaimStore` for suites that decide as a leader would: each decision in its job's shard."""

    def __init__(self, shards: Sequence[Backend], behind: _BehindAll) -> None:
        self._shards = shards
        self._behind = behind
        self._shard_of_schedule: dict[str, int] = {}

    async def apply(self, decisions: Sequence[Decision], at_ms: WallMs, *, majority: bool) -> list[Settlement]:
        indexes = [await self._shard_of(decision) for decision in decisions]
        settled: dict[int, Settlement] = {}
        for shard in sorted(set(indexes)):
            own = [number for number, index in enumerate(indexes) if index == shard]
            some = await self._shards[shard].claims.apply([decisions[n] for n in own], at_ms, majority=majority)
            settled.update(zip(own, some, strict=True))
        return [settled[number] for number in range(len(decisions))]

    async def _shard_of(self, decision: Decision) -> int:
        job_id, schedule = getattr(decision, "job_id", None), getattr(decision, "schedule", None)
        if job_id is not None:
            index = await self._behind.shard_of(Collection.JOBS, job_id)
            if index is not None:
                return index
            schedule = schedule or schedule_of(job_id)
        index = await self._behind.shard_of(Collection.SCHEDULES, schedule)
        if index is not None:
            self._shard_of_schedule[schedule or ""] = index
        return self._shard_of_schedule.get(schedule or "", 0)
