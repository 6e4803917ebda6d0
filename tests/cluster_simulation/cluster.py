"""The cast: replicas and processors, real but for their ports, each a process that can die, pause and come back."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hascheduler.daemon.config import ReplicaConfig, ReplicaPorts
from hascheduler.daemon.replica import Replica
from hascheduler.dispatch.config import DispatchConfig, PolicyConfig
from hascheduler.processor import Handlers, Processor, ProcessorConfig
from hascheduler.testing.memory.claims import MemoryClaimStore
from hascheduler.testing.memory.database import MemoryConnection
from hascheduler.testing.memory.leadership import (
    MemoryAccountStore,
    MemoryJournal,
    MemoryLeaseStore,
    MemoryReplicaBoard,
)
from hascheduler.testing.memory.stream import MemoryChangeSource
from hascheduler.testing.memory.work import MemoryWorkStore
from tests.cluster_simulation.broker import SimBroker, SimDeliveries, SimTransport
from tests.cluster_simulation.database import Server
from tests.cluster_simulation.loop import Process, SimClock, SimLoop
from tests.cluster_simulation.network import Link, Network, Remote, RemoteClaims, RemoteSource

LEASE_MS, DEADLINE_MS, RETRY_MS = 3_000, 2_000, 400
STANDSTILL_MS = 900
HEARTBEAT_MS, HEARTBEAT_TIMEOUT_MS = 300, 1_500
START_TIMEOUT_MS = 1_500
RETENTION_MS = 86_400_000
SLOTS = 4


@dataclass
class Life:
    """One process from its start to its death. ``pauses`` are spans of true time; the last may be open."""

    host: str
    id: str
    process: Process
    actor: Any
    source: RemoteSource | None = None
    pauses: list[list[float]] = field(default_factory=list)
    died_s: float | None = None
    ended: bool = False
    is_starved: bool = False
    """Awake for moments only."""
    heard_s: float = 0.0
    """When its stream was last seen to flow."""

    @property
    def is_up(self) -> bool:
        return self.died_s is None and not self.ended

    @property
    def leads(self) -> bool:
        """Whether it believes so now, by its own clock."""
        return bool(self.actor.leader.leads())


@dataclass
class Bugs:
    """What a run has planted: each wraps or changes one sound part. For the tests of the checkers."""

    leases: Callable[[Any], Any] = lambda store: store
    journal: Callable[[Any], Any] = lambda store: store
    claims: Callable[[Any], Any] = lambda store: store
    work: Callable[[Any], Any] = lambda store: store
    jobs: Callable[[Any], Any] = lambda store: store
    source: Callable[[Any], Any] = lambda source: source
    replica: Callable[[Replica], None] = lambda replica: None
    processor: Callable[[Processor], None] = lambda processor: None


@dataclass
class Cluster:
    """Owner of the processes. ``say`` hears what happens to them."""

    _loop: SimLoop
    _network: Network
    _server: Server
    _broker: SimBroker
    _handlers: Callable[[str], Handlers]
    _say: Callable[[str], None]
    _bugs: Bugs
    lives: list[Life] = field(default_factory=list, init=False)
    _starts: int = field(default=0, init=False)
    _shard: str = field(default="default", init=False)
    _dispatch: DispatchConfig = field(
        default_factory=lambda: DispatchConfig(start_timeout_ms=START_TIMEOUT_MS, policy=PolicyConfig()), init=False
    )

    def up(self, kind: str) -> list[Life]:
        """Those that run now; ``kind`` is the first letter of the host."""
        return [life for life in self.lives if life.is_up and life.host.startswith(kind)]

    def leader(self) -> Life | None:
        """The replica that believes that it leads; the one of the newest term where several do."""
        leading = [life for life in self.up("r") if life.leads]
        return max(leading, key=lambda life: life.actor.view.cluster().lease.term, default=None)

    # Starting and stopping

    def start(self, host: str, *, offset_ms: int = 0, rate: float = 1.0) -> Life:
        self._starts += 1
        id = f"{host}.{self._starts}"
        process = Process(id, rate=rate, offset_ms=offset_ms)
        process.run_at_rate(rate, self._loop.now_s)
        process._mono_s = self._loop.now_s  # the clocks of its machine have been running
        life = self._replica(host, id, process) if host.startswith("r") else self._processor(host, id, process)
        self.lives.append(life)

        async def main() -> None:
            try:
                await life.actor.run()
            except BaseExceptionGroup as group:
                # A replica that finds its own state broken ends; another leads. Here nobody restarts it unseen.
                self._say(f"{id} ENDED BY ITSELF: {_texts(group)}")
                raise
            finally:
                life.ended = True

        self._say(f"{id} starts" + (f", clock {offset_ms:+} ms, rate {rate}" if offset_ms or rate != 1 else ""))
        life.heard_s = self._loop.now_s
        task = self._loop.spawn(process, main)
        task.add_done_callback(lambda done: None if done.cancelled() else done.exception())
        return life

    def kill(self, life: Life) -> None:
        self._say(f"{life.id} is killed")
        life.died_s = self._loop.now_s
        self._loop.bury(life.process)

    def terminate(self, life: Life) -> None:
        """SIGTERM."""
        self._say(f"{life.id} is asked to end")
        end = life.actor.stop if life.host.startswith("r") else life.actor.drain
        self._loop.call_in(life.process, 0, end)

    def pause(self, life: Life) -> None:
        self._say(f"{life.id} is paused")
        life.process.is_paused = True
        life.pauses.append([self._loop.now_s, float("inf")])

    def resume(self, life: Life) -> None:
        self._say(f"{life.id} goes on")
        life.process.is_paused = False
        life.pauses[-1][1] = self._loop.now_s

    # Building

    def _replica(self, host: str, id: str, process: Process) -> Life:
        link = Link(self._network, self._server, host)
        connection = MemoryConnection(self._server.database)
        source = RemoteSource(
            MemoryChangeSource(connection, batch_max=self._network.chance.choice((20, 100, 1000))), link
        )
        clock = SimClock(self._loop, process)
        config = ReplicaConfig(
            scheduler=self._shard,
            replica_id=id,
            name=host,
            started_at_ms=clock.wall_ms(),
            liveness_endpoint=f"{host}:1",
            lease_duration_ms=LEASE_MS,
            renew_deadline_ms=DEADLINE_MS,
            retry_period_ms=RETRY_MS,
            heartbeat_timeout_ms=HEARTBEAT_TIMEOUT_MS,
            journal_retention_ms=RETENTION_MS,
            standstill_after_ms=STANDSTILL_MS,
            dispatch=self._dispatch,
        )
        replica = Replica(
            config,
            ReplicaPorts(
                source=self._bugs.source(source),
                leases=self._bugs.leases(Remote(MemoryLeaseStore(connection), link)),
                journal=self._bugs.journal(Remote(MemoryJournal(connection), link)),
                claims=self._bugs.claims(RemoteClaims(MemoryClaimStore(connection, RETENTION_MS), link)),
                accounts=Remote(MemoryAccountStore(connection), link, w1=("save",)),
                board=Remote(MemoryReplicaBoard(connection), link),
                transport=SimTransport(self._broker, host),
                liveness=_Alive(),
                clock=clock,
                wait_for_death=lambda holder, _: self._wait_for_death(host, holder),
                greets_in_time=lambda holder, _, limit_s: self._greets_in_time(host, holder, limit_s),
            ),
        )
        self._bugs.replica(replica)
        return Life(host, id, process, replica, source)

    def _processor(self, host: str, id: str, process: Process) -> Life:
        link = Link(self._network, self._server, host)
        connection = MemoryConnection(self._server.database)
        config = ProcessorConfig(
            id=id,
            name=host,
            scheduler=self._shard,
            slots=SLOTS,
            heartbeat_interval_ms=HEARTBEAT_MS,
            heartbeat_deadline_ms=HEARTBEAT_TIMEOUT_MS - HEARTBEAT_MS,
            drain_grace_ms=1_000,
        )
        work = self._bugs.work(Remote(MemoryWorkStore(connection, RETENTION_MS), link))
        deliveries = SimDeliveries(self._broker, id, host, SLOTS)
        processor = Processor(self._handlers(id), work, deliveries, SimClock(self._loop, process), config)
        self._bugs.processor(processor)
        return Life(host, id, process, processor)

    async def _wait_for_death(self, watcher: str, holder: str) -> None:
        """As `hascheduler.daemon.leadership.liveness.wait_for_death_by_connection`, on this network."""
        greeted = False
        while True:
            await asyncio.sleep(self._network.chance.uniform(0.01, 0.5))
            life = next((life for life in self.lives if life.id == holder), None)
            if life is None or not self._network.both_ways(watcher, life.host):
                continue
            if life.is_up:
                greeted = greeted or not life.process.is_paused
            elif greeted:
                return

    async def _greets_in_time(self, watcher: str, holder: str, limit_s: float) -> bool:
        """As `hascheduler.daemon.leadership.liveness.greets_in_time`, on this network."""
        life = next((life for life in self.lives if life.id == holder), None)
        there_s = back_s = None
        if life is not None:
            there_s, back_s = self._network.delay_s(watcher, life.host), self._network.delay_s(life.host, watcher)
        if life is None or there_s is None or back_s is None or there_s + back_s > limit_s:
            await asyncio.sleep(limit_s)
            return False
        await asyncio.sleep(there_s)
        asked_s = self._loop.now_s
        greeted: asyncio.Future[bool] = self._loop.create_future()

        def answer() -> None:
            if not greeted.done():
                greeted.set_result(not life.actor.is_out_of_touch())

        if life.is_up:
            # In that process, so that one which is paused answers when it goes on.
            self._loop.call_in(life.process, 0, answer)
        try:
            async with asyncio.timeout(max(limit_s - there_s - back_s, 0)):
                if not await greeted:
                    return False
        except TimeoutError:
            return False
        await asyncio.sleep(back_s)
        return self._loop.now_s - asked_s <= limit_s


class _Alive:
    def silence_while(self, silenced: Callable[[], bool]) -> None: ...


def _texts(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(_texts(one) for one in error.exceptions)
    return f"{type(error).__name__}: {error}"
