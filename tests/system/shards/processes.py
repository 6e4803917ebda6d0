"""Real processes that serve several shards, and what each shard's database says of them."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pymongo.asynchronous.database import AsyncDatabase

from hascheduler.embedded.children import Daemon
from hascheduler.model.partition import shard_database, shard_name
from hascheduler.shards.layout import Layout
from tests.system.processes import Processes, environment_of, eventually

SHARD_COUNT = 4
SHARDS = [shard_name("default", index) for index in range(SHARD_COUNT)]
PLACES = Layout.even(SHARDS)
TENANTS = [next(f"t{n}" for n in range(999) if PLACES.index_of(f"t{n}") == index) for index in range(SHARD_COUNT)]
"""One of each shard."""


def sharded_environment(mongodb_uri: str, amqp_url: str, database: str) -> dict[str, str]:
    """That of `environment_of`; a replica that returns gets its shards back after a second."""
    shards = {"HASCHEDULER_SHARDS": str(SHARD_COUNT), "HASCHEDULER_REBALANCE_AFTER": "1s"}
    return environment_of(mongodb_uri, amqp_url, database) | shards


@dataclass
class ShardedProcesses(Processes):
    @property
    def databases(self) -> list[AsyncDatabase[dict[str, Any]]]:
        """The home's first."""
        return [self.mongo[shard_database(self.database_name, index)] for index in range(SHARD_COUNT)]

    async def stop(self) -> None:
        await self.kill_all()
        for database in self.databases[1:]:
            await self.mongo.drop_database(database.name)
        await super().stop()

    async def leaders(self) -> Mapping[str, Daemon]:
        """The replica that leads each shard, once all shards have one that lives."""

        async def look() -> Mapping[str, Daemon] | None:
            found = {}
            for shard, database in zip(SHARDS, self.databases, strict=True):
                lease = await database.leases.find_one({"_id": shard})
                process = self.replicas.get(lease["holder"].rpartition(".")[0]) if lease else None
                if lease is None or process is None or not process.running:
                    return None
                if await database.journal.find_one({"term": lease["term"], "kind": "term_began"}) is None:
                    return None
                found[shard] = process
            return found

        return await eventually(look, "every shard has a leader")

    async def spread(self) -> Mapping[str, Daemon]:
        """The leaders, once no living replica leads two shards more than another."""

        async def look() -> Mapping[str, Daemon] | None:
            leaders = await self.leaders()
            living = [process for process in self.replicas.values() if process.running]
            led = Counter(process.name for process in leaders.values())
            counts = [led[process.name] for process in living]
            return leaders if max(counts) - min(counts) <= 1 else None

        return await eventually(look, "the leaders are spread")

    async def stored(self, id: str) -> list[int]:
        """The shards that have a job by that id."""
        return [
            index
            for index, database in enumerate(self.databases)
            if await database.jobs.find_one({"_id": id}, {"_id": True}) is not None
        ]

    async def settled(self, limit_s: float = 90) -> None:
        """Until no job of any shard is to be done."""
        await super().settled(limit_s)
        live = {"state": {"$in": ["pending", "dispatched", "running"]}}

        async def none_live() -> bool:
            return not any([await database.jobs.count_documents(live) for database in self.databases])

        await eventually(none_live, "all jobs end")

    async def assert_terms_never_return(self) -> None:
        home = self.database
        for database in self.databases:
            self.database = database
            await super().assert_terms_never_return()
        self.database = home

    async def _is_registered(self, name: str) -> bool:
        return any([await each.processors.find_one({"name": name}) is not None for each in self.databases])
