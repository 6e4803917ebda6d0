"""Three shards in memory, each with a connection of its own to cut, and what tests of the composites ask of them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hascheduler.model.collection import Collection
from hascheduler.model.routing import Routing
from hascheduler.model.values.instants import MonoMs, WallMs
from hascheduler.ports import JobStore, ScheduleStore
from hascheduler.ports.sharding import NameStore
from hascheduler.sharding.failovers import ShardedFailoverStore
from hascheduler.sharding.jobs import ShardedJobStore
from hascheduler.sharding.places import ShardPlaces
from hascheduler.sharding.schedules import ShardedScheduleStore
from hascheduler.sharding.verdicts import ShardedVerdictStore
from hascheduler.sharding.work import ShardedWorkStore
from hascheduler.testing.memory.database import MemoryConnection, MemoryDatabase
from hascheduler.testing.memory.jobs import MemoryJobStore
from hascheduler.testing.memory.leadership import MemoryFailoverStore
from hascheduler.testing.memory.resources import MemoryScheduleStore, MemoryVerdictStore
from hascheduler.testing.memory.work import MemoryWorkStore
from tests.doubles.shards import MemoryNameStore
from tests.factories import NOW

SHARDS = ("default", "0001", "0002")
RETENTION_MS = 600_000
ROUTING = Routing.even(SHARDS)


def tenant_in(index: int, number: int = 0) -> str:
    """The ``number``-th tenant of that shard."""
    return [f"t{n}" for n in range(64) if ROUTING.index_of(f"t{n}") == index][number]


HOME, ONE, TWO = (tenant_in(index) for index in range(len(SHARDS)))
"""A tenant of each shard."""


@dataclass
class HandClock:
    """`hascheduler.ports.Clock`. Each look at it may move it."""

    now: int = NOW
    step_ms: int = 0

    def wall_ms(self) -> WallMs:
        self.now += self.step_ms
        return WallMs(self.now)

    def mono_ms(self) -> MonoMs:
        return MonoMs(self.now)


@dataclass
class Deployment:
    connections: list[MemoryConnection] = field(
        default_factory=lambda: [MemoryConnection(MemoryDatabase()) for _ in SHARDS]
    )
    clock: HandClock = field(default_factory=HandClock)

    def __post_init__(self) -> None:
        names, all = MemoryNameStore(self.connections[0]), self.connections
        self.names = names
        self.places = ShardPlaces(ROUTING, names)
        self.jobs = ShardedJobStore(self.places, [MemoryJobStore(one, RETENTION_MS) for one in all])
        self.schedules = self.schedule_store(lambda store, _: store)
        self.verdicts = ShardedVerdictStore(self.places, [MemoryVerdictStore(one) for one in all])
        self.work = ShardedWorkStore(self.places, [MemoryWorkStore(one, RETENTION_MS) for one in all])
        self.failovers = ShardedFailoverStore(self.places, [MemoryFailoverStore(one) for one in all])

    def schedule_store(self, through: Callable[[Any, str], Any]) -> ShardedScheduleStore:
        """One whose stores are used ``through`` others; each is told by its name."""
        names: NameStore = through(MemoryNameStore(self.connections[0]), "names")
        stores: list[ScheduleStore] = [
            through(MemoryScheduleStore(one), f"shard {index}") for index, one in enumerate(self.connections)
        ]
        jobs: list[JobStore] = [
            through(MemoryJobStore(one, RETENTION_MS), f"jobs {index}") for index, one in enumerate(self.connections)
        ]
        return ShardedScheduleStore(ShardPlaces(ROUTING, names), names, stores, jobs, self.clock)

    def insert(self, index: int, collection: Collection, document: dict[str, Any]) -> None:
        assert self.connections[index].database.insert(collection, document)

    def shards_with(self, collection: Collection, id: str) -> list[int]:
        return [n for n, one in enumerate(self.connections) if one.database.find(collection, id) is not None]
