"""The environment on this machine: processes and a database of its own; processes are killed by signals."""

import asyncio
import os
import shutil
import signal
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from rich.console import RenderableType

from hascheduler.clock import SystemClock
from hascheduler.demo.environment import ClusterSnapshot, CurrentLeader, DemoEnvironment, ProcessStatus
from hascheduler.demo.replica_api import ReplicaApi, open_replica_api
from hascheduler.embedded.children import Child
from hascheduler.embedded.stack import Stack, StackPlan, list_servers, list_stack, open_stack
from hascheduler.errors import StoreUnavailable
from hascheduler.model.values.instants import WallMs
from hascheduler.mongo.connection import Database, connect, open_database
from hascheduler.mongo.faults import faults, translated

_PATIENCE_S = 30.0
_BUSY_PATIENCE_S = 5.0
_LIVE = ["pending", "dispatched", "running"]
_SIGNALS = {"kill -9": signal.SIGKILL, "SIGTERM to": signal.SIGTERM}


@asynccontextmanager
async def open_local_environment(
    folder: Path, transport: str | None, run: str, say: Callable[[str], None]
) -> AsyncIterator[DemoEnvironment]:
    """A system of its own, taken down at the end; ``run`` is in the name of its database."""
    shutil.rmtree(folder / "logs", ignore_errors=True)
    # A database of its own: the server may be one that others use.
    name = f"hascheduler-demo-{run}"
    plan = StackPlan(folder, transport=transport, settings={"HASCHEDULER_DATABASE": name})
    async with (
        open_stack(plan, say) as stack,
        _database(stack, name) as database,
        open_replica_api(lambda: _running(stack)) as api,
    ):
        say("everything is ready")
        with translated("running the demo"):
            yield LocalEnvironment(stack, database, api)


@asynccontextmanager
async def _database(stack: Stack, name: str) -> AsyncIterator[Database]:
    """The database, for reading evidence; dropped at the end where the server is not the stack's own."""
    client = connect(stack.mongodb_uri)
    try:
        yield open_database(client, name)
    finally:
        if os.environ.get("HASCHEDULER_MONGODB_URI"):
            await stack.stop()  # a replica would make its collections again
            with faults("dropping the database"):
                await client.drop_database(name)
        await client.close()


class LocalEnvironment:
    """`hascheduler.demo.environment.DemoEnvironment`. A takeover is measured from the signal to the first decision that
    the next term wrote down."""

    where = "pid"
    prefix = ""
    poll_every_s = 0.1
    ways: Sequence[str] = tuple(_SIGNALS)
    processor_way = "kill -9"
    cuts_outputs = False

    def __init__(self, stack: Stack, database: Database, api: ReplicaApi) -> None:
        self._stack = stack
        self._database = database
        self._clock = SystemClock()
        self._api = api
        self.title = f"transport {stack.transport}"

    def wall_ms(self) -> WallMs:
        return self._clock.wall_ms()

    def replicas(self) -> Sequence[ProcessStatus]:
        return _members(self._stack.replicas)

    def processors(self) -> Sequence[ProcessStatus]:
        return _members(self._stack.processors)

    def outputs(self) -> Sequence[Path]:
        return [self._stack.log_of(name) for name in self._stack.processors]

    def listing(self) -> Sequence[RenderableType]:
        return [list_stack(self._stack), list_servers(self._stack)]

    async def snapshot(self) -> ClusterSnapshot | None:
        return await self._api.snapshot()

    async def create(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return await self._api.create(body)

    async def leader(self) -> CurrentLeader:
        async with asyncio.timeout(_PATIENCE_S):
            while True:
                lease = await self._database["leases"].find_one({"_id": "default"})
                name = lease["holder"].rpartition(".")[0] if lease else ""
                if lease and name in self._stack.replicas:
                    return CurrentLeader(name, lease["term"])
                await asyncio.sleep(0.01)

    async def end_leader(self, leader: CurrentLeader, way: str) -> int:
        at_ms = self._clock.wall_ms()
        self._stack.replicas[leader.name].signal(_SIGNALS[way])
        entry = await self._entry({"term": {"$gt": leader.term}, "kind": "decisions"})
        return int(entry["at_ms"]) - at_ms

    async def restore(self, leader: CurrentLeader) -> str:
        await _end(self._stack.replicas[leader.name])
        await self._stack.start_replica(leader.name)
        await self._stack.ready(leader.name)
        return leader.name

    async def busiest_processor(self) -> str:
        running: list[dict[str, Any]] = [{"$match": {"state": "running"}}, {"$sortByCount": "$processor"}]
        try:
            async with asyncio.timeout(_BUSY_PATIENCE_S):
                while True:
                    async for group in await self._database["jobs"].aggregate(running):
                        return str(group["_id"])
                    await asyncio.sleep(0.01)
        except TimeoutError:
            any_one = await self._database["processors"].find_one({})
            if any_one is None:
                raise StoreUnavailable("there is no processor left to kill") from None
            return str(any_one["_id"])

    async def end_processor(self, id: str) -> str:
        name = id.rpartition(".")[0]
        child = self._stack.processors[name]
        child.signal(signal.SIGKILL)
        await _end(child)
        await self._stack.start_processor(name)
        return name

    async def count_unended(self, ids: Collection[str]) -> int:
        ended = {"_id": {"$in": list(ids)}, "state": {"$nin": _LIVE}}
        return len(ids) - await self._database["jobs"].count_documents(ended)

    async def read_jobs(self, ids: Collection[str], seen: Collection[str]) -> Mapping[str, Mapping[str, Any]]:
        found = self._database["jobs"].find({"_id": {"$in": list(ids)}}, ["state", "attempt", "attempts"])
        return {job["_id"]: job async for job in found}

    async def complete_outputs(self) -> None:
        """Nothing to do: the handlers write to the files themselves."""

    async def _entry(self, which: dict[str, Any]) -> dict[str, Any]:
        """The first of those journal entries, once it is written."""
        async with asyncio.timeout(_PATIENCE_S):
            while True:
                entry = await self._database["journal"].find_one(which, sort=[("_id", 1)])
                if entry is not None:
                    return entry
                await asyncio.sleep(0.01)


def _running(stack: Stack) -> Mapping[str, str]:
    return {name: stack.urls[name] for name, child in stack.replicas.items() if child.running}


def _members(children: Mapping[str, Child]) -> Sequence[ProcessStatus]:
    return [ProcessStatus(name, str(child.pid), child.running) for name, child in children.items()]


async def _end(child: Child) -> None:
    async with asyncio.timeout(_PATIENCE_S):
        await child.wait()
