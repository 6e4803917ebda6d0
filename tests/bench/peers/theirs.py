"""A peer, running: its processes, on a server of its own."""

import asyncio
import contextlib
import os
import shutil
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from hascheduler.demo.evidence import Effect, Effects
from hascheduler.embedded.children import Child, start_child
from hascheduler.embedded.servers import start_mongod, start_rabbitmq
from tests.bench.peers.environments import CannotRun
from tests.bench.peers.systems import Peer

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
        """Wait until its processes have said so, so many times."""
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
