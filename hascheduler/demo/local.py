"""The environment on this machine: processes and a database of its own; processes are killed by signals."""

import asyncio
import os
import shutil
import signal
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

from rich.console import RenderableType

from hascheduler.clock import SystemClock
from hascheduler.demo.environment import (
    CurrentLeader,
    DemoEnvironment,
    ProcessStatus,
    ReplicaApi,
    open_replica_api,
)
from hascheduler.embedded.children import Child
from hascheduler.embedded.stack import Stack, StackPlan, list_servers, list_stack, open_stack
from hascheduler.model.partition import partition_of, shard_database, shard_name
from hascheduler.model.values.instants import WallMs
from hascheduler.mongo.connection import Database, connect, open_database
from hascheduler.mongo.faults import faults, translated
from hascheduler.shards.layout import Layout

_HOME = "default"
_TENANTS_A_SHARD = 2
_REBALANCE_AFTER = "2s"
"""Leaders are spread before the first kill."""
_PATIENCE_S = 30.0
_SIGNALS = {"kill -9": signal.SIGKILL, "SIGTERM to": signal.SIGTERM}


@asynccontextmanager
async def open_local_environment(
    folder: Path, transport: str | None, shards: int, run: str, say: Callable[[str], None]
) -> AsyncIterator[DemoEnvironment]:
    """Open a system of its own, removed at the end; ``run`` is in the names of its databases."""
    shutil.rmtree(folder / "logs", ignore_errors=True)
    # Databases of its own: others may use the same server.
    home = f"hascheduler-demo-{run}"
    plan = StackPlan(
        folder,
        transport=transport,
        settings={
            "HASCHEDULER_DATABASE": home,
            "HASCHEDULER_SHARD": _HOME,
            **({"HASCHEDULER_REBALANCE_AFTER": _REBALANCE_AFTER} if shards > 1 else {}),
        },
        shards=shards,
    )
    layout = Layout.even([shard_name(_HOME, index) for index in range(shards)]) if shards > 1 else None
    async with (
        open_stack(plan, say) as stack,
        open_replica_api(lambda: _running(stack)) as api,
        connect(stack.mongodb_uri) as client,
    ):
        say("everything is ready")
        databases = [open_database(client, shard_database(home, index)) for index in range(shards)]
        try:
            yield LocalEnvironment(stack, databases, layout, api)
        finally:
            if os.environ.get("HASCHEDULER_MONGODB_URI"):
                await stack.stop()  # a live replica would create its collections again
                for database in databases:
                    with faults("dropping the database"):
                        await client.drop_database(database.name)


class LocalEnvironment(DemoEnvironment):
    """The environment of local processes; ``layout`` is None for one shard."""

    where = "pid"
    prefix = ""
    poll_every_s = 0.1
    ways: Sequence[str] = ("kill -9", "SIGTERM to", "kill -9")
    processor_way = "kill -9"
    cuts_outputs = False

    def __init__(self, stack: Stack, databases: Sequence[Database], layout: Layout | None, api: ReplicaApi) -> None:
        self._stack = stack
        self._databases = databases
        self._layout = layout
        self.api = api
        self.shards: Sequence[str] = () if layout is None else layout.shards
        self.tenants: Sequence[str] = () if layout is None else tenants_of_each_shard(layout)
        self.title = f"transport {stack.transport}" + (f", {len(self.shards)} shards" if self.shards else "")

    def wall_ms(self) -> WallMs:
        return SystemClock().wall_ms()

    def replicas(self) -> Sequence[ProcessStatus]:
        return _members(self._stack.replicas)

    def processors(self) -> Sequence[ProcessStatus]:
        return _members(self._stack.processors)

    def outputs(self) -> Sequence[Path]:
        return [self._stack.log_of(name) for name in self._stack.processors]

    def listing(self) -> Sequence[RenderableType]:
        return [list_stack(self._stack), list_servers(self._stack)]

    def shard_of(self, tenant: str) -> str:
        return _HOME if self._layout is None else self._layout.shards[self._layout.index_of(tenant)]

    async def end_replica(self, name: str, way: str) -> None:
        self._stack.replicas[name].signal(_SIGNALS[way])

    async def restore(self, leader: CurrentLeader) -> str:
        await _end(self._stack.replicas[leader.name])
        await self._stack.start_replica(leader.name)
        await self._stack.ready(leader.name)
        return leader.name

    async def end_processor(self, id: str) -> str:
        name = id.rpartition(".")[0]
        child = self._stack.processors[name]
        child.signal(signal.SIGKILL)
        await _end(child)
        await self._stack.start_processor(name)
        return name

    async def read_jobs(self, ids: Collection[str]) -> Mapping[str, Mapping[str, Any]]:
        which, fields = {"_id": {"$in": list(ids)}}, ["state", "attempt", "attempts"]
        with translated("reading the jobs"):
            return {
                job["_id"]: job for database in self._databases async for job in database["jobs"].find(which, fields)
            }

    async def complete_outputs(self) -> None:
        """Do nothing: the handlers write to the files themselves."""


def tenants_of_each_shard(layout: Layout) -> Sequence[str]:
    """Return equally many tenants for each shard, in the order of the shards: in turns, they spread schedules evenly.

    Each has a partition of its own, so that no other moves with it.
    """
    found: dict[int, dict[int, str]] = {index: {} for index in range(len(layout.shards))}
    numbers = count(1)
    while any(len(of_shard) < _TENANTS_A_SHARD for of_shard in found.values()):
        tenant = f"team-{next(numbers)}"
        of_shard = found[layout.index_of(tenant)]
        if len(of_shard) < _TENANTS_A_SHARD:
            of_shard.setdefault(partition_of(tenant), tenant)
    return [list(of_shard.values())[turn] for turn in range(_TENANTS_A_SHARD) for of_shard in found.values()]


def _running(stack: Stack) -> Mapping[str, str]:
    return {name: stack.urls[name] for name, child in stack.replicas.items() if child.running}


def _members(children: Mapping[str, Child]) -> Sequence[ProcessStatus]:
    return [ProcessStatus(name, str(child.pid), child.running) for name, child in children.items()]


async def _end(child: Child) -> None:
    async with asyncio.timeout(_PATIENCE_S):
        await child.wait()
