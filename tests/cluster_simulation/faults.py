"""What goes wrong, by chance: each fault begins, lasts a while, and is over. Up to three at once.

`FAULTS` names them all; a run may be limited to some. Whatever is down is started again a while later, under the same
host's name and as another process.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from inspect import iscoroutinefunction
from random import Random
from typing import Any

from hascheduler.model.collection import Collection
from hascheduler.model.values.instants import WallMs
from hascheduler.schema.noun import document_of
from hascheduler.schema.pause import EVERYTHING, StandingPause, drain_id
from hascheduler.testing.memory.database import MemoryConnection
from hascheduler.testing.memory.leadership import MemoryLeaseStore
from hascheduler.testing.memory.resources import MemoryResourceStore
from tests.cluster_simulation.broker import SimBroker
from tests.cluster_simulation.cluster import Cluster, Life
from tests.cluster_simulation.database import Server
from tests.cluster_simulation.loop import EPOCH_MS
from tests.cluster_simulation.network import Network

_AT_ONCE_MAX = 3
SKEW_MS_MAX = 2_000
HOSTS = ("r1", "r2", "r3", "p1", "p2", "p3")
"""Of replicas and processors."""


_LEADER = "leader"


def _on(whom: str, what: Callable[..., Coroutine[Any, Any, None]], *how: str) -> Callable[["Faults"], Any]:
    """Return a fault that hits the leader, or some process whose host has one of these first letters."""

    async def fault(self: "Faults") -> None:
        await what(self, self._cluster.leader() if whom == _LEADER else self._some(whom), *how)

    return fault


@dataclass
class Faults:
    _cluster: Cluster
    _network: Network
    _server: Server
    _broker: SimBroker
    _chance: Random
    _say: Callable[[str], None]
    _hosts: Sequence[str] = HOSTS
    _offsets: dict[str, int] = field(default_factory=dict)

    async def run(self, until_s: float, only: tuple[str, ...]) -> None:
        """Begin faults until then, and end them all."""
        loop = self._network.loop
        async with asyncio.TaskGroup() as tasks:
            under_way: list[asyncio.Task[None]] = []
            while loop.now_s < until_s:
                await asyncio.sleep(self._chance.expovariate(1 / 1.5))
                under_way = [task for task in under_way if not task.done()]
                if len(under_way) < _AT_ONCE_MAX and loop.now_s < until_s:
                    name = self._chance.choice(only)
                    under_way.append(tasks.create_task(FAULTS[name](self), name=name))
        self._network.mend()

    # What hits one process

    async def _down(self, life: Life | None, how: str) -> None:
        if life is None or life.process.is_paused:
            return
        getattr(self._cluster, how)(life)
        await self._wait(0.2, 5)
        self._start_if_gone(life.host)

    async def _paused(self, life: Life | None) -> None:
        if life is None or life.process.is_paused:
            return
        self._cluster.pause(life)
        await self._wait(0.3, 8)
        if life.is_up and life.process.is_paused:
            self._cluster.resume(life)

    async def _starved(self, life: Life | None) -> None:
        """It gets no CPU for a while, again and again."""
        if life is None or life.process.is_paused:
            return
        self._say(f"{life.id} is short of CPU")
        end_s = self._network.loop.now_s + self._chance.uniform(3, 12)
        life.is_starved = True
        while life.is_up and self._network.loop.now_s < end_s and not life.process.is_paused:
            life.process.is_paused = True
            await self._wait(0.1, 1.3)
            life.process.is_paused = False
            await self._wait(0.02, 0.3)
        life.is_starved = False

    async def _cut(self, life: Life | None, other: str) -> None:
        if life is None or life.host == other:
            return
        ways = self._chance.choice(
            (((life.host, other),), ((other, life.host),), ((life.host, other), (other, life.host)))
        )
        self._say(f"nothing gets through: {', '.join(f'{one} to {two}' for one, two in ways)}")
        for one, two in ways:
            self._network.cut(one, two)
        await self._wait(0.3, 8)
        self._network.mend()

    kill = _on("r", _down, "kill")
    kill_leader = _on(_LEADER, _down, "kill")
    terminate_leader = _on(_LEADER, _down, "terminate")
    kill_processor = _on("p", _down, "kill")
    terminate_processor = _on("p", _down, "terminate")
    pause = _on("r", _paused)
    pause_leader = _on(_LEADER, _paused)
    pause_processor = _on("p", _paused)
    starve = _on("r", _starved)
    starve_leader = _on(_LEADER, _starved)
    cut_from_database = _on("rp", _cut, "db")
    cut_leader_from_database = _on(_LEADER, _cut, "db")
    cut_from_broker = _on("rp", _cut, "broker")

    # Processes

    async def kill_everything(self) -> None:
        lives = self._cluster.up("r") + self._cluster.up("p")
        for life in lives:
            self._cluster.kill(life)
        await self._wait(0.5, 6)
        for life in lives:
            self._start(life.host)

    async def leader_loop_hangs(self) -> None:
        """Its dispatch loop does not come round, while all else in it goes on."""
        life = self._cluster.leader()
        if life is None:
            return
        self._say(f"the dispatch loop of {life.id} hangs")
        inbox, going_on = life.actor._inbox, asyncio.Event()
        wait = inbox.wait

        async def wait_or_hang(timeout_s: float) -> None:
            await wait(timeout_s)
            await going_on.wait()

        inbox.wait = wait_or_hang
        await self._wait(0.3, 8)
        inbox.wait = wait
        going_on.set()

    # Clocks

    async def clock_jump(self) -> None:
        life = self._some("rp")
        if life is not None:
            life.process.offset_ms = self._chance.randint(-SKEW_MS_MAX, SKEW_MS_MAX)
            self._offsets[life.host] = life.process.offset_ms
            self._say(f"the wall clock of {life.id} jumps to {life.process.offset_ms:+} ms")

    async def clock_rate(self) -> None:
        life = self._some("rp")
        if life is None:
            return
        rate = self._chance.choice((0.85, 1.15))
        self._say(f"the clocks of {life.id} run at {rate}")
        now_s = self._network.loop.now_s
        life.process.run_at_rate(rate, now_s)
        await self._wait(1, 6)
        life.process.run_at_rate(1.0, self._network.loop.now_s)

    # Network

    async def leader_off_one_way(self) -> None:
        """Nothing of the leader's host gets out, or nothing gets in; neither from the servers nor from the others."""
        life = self._cluster.leader()
        if life is None:
            return
        is_out = self._chance.random() < 0.5
        self._say(f"nothing gets {'out of' if is_out else 'into'} {life.host}")
        for other in {"db", "broker", "r1", "r2", "r3"} - {life.host}:
            self._network.cut(*((life.host, other) if is_out else (other, life.host)))
        await self._wait(0.3, 8)
        self._network.mend()

    async def leader_lease_hangs(self) -> None:
        """The leader's renewals get no answer, while its stream and all its other writes go on."""
        life = self._cluster.leader()
        if life is None:
            return
        self._say(f"the lease of {life.id} can't be written")
        self._network.hung.add((life.host, MemoryLeaseStore.__name__))
        await self._wait(1, 8)
        self._network.hung.discard((life.host, MemoryLeaseStore.__name__))

    async def cut_replicas_apart(self) -> None:
        other = self._some("r")
        await self._cut(self._some("r"), other.host if other else "r1")

    async def lossy_network(self) -> None:
        self._say("the network loses and delays messages")
        self._network.is_lossy = True
        await self._wait(1, 6)
        self._network.is_lossy = False

    # Database

    async def fail_over(self) -> None:
        self._server.lag_s = self._chance.choice((0.001, 0.05, 0.5))
        await self._wait(0, 1)
        undone = await self._fails_over()
        self._say(f"there is a primary again; {undone} writes were taken back")
        self._server.lag_s = 0.001

    async def slow_majority(self) -> None:
        self._server.lag_s = self._chance.uniform(0.05, 1.5)
        self._say(f"a majority takes {self._server.lag_s:.2f} s")
        await self._wait(1, 6)
        self._server.lag_s = 0.001

    async def history_lost(self) -> None:
        self._say("the history of changes is lost, and every stream breaks")
        self._server.database.history.forget()
        for life in self._cluster.up("r"):
            self._network.cut("db", life.host)
        await self._wait(0.2, 2)
        self._network.mend()

    async def drop_collection(self) -> None:
        collection = self._chance.choice((Collection.REPLICAS, Collection.LANES, Collection.TENANTS))
        self._say(f"{collection} is dropped")
        self._server.database.drop(collection)

    # What people stop

    async def pause_everything(self) -> None:
        """Long enough that a leader, or the next one, has seen it for a while; then everything is caught up with."""
        of_schedules = self._chance.random() < 0.3
        pause = StandingPause(
            id=EVERYTHING, rev=1, since_ms=self._now(), by="deployer", because="it burns", schedules_only=of_schedules
        )
        await self._stopped(pause, self._chance.choice((1.0, 12.0, 16.0)))

    async def drain_processor(self) -> None:
        life = self._some("p")
        if life is not None:
            # Every process of a host has its name.
            name = next(
                (
                    one["name"]
                    for one in self._server.database.documents(Collection.PROCESSORS)
                    if one["_id"] == life.id
                ),
                life.host,
            )
            await self._stopped(
                StandingPause(id=drain_id(name), rev=1, since_ms=self._now(), by="deployer"), self._chance.uniform(1, 8)
            )

    async def _stopped(self, pause: StandingPause, for_s: float) -> None:
        connection = MemoryConnection(self._server.database)
        store = MemoryResourceStore[StandingPause](connection, Collection.PAUSES)
        if await store.create(pause) is None:
            return
        self._say(f"{pause.id} is paused")
        try:
            await asyncio.sleep(for_s)
        finally:
            self._say(f"{pause.id} goes on")
            self._server.database.delete(Collection.PAUSES, pause.id)

    async def hold_stream(self) -> None:
        life = self._chance.choice([self._cluster.leader(), self._some("r")])
        if life is None or life.source is None:
            return
        self._say(f"the stream of {life.id} tells nothing")
        life.source.flowing.clear()
        await self._wait(0.3, 8)
        self._say(f"the stream of {life.id} flows")
        life.source.flowing.set()

    # Broker

    async def broker_down(self) -> None:
        self._say("the broker is down")
        self._broker.is_up = False
        if self._chance.random() < 0.5:
            self._broker.wipe()
        await self._wait(0.3, 6)
        self._broker.is_up = True
        self._say("the broker is up")

    async def broker_blocks(self) -> None:
        self._say("the broker blocks")
        self._broker.is_blocked = True
        await self._wait(0.3, 5)
        self._broker.is_blocked = False

    async def broker_wiped(self) -> None:
        self._say("the queues are gone")
        self._broker.wipe()

    async def lossy_broker(self) -> None:
        self._say("the broker loses, doubles and delays messages")
        self._broker.is_lossy = True
        await self._wait(1, 8)
        self._broker.is_lossy = False

    # What they are made of

    def heal(self) -> None:
        """Everything works, all that are up go on, every clock is right."""
        self._say("everything is mended")
        self._network.mend()
        self._network.hung.clear()
        self._network.is_lossy = self._broker.is_lossy = self._broker.is_blocked = False
        self._broker.is_up = self._server.is_up = True
        self._server.lag_s = 0.001
        for pause in list(self._server.database.documents(Collection.PAUSES)):  # a fail-over took its end back
            self._server.database.delete(Collection.PAUSES, pause["_id"])
        self._offsets.clear()
        for life in self._cluster.lives:
            if life.is_up:
                life.process.offset_ms = self._drift_ms(life)
                if life.source is not None:
                    life.source.flowing.set()
                if life.process.is_paused:
                    self._cluster.resume(life)

    def pause_schedules(self) -> None:
        """For good: jobs that are there end, and then nothing changes any more."""
        self._say("all schedules are paused")
        pause = StandingPause(id=EVERYTHING, rev=1, since_ms=self._now(), by="deployer", schedules_only=True)
        self._server.database.insert(Collection.PAUSES, document_of(pause))

    def start_missing(self) -> None:
        """As a cluster does: on each host whose process is gone, another one."""
        for host in self._hosts:
            self._start_if_gone(host)

    async def _fails_over(self) -> int:
        self._say("the primary is lost")
        return await self._server.fail_over(self._chance.uniform(0.1, 4))

    def _start_if_gone(self, host: str) -> None:
        if not any(life.host == host for life in self._cluster.lives if life.is_up):
            self._start(host)

    def _start(self, host: str) -> None:
        self._cluster.start(host, offset_ms=self._offsets.get(host, 0))

    def _now(self) -> WallMs:
        return WallMs(EPOCH_MS + int(self._network.loop.now_s * 1000))

    def _some(self, kinds: str) -> Life | None:
        lives = [life for kind in kinds for life in self._cluster.up(kind)]
        return self._chance.choice(lives) if lives else None

    async def _wait(self, least_s: float, most_s: float) -> None:
        await asyncio.sleep(self._chance.uniform(least_s, most_s))

    def _drift_ms(self, life: Life) -> int:
        """The offset with which its wall clock shows the true time."""
        now_s = self._network.loop.now_s
        return round((now_s - life.process.mono_s(now_s)) * 1000)


FAULTS: dict[str, Callable[[Faults], Coroutine[Any, Any, None]]] = {
    name: method
    for name, method in vars(Faults).items()
    if iscoroutinefunction(method) and not name.startswith("_") and name != "run"
}
"""By name; each is a coroutine function of `Faults`."""
