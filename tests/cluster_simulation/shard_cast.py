"""The cast of several shards: processes that host some or all of them, as `hascheduler.shards` puts them together, the
databases that partitions move between, and gateways that may stand still."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from types import SimpleNamespace
from typing import Any

from hascheduler.daemon.replica import Replica
from hascheduler.dispatch.config import PolicyConfig
from hascheduler.dispatch.decisions import Decision, Fire, Settlement
from hascheduler.dispatch.settlements import freeing, riding
from hascheduler.errors import StoreUnavailable
from hascheduler.model.collection import Collection
from hascheduler.model.partition import Hold, partition_of
from hascheduler.model.values.instants import WallMs
from hascheduler.shards.hosting import HostedShard, Hosting
from hascheduler.shards.layout import Layout
from hascheduler.shards.moves import PartitionMover, ShardDocuments
from hascheduler.shards.placement import LeaderPlacement
from hascheduler.shards.turns import CapTurns
from hascheduler.testing.memory.claims import apply_time_outcomes
from hascheduler.testing.memory.database import Document, MemoryConnection, MemoryDatabase
from hascheduler.testing.memory.state_updates import dispatched
from tests.checkers.evidence import Evidence
from tests.cluster_simulation.cluster import RETENTION_MS, Bugs, Cluster, Life
from tests.cluster_simulation.database import Server
from tests.cluster_simulation.loop import Process, SimClock
from tests.cluster_simulation.network import Link, Remote
from tests.doubles.holds import MemoryHoldStore
from tests.doubles.layouts import MemoryLayoutStore
from tests.doubles.tenants import MemoryTenantStore
from tests.doubles.turns import MemoryTurnStore

CAP = 7
"""On all jobs together."""
REBALANCED_MS = 3_000
FRESH_S = 0.9
"""A write that is done so long after its gateway has read the layout is not late: a mover waits a second for it."""
_LIVES_S = 5.0
_LATE_MS = 35_000
"""As long as the network may keep a write, and a bit."""


Board = dict[str, tuple[int, float]]
"""What gateways tell in the home: the epoch that each acknowledges, and when it told."""


class FiresInSteps:
    """Claims whose fires are carried out as in MongoDB: slots are given back, the schedules are read, then the jobs
    inserted, as dispatched if that was decided too, and last the cursors advance. In between a partition may move."""

    def __init__(self, claims: Any) -> None:
        self._claims = claims

    async def apply(self, decisions: Sequence[Decision], at_ms: WallMs, *, majority: bool) -> list[Settlement]:
        fires = [decision for decision in decisions if isinstance(decision, Fire)]
        connection, link = self._claims._claims._connection, self._claims._link
        riders = riding(decisions)

        async def read() -> Mapping[str, Document | None]:
            async with connection.exchange("fires.read") as database:
                return {fire.schedule: database.find(Collection.SCHEDULES, fire.schedule) for fire in fires}

        async def insert(schedules: Mapping[str, Document | None]) -> None:
            aside = MemoryDatabase()
            for schedule in schedules.values():
                if schedule is not None:
                    aside.insert(Collection.SCHEDULES, schedule)
            apply_time_outcomes(aside, fires, at_ms, RETENTION_MS)
            async with connection.exchange("fires.insert") as database:
                for job in aside.documents(Collection.JOBS):
                    rider = riders.get(job["_id"])
                    claim = {} if rider is None else dispatched(job, rider.attempt, rider.processor, at_ms)
                    database.insert(Collection.JOBS, {**job, **claim, "rev": 1})

        freed = freeing(decisions)
        try:
            if fires:
                if freed:
                    first = partial(self._claims._claims.apply, freed, at_ms, majority=majority)
                    await link.call("slots.free", first, majority=False)
                schedules = await link.call("fires.read", read, majority=False)
                await link.call("fires.insert", lambda: insert(schedules), majority=False)
        except StoreUnavailable:
            return [Settlement.UNKNOWN] * len(decisions)
        settlements: list[Settlement] = await self._claims.apply(decisions, at_ms, majority=majority)
        return settlements


@dataclass
class ShardBugs(Bugs):
    """What a run has planted where partitions move, caps go round and replicas begin and leave shards."""

    claims: Callable[[Any], Any] = FiresInSteps
    layouts: Callable[[Any], Any] = lambda store: store
    tenants: type[MemoryTenantStore] = MemoryTenantStore
    mover: type[PartitionMover] = PartitionMover
    turns: Callable[[CapTurns], None] = lambda turns: None
    hosting: Callable[[Hosting], None] = lambda hosting: None
    moved_by_all: bool = False
    """Every replica moves partitions, all the time. That is no bug."""


@dataclass
class Shard:
    """The database of a shard, and what really happened there."""

    name: str
    server: Server
    evidence: Evidence
    is_moving: bool = False
    """What is committed now comes from another shard, or goes there: nothing happens to it."""

    @property
    def documents(self) -> Callable[[Collection], Iterator[Document]]:
        return self.server.database.documents


class _Transactions(MemoryConnection):
    """What is written in one exchange a majority has at once, or nobody."""

    def __init__(self, shard: Shard) -> None:
        super().__init__(shard.server.database)
        self._shard = shard

    @asynccontextmanager
    async def exchange(self, name: str) -> AsyncIterator[MemoryDatabase]:  # faults have names
        database = self._shard.server.database
        database.commit(database.version)
        self._shard.is_moving = True
        try:
            yield database
        finally:
            database.commit(database.version)
            self._shard.is_moving = False


class SimTenants:
    """`MemoryTenantStore` over the network. It takes a batch in parts, and may fall asleep."""

    def __init__(self, shard: Shard, link: Link, store: type[MemoryTenantStore]) -> None:
        self._read = Remote(MemoryTenantStore(MemoryConnection(shard.server.database), RETENTION_MS), link)
        self._write = Remote(store(_Transactions(shard), RETENTION_MS), link)
        self._chance = link.network.chance

    def __getattr__(self, name: str) -> Any:
        return getattr(self._read, name)

    async def put(self, hold: Hold, documents: Mapping[Any, Any], **how: Any) -> set[Any]:
        refused: set[Any] = set()
        async for part in self._parts(documents):
            refused |= await self._write.put(hold, part, **how)
        return refused

    async def take(self, hold: Hold, versions: Mapping[Any, Any]) -> int:
        return sum([await self._write.take(hold, part) async for part in self._parts(versions)])

    async def _parts(self, documents: Mapping[Any, Any]) -> AsyncIterator[Mapping[Any, Any]]:
        all, size = [*documents.items()], self._chance.choice((3, 20, 500))
        for at in range(0, len(all), size):
            if self._chance.random() < 0.03:
                await asyncio.sleep(self._chance.uniform(0.5, 4))  # it was asleep, and others went on
            yield dict(all[at : at + size])


class SimGateway:
    """What requests go through: it knows a layout, stands still now and then, and tells what it acknowledges."""

    def __init__(self, name: str, layout: Layout, layouts: Any, link: Link, board: Board) -> None:
        self.layout = layout
        self._name = name
        self._layouts = layouts
        self._link = link
        self._board = board
        self._read_s = 0.0
        self._under_way: Counter[int] = Counter()

    @property
    def is_fresh(self) -> bool:
        return self._link.network.loop.now_s - self._read_s < FRESH_S

    async def run(self) -> None:
        chance, loop = self._link.network.chance, self._link.network.loop
        while True:
            with suppress(StoreUnavailable):
                began_s, read = loop.now_s, await self._layouts.get()
                if read.epoch >= self.layout.epoch:
                    self.layout, self._read_s = read, began_s
                if not any(self._under_way[partition] for partition in self.layout.frozen):
                    await self._link.call("gateways.tell", self._tell)
            await asyncio.sleep(chance.uniform(0.5, 6) if chance.random() < 0.02 else 0.05)

    async def _tell(self) -> None:
        self._board[self._name] = self.layout.epoch, self._link.network.loop.now_s

    async def write(self, tenant: str, do: Callable[[int], Coroutine[Any, Any, Any]]) -> Any:
        """Do it in the tenant's shard; None if that is not known, or nothing is written there now."""
        partition = partition_of(tenant)
        if self.layout.is_frozen(partition):
            return None
        self._under_way[partition] += 1
        try:
            return await do(self.layout.index_of(tenant))
        except StoreUnavailable:
            return None
        finally:
            self._under_way[partition] -= 1


