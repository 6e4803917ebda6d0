"""Shards whose cores start jobs under small caps, and processes that lead them, all as slow as a test wants."""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from hascheduler.model.partition import Hold
from hascheduler.shards.turns import CapTurns
from tests.doubles.holds import MemoryHoldStore
from tests.doubles.turns import MemoryTurnStore

Job = frozenset[str]
"""The keys of the caps that it counts against."""


class Core:
    """One shard: its stored holds, what its core has seen of them, and its jobs. A cap is one job."""

    def __init__(self, name: str, *, is_first: bool) -> None:
        self.name = name
        self.is_first = is_first
        self.store = MemoryHoldStore()
        self.seen: dict[str, Hold] = {}
        self.waiting: list[Job] = []
        self.running: list[Job] = []

    def has(self, key: str) -> bool:
        hold = self.seen.get(key)
        return (self.is_first if hold is None else not hold.is_held) and self.uses(key) == 0

    def uses(self, key: str) -> int:
        return sum(key in job for job in self.running)

    def short_of(self) -> frozenset[str]:
        return frozenset(key for job in self.waiting for key in job if not self.has(key))

    def fold(self) -> None:
        self.seen = dict(self.store.stored)

    def step(self) -> None:
        for job in list(self.waiting):
            if all(map(self.has, job)):
                self.waiting.remove(job)
                self.running.append(job)
        for hold in self.seen.values():
            if hold.is_awaited and not self.uses(hold.key):
                self.store.release(hold)


@dataclass
class Seen:
    """What one process has of a shard, as a replica shows it to `CapTurns`, and its own view."""

    core: Core
    leading: bool = False
    mirror: dict[str, Hold] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.scheduler, self.short_of, self.view = self.core.name, self.core.short_of, self

    def nouns(self, _holds: Any) -> dict[str, Hold]:
        return self.mirror

    def fold(self) -> None:
        self.mirror = dict(self.core.store.stored)


class Gate:
    """A process's way to a store: each exchange waits until the test lets it go."""

    def __init__(self) -> None:
        self.waiting: list[asyncio.Future[None]] = []

    def through(self, store: Any) -> Any:
        gate = self

        class Gated:
            def __getattr__(self, name: str) -> Callable[..., Any]:
                async def exchange(*args: Any, **options: Any) -> Any:
                    turn = asyncio.get_running_loop().create_future()
                    gate.waiting.append(turn)
                    await turn
                    return await getattr(store, name)(*args, **options)

                return exchange

        return Gated()


class Process:
    """One replica with a view of each shard, and at most one turn under way."""

    def __init__(self, world: "Rounds") -> None:
        self.gate = Gate()
        self.shards: list[Any] = [Seen(core) for core in world.cores]
        names = [core.name for core in world.cores]
        stores = [self.gate.through(core.store) for core in world.cores]
        self.turns = CapTurns(self.gate.through(world.turns), names, stores, lambda: self.shards, world.clock)
        self.task: asyncio.Task[None] | None = None

    async def begin_or_go_on(self) -> None:
        """Begin a turn, or let the next exchange of the one under way happen."""
        if self.task is None or self.task.done():
            if self.task is not None:
                self.task.result()
            self.task = asyncio.create_task(self.turns.turn(), name="turn")
        elif self.gate.waiting:
            self.gate.waiting.pop(0).set_result(None)
        for _ in range(4):
            await asyncio.sleep(0)

    async def whole_turn(self) -> None:
        await self.begin_or_go_on()
        while self.task is not None and not self.task.done():
            await self.begin_or_go_on()

    def stop(self) -> None:
        if self.task is not None:
            self.task.cancel()
        self.task = None
        self.gate.waiting.clear()


class Rounds:
    """Owner of everything; each step checks that no cap is exceeded."""

    def __init__(
        self,
        shards: int = 3,
        processes: int = 2,
        *,
        turns: type[MemoryTurnStore] = MemoryTurnStore,
        holds: type[MemoryHoldStore] = MemoryHoldStore,
    ) -> None:
        self.ms = 0
        self.clock: Any = SimpleNamespace(mono_ms=lambda: self.ms)
        self.turns = turns()
        self.cores = [Core(f"s{index}", is_first=index == 0) for index in range(shards)]
        for core in self.cores:
            core.store = holds()
        self.processes = [Process(self) for _ in range(processes)]
        self.done: Counter[str] = Counter()

    def check(self) -> None:
        used = Counter(key for core in self.cores for job in core.running for key in job)
        assert all(count == 1 for count in used.values()), f"{used}, while each is a cap of one"

    def end_one(self, core: Core) -> None:
        if core.running:
            del core.running[0]
            self.done[core.name] += 1

    async def settle(self, rounds: int = 400) -> None:
        """From now on the first process alone leads all shards and everything is fast: all jobs end."""
        self.stop()
        for seen in self.processes[0].shards:
            seen.leading = True
        for _ in range(rounds):
            await self.fast_round()
            if not any(core.waiting or core.running for core in self.cores):
                return
        raise AssertionError(f"jobs wait for ever: {[core.waiting for core in self.cores]}")

    async def fast_round(self, *, ends: bool = True, exchanges: int = 0) -> None:
        """A fifth of a second in which everything is seen, a job a shard ends, and the first process has its turn,
        after so many exchanges of the last one."""
        self.ms += 200
        for core in self.cores:
            core.fold()
            core.step()
            self.check()
            if ends:
                self.end_one(core)
                core.step()
        for process in self.processes:
            for seen in process.shards:
                seen.fold()
        for _ in range(exchanges):
            await self.processes[-1].begin_or_go_on()
        await self.processes[0].whole_turn()
        self.check()

    async def asleep(self, before: int, exchanges: int, rounds: int) -> None:
        """The last process falls asleep in one of its turns, and wakes so many rounds later."""
        for _ in range(before):
            await self.fast_round()
        await self.fast_round(exchanges=exchanges)
        for _ in range(rounds):
            await self.fast_round()
        await self.processes[-1].begin_or_go_on()
        self.processes[-1].stop()
        for _ in range(12):
            await self.fast_round()

    def stop(self) -> None:
        for process in self.processes:
            process.stop()


class ForgetfulHolds(MemoryHoldStore):
    """A planted bug: an earlier revision replaces a later one."""

    async def put(self, hold: Hold) -> bool:
        self.write(hold)
        return True


class HastyTurns(MemoryTurnStore):
    """A planted bug: a change without compare-and-set."""

    async def replace(self, before: Any, after: Any) -> bool:
        return await super().replace(self.stored[before.key], after)
