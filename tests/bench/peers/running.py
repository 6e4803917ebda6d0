"""A system, running: a peer's processes on a server of its own, or ours, as it comes, with three replicas."""

import asyncio
import contextlib
import os
import shutil
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

import orjson
from pymongo import AsyncMongoClient

from hascheduler.demo.evidence import Effect, Effects
from hascheduler.embedded.children import Child, start_child
from hascheduler.embedded.servers import start_mongod, start_rabbitmq
from hascheduler.embedded.stack import Stack, StackPlan, open_stack
from tests.bench.http_client import post_all
from tests.bench.jobs import submit_noops
from tests.bench.peers.systems import CannotRun, Peer
from tests.bench.stacks import interval_bodies, leading, now_ms

_MARKS = ("ready:", "begin:", "scheduled:")
_START_S = 60
_GRACE_S = 5


class PeerRunning:
    """Owner of the processes; `open_peer` makes it and ends them."""

    def __init__(self, peer: Peer, command: list[str], folder: Path, environment: dict[str, str]) -> None:
        self._peer = peer
        self._command = command
        self._folder = folder.absolute()
        self._file = self._folder / "effects.jsonl"
        self._environment = {**environment, "EFFECTS": str(self._file), "PYTHONPATH": str(Path.cwd())}
        self._effects = Effects()
        self._children: list[Child] = []
        self._workers: list[Child] = []
        self._killed: list[Child] = []

    async def submit(self, jobs: int, batch: int) -> int:
        """Its API takes one job at a time, so ``batch`` is 1 whatever it says."""
        if not self._peer.also_work:
            await self._work(self._peer.workers)
        for number in range(self._peer.submitters):
            share = (jobs + number) // self._peer.submitters
            await self._start("submit", str(share))
        begun = await self._marked("begin:", self._peer.submitters)
        return min(effect.at_ms for effect in begun)

    async def schedule(self, count: int) -> None:
        if not self._peer.schedules_first:
            await self._work(self._peer.workers)
        await self._start("schedule", str(count))
        await self._marked("scheduled:", 1)
        if self._peer.schedules_first:
            await self._work(self._peer.workers)

    async def kill(self) -> int:
        """The one that has run longest, so that each has its turn."""
        victim = self._workers.pop(0)
        self._killed.append(victim)
        at_ms = time.time_ns() // 1_000_000
        victim.signal(signal.SIGKILL)
        await victim.wait()
        return at_ms

    async def restore(self) -> None:
        await self._work(1)

    def effects(self) -> list[Effect]:
        return [effect for effect in self._read() if not effect.job_id.startswith(_MARKS)]

    def check(self) -> None:
        for child in self._children:
            if not child.running and child.process.returncode != 0 and child not in self._killed:
                raise CannotRun(f"{child.name} ended: {child.last_lines(1) or child.process.returncode}")

    async def stop(self) -> None:
        """And whatever its processes have started: each has a group of its own."""
        await asyncio.gather(*(child.stop(_GRACE_S) for child in self._children))
        for child in self._children:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)

    async def _work(self, count: int) -> None:
        before = len([effect for effect in self._read() if effect.job_id.startswith("ready:")])
        for _ in range(count):
            self._workers.append(await self._start("work"))
        await self._marked("ready:", before + count)

    async def _start(self, role: str, *arguments: str) -> Child:
        name = f"{self._peer.name} {role} {len(self._children) + 1}"
        log = self._folder / f"{name.replace(' ', '-')}.log"
        child = await start_child(name, [*self._command, role, *arguments], log, environment=self._environment)
        self._children.append(child)
        return child

    async def _marked(self, mark: str, count: int) -> list[Effect]:
        """Wait until its processes have left that mark so many times."""
        try:
            async with asyncio.timeout(_START_S):
                while True:
                    found = [effect for effect in self._read() if effect.job_id.startswith(mark)]
                    if len(found) >= count:
                        return found
                    self.check()
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise CannotRun(f"no {mark} after {_START_S} s; {self._children[-1].last_lines(1)}") from None

    def _read(self) -> list[Effect]:
        self._effects.read([self._file])
        return self._effects.all


@asynccontextmanager
async def open_peer(peer: Peer, command: list[str], folder: Path) -> AsyncIterator[PeerRunning]:
    """With nothing but its server started; ``folder`` is emptied."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    environment = dict(os.environ)
    async with contextlib.AsyncExitStack() as servers:
        if peer.server == "mongodb":
            environment["MONGODB_URI"] = (await servers.enter_async_context(start_mongod())).uri
        else:
            environment["AMQP_URL"] = (await servers.enter_async_context(start_rabbitmq())).url
        running = PeerRunning(peer, command, folder, environment)
        try:
            yield running
        finally:
            await asyncio.shield(running.stop())


_DATABASE = "hascheduler-peers"
_HANDLERS = ("tests.bench.handlers", "hascheduler.handlers.log")


class OursRunning:
    """The stack's owner is `open_ours`."""

    def __init__(self, stack: Stack, fired: str) -> None:
        self._stack = stack
        self._fired = fired
        self._effects = Effects()
        self._killed: tuple[str, str] | None = None

    async def submit(self, jobs: int, batch: int) -> int:
        begin_ms = now_ms()
        await submit_noops(list(self._stack.urls.values()), jobs, batch)
        return begin_ms

    async def schedule(self, count: int) -> None:
        urls = list(self._stack.urls.values())
        bodies = interval_bodies(count, "s", definition=self._fired)
        await post_all(
            (f"{url}/v1/schedules", orjson.dumps(body)) for url, body in zip(cycle(urls), bodies, strict=False)
        )

    async def kill(self) -> int:
        async with AsyncMongoClient[dict[str, Any]](self._stack.mongodb_uri) as client:
            leader, _ = await leading(self._stack, client[_DATABASE])
        # The processor that has run longest is the first.
        processor = next(iter(self._stack.processors))
        self._killed = leader, processor
        victims = self._stack.replicas[leader], self._stack.processors.pop(processor)
        at_ms = now_ms()
        for victim in victims:
            victim.signal(signal.SIGKILL)
        for victim in victims:
            await victim.wait()
        return at_ms

    async def restore(self) -> None:
        assert self._killed is not None, "something was killed"
        leader, processor = self._killed
        self._killed = None
        await self._stack.start_replica(leader)
        await self._stack.start_processor(processor)
        await self._stack.ready(leader)
        await self._stack.processors_ready()

    def effects(self) -> list[Effect]:
        names = [*self._stack.processors, *(self._killed[1:] if self._killed else ())]
        self._effects.read([self._stack.log_of(name) for name in names])
        return self._effects.all

    def check(self) -> None:
        alive = [child for children in (self._stack.replicas, self._stack.processors) for child in children.values()]
        for child in alive:
            if not child.running and child.name not in (self._killed or ()):
                raise CannotRun(f"{child.name} ended: {child.last_lines(1)}")


@asynccontextmanager
async def open_ours(folder: Path, *, kills: bool) -> AsyncIterator[OursRunning]:
    """All ready; ``folder`` is emptied. With ``kills`` the handler of the schedules leaves each effect at once."""
    shutil.rmtree(folder, ignore_errors=True)
    settings = {"HASCHEDULER_DATABASE": _DATABASE}
    plan = StackPlan(folder, slots=1_024, settings=settings, handlers=_HANDLERS)
    async with open_stack(plan, lambda _: None) as stack:
        yield OursRunning(stack, "log" if kills else "noop")


Running = OursRunning | PeerRunning