class SimHome:
    """What a mover asks of `hascheduler.shards.gateways.GatewayBoard`."""

    def __init__(self, hosting: Hosting, link: Link, board: Board, *, always: bool) -> None:
        self._hosting = hosting
        self._link = link
        self._board = board
        self._always = always
        self._asked = (0, 0.0)

    @property
    def leading(self) -> bool:
        return self._always or self._hosting.home.view.leading

    async def all_know(self, index: int) -> bool:
        return True

    async def all_have(self, epoch: int, patience_s: float) -> bool:
        now_s = self._link.network.loop.now_s
        if self._asked[0] != epoch:
            self._asked = epoch, now_s

        async def behind() -> bool:
            return any(told < epoch and now_s - at_s < _LIVES_S for told, at_s in self._board.values())

        return not await self._link.call("gateways.read", behind) or now_s - self._asked[1] >= patience_s


class ShardedProcess:
    """One process of several shards, and what runs beside them."""

    def __init__(self, hosting: Hosting, *beside: Any) -> None:
        self.hosting = hosting
        self.stop = hosting.stop
        self._beside = beside

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            beside = [tasks.create_task(each.run()) for each in self._beside]
            await self.hosting.run()
            for task in beside:
                task.cancel()

    def is_out_of_touch(self) -> bool:
        return any(replica.is_out_of_touch() for replica in self.hosting.replicas)

    def leads(self) -> int:
        return sum(map(self.leads_shard, range(len(self.hosting.shards))))

    def leads_shard(self, index: int) -> bool:
        replica: Any = self.hosting.shards[index].replica
        return replica is not None and replica.leader.leads()

    def hosts(self, index: int) -> bool:
        return self.hosting.shards[index].replica is not None

    @property
    def _leader(self) -> "ShardedProcess":
        """As a life asks who leads."""
        return self


