"""How what leaders decide grows with the number of shards: twenty replicas, of which three host each shard.

All is the real code on simulated ports: who hosts (`Hosting`), who should lead (`LeaderPlacement`), election,
journal, core and streams, and which shard has a tenant's jobs (`Layout`). Modelled is the time that decisions take: a
leader's entries are written to the journal at `DECIDED_PER_S` dispatches a second, as if its CPU gave no more. With
``cores`` the leaders of one process take turns, as on one core.

As many jobs wait at first as all leaders together can decide within `WINDOW_S`, of tenants drawn by chance. A shard
whose tenants have less has nothing to do at the end, and one whose tenants have more is not done: so what is gained
shows how even partitions and leaders are as well.
"""

import asyncio
from collections import Counter
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from random import Random
from typing import Any

from hascheduler.dispatch.decisions import Dispatch
from hascheduler.election.preferences import preferred_leaders
from hascheduler.model.collection import Collection
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import JournalEntry
from hascheduler.processor import Handlers
from hascheduler.schema.definition import Definition
from hascheduler.schema.noun import document_of
from hascheduler.shards.layout import Layout, encode_layout
from hascheduler.testing.memory.database import MemoryConnection
from hascheduler.testing.memory.jobs import MemoryJobStore
from tests.checkers.evidence import Evidence
from tests.cluster_simulation.broker import SimBroker
from tests.cluster_simulation.cluster import RETENTION_MS
from tests.cluster_simulation.database import Server, SimDatabase
from tests.cluster_simulation.loop import EPOCH_MS, SimLoop
from tests.cluster_simulation.network import Network
from tests.cluster_simulation.run import Result, Say, run_story
from tests.cluster_simulation.shard_cast import Shard, ShardBugs, ShardedCluster
from tests.cluster_simulation.shards import new_job

DECIDED_PER_S = 10
WINDOW_S = 15.0
REPLICAS = 20
CANDIDATES = 3
TENANTS = 20_000
_SPREAD_S = 60.0
"""As long as leaders may take to be where they should be."""
_TOOK_S = 0.02


@dataclass
class Grown:
    """What so many shards did: jobs that ended in a second, how many shards one replica led and hosted at most."""

    shards: int
    replicas: int
    jobs_per_s: float
    doubled: int
    led_most: int
    hosted_most: int
    spread_s: float


def grown(shards: int, replicas: int, seed: int = 0, *, cores: bool = False, tenants: int = TENANTS) -> Grown:
    """Run it; `RuntimeError` where not every shard gets a leader."""
    told: list[Grown] = []

    def tell(loop: SimLoop, _: Result, say: Say) -> Coroutine[Any, Any, None]:
        story = _Growth(loop, Random(f"{seed} many shards"), shards, replicas, say, cores=cores, tenants=tenants)

        async def run() -> None:
            told.append(await story.tell())

        return run()

    result = run_story(seed, tell)
    if not told:
        raise RuntimeError(str(result.violations))
    return told[0]


class _Growth:
    def __init__(
        self, loop: SimLoop, chance: Random, shards: int, replicas: int, say: Say, *, cores: bool, tenants: int
    ) -> None:
        self._loop = loop
        self._chance = chance
        self._hosts = [f"r{number}" for number in range(1, replicas + 1)]
        names = ["default", *(f"{number:04}" for number in range(1, shards))]
        self._layout = Layout.even(names)
        self._tenants = tenants
        self._shards = [
            Shard(name, Server(loop, SimDatabase(lambda *_: None), chance), Evidence(epoch_ms=EPOCH_MS))
            for name in names
        ]
        self._ended: Counter[str] = Counter()
        turns = {host: asyncio.Lock() for host in self._hosts} if cores else None

        def journal(of: Any) -> _TakesTime:
            return _TakesTime(of, nullcontext() if turns is None else turns[of._link.name])

        network = Network(loop, chance)
        bugs, candidates = ShardBugs(journal=journal), CANDIDATES if shards > 1 else 0
        self._cluster = ShardedCluster(
            loop, network, self._shards, SimBroker(network), self._handlers, say, bugs, candidates, cap=None
        )

    async def tell(self) -> Grown:
        loop = self._loop
        background = [loop.create_task(shard.server.run()) for shard in self._shards]
        home = self._shards[0].server.database
        home.insert(Collection.ROUTING, encode_layout(self._layout))
        for number, shard in enumerate(self._shards, 1):
            shard.server.database.insert(Collection.DEFINITIONS, document_of(Definition(name="any", rev=1)))
            self._cluster.start(f"p{number}")
        for host in self._hosts:
            self._cluster.start(host)
        limit_s = loop.now_s + _SPREAD_S
        while not self._is_spread():
            if loop.now_s > limit_s:
                raise RuntimeError(f"after {_SPREAD_S:.0f} s {len(self._shards)} shards are led so: {self._led()}")
            await asyncio.sleep(0.5)
        spread_s = loop.now_s
        await self._submit(round(len(self._shards) * DECIDED_PER_S * WINDOW_S))
        await asyncio.sleep(WINDOW_S)
        ended = Counter(self._ended)
        for task in background:
            task.cancel()
        lives = self._cluster.up("r")
        return Grown(
            shards=len(self._shards),
            replicas=len(self._hosts),
            jobs_per_s=len(ended) / WINDOW_S,
            doubled=sum(times - 1 for times in ended.values()),
            led_most=max(self._led().values()),
            hosted_most=max(sum(map(life.actor.hosts, range(len(self._shards)))) for life in lives),
            spread_s=spread_s,
        )

    async def _submit(self, count: int) -> None:
        stores = [MemoryJobStore(MemoryConnection(shard.server.database), RETENTION_MS) for shard in self._shards]
        now_ms = WallMs(EPOCH_MS + int(self._loop.now_s * 1_000))
        for number in range(count):
            tenant = f"tenant-{self._chance.randrange(self._tenants)}"
            await stores[self._layout.index_of(tenant)].submit(new_job(number, tenant, now_ms))

    def _led(self) -> Counter[str]:
        return Counter({life.host: life.actor.leads() for life in self._cluster.up("r")})

    def _is_spread(self) -> bool:
        """Whether each shard is led by the replica that should lead it."""
        names = [shard.name for shard in self._shards]
        should = [order[0] for order in preferred_leaders(names, self._hosts, CANDIDATES).values()]
        lives = {life.host: life for life in self._cluster.up("r")}
        return all(lives[host].actor.leads_shard(index) for index, host in enumerate(should))

    def _handlers(self, _: str) -> Handlers:
        handlers = Handlers()

        @handlers.handler("any")
        async def work(job: Any) -> str:
            await asyncio.sleep(_TOOK_S)
            self._ended[job.id] += 1
            return "done"

        return handlers


class _TakesTime:
    """A journal of a leader whose decisions take their time. Of one process those in the same ``turn`` wait for each
    other."""

    def __init__(self, journal: Any, turn: AbstractAsyncContextManager[Any]) -> None:
        self._journal = journal
        self._turn = turn

    def __getattr__(self, name: str) -> Any:
        return getattr(self._journal, name)

    async def insert(self, entry: JournalEntry) -> bool:
        dispatched = sum(isinstance(decision, Dispatch) for decision in entry.decisions)
        if dispatched:
            async with self._turn:
                await asyncio.sleep(dispatched / DECIDED_PER_S)
        return bool(await self._journal.insert(entry))