@dataclass
class ShardedCluster(Cluster):
    """Replicas of the shards, and a processor for each. ``candidates`` is how many host each shard but the home; 0: all
    do. ``begun`` is told of each process, before it runs."""

    _bugs: ShardBugs
    _shards: Sequence[Shard]
    _candidates: int = 0
    begun: Callable[[Life], None] = field(default_factory=lambda: lambda life: None, init=False)
    turns: MemoryTurnStore = field(default_factory=MemoryTurnStore, init=False)
    board: Board = field(default_factory=dict, init=False)

    def leader(self) -> Life | None:
        """One of those that believe that they lead some shard."""
        leading = [life for life in self.up("r") if life.actor.leads()]
        return self._network.chance.choice(leading) if leading else None

    def layouts(self, host: str) -> Any:
        home = MemoryConnection(self._shards[0].server.database)
        return Remote(MemoryLayoutStore(home), Link(self._network, self._shards[0].server, host))

    def _replica(self, host: str, id: str, process: Process) -> Life:
        clock, names = SimClock(self._loop, process), [shard.name for shard in self._shards]
        links = [Link(self._network, shard.server, host) for shard in self._shards]
        sources = []

        def make(index: int, _: object) -> tuple[Replica, Any]:
            made = self._replica_of(index, host, id, process)
            sources.append(made.source)
            return made.actor, SimpleNamespace()

        async def hosts_of(index: int) -> list[str]:
            async def read() -> list[str]:
                return [each["_id"] for each in self._shards[index].documents(Collection.REPLICAS) if each["ready"]]

            return await links[index].call("hosts", read)

        async def keeps_to_parts() -> bool:
            return True

        liveness: Any = SimpleNamespace(silence_while=lambda silenced: None)
        shards = [HostedShard(index, name, partial(make, index), liveness) for index, name in enumerate(names)]
        hosting = Hosting(
            shards, hosts_of, name=host, most=self._candidates, clock=clock, after_ms=REBALANCED_MS
        )  # fmt: skip
        holds: list[Any] = [
            Remote(MemoryHoldStore(MemoryConnection(shard.server.database)), link)
            for shard, link in zip(self._shards, links, strict=True)
        ]
        tenants: list[Any] = [
            SimTenants(shard, link, self._bugs.tenants) for shard, link in zip(self._shards, links, strict=True)
        ]
        home: Any = SimHome(hosting, links[0], self.board, always=self._bugs.moved_by_all)
        mover = self._bugs.mover(
            home,
            self._bugs.layouts(self.layouts(host)),
            [ShardDocuments(*both) for both in zip(tenants, holds, strict=True)],
            keeps_to_parts=keeps_to_parts,
            clock=clock,
            late_ms=_LATE_MS,
        )
        stored_turns: Any = Remote(self.turns, links[0])
        turns = CapTurns(stored_turns, names, holds, lambda: hosting.replicas, clock)
        placement = LeaderPlacement(
            names,
            lambda: hosting.replicas,
            name=host,
            clock=clock,
            after_ms=REBALANCED_MS,
            candidates=self._candidates,
        )
        self._bugs.turns(turns)
        self._bugs.hosting(hosting)
        life = Life(host, id, process, ShardedProcess(hosting, mover, turns, placement), sources[0])
        self.begun(life)
        return life

    def _replica_of(self, index: int, host: str, id: str, process: Process) -> Life:
        """The replica of one shard in that process."""
        shard, policy = self._shards[index], PolicyConfig(max_concurrency=CAP)
        self._server, self._shard = shard.server, shard.name
        self._dispatch = replace(self._dispatch, part=(index, len(self._shards)), policy=policy)
        return super()._replica(host, id, process)

    def _processor(self, host: str, id: str, process: Process) -> Life:
        shard = self._shards[int(host[1:]) - 1]
        self._server, self._shard = shard.server, shard.name
        return super()._processor(host, id, process)
