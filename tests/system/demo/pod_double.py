"""A pod of the cluster's double: one real process, which starts again in its place, and the log of each start."""

import asyncio
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from hascheduler.embedded.children import Child, free_port, start_child


@dataclass
class PodDouble:
    """``outputs`` has a file for each start, the newest last. A ``kept`` pod starts its process again when it ends."""

    name: str
    uid: str
    component: str
    arguments: list[str]
    environment: Mapping[str, str]
    folder: Path
    outputs: list[Path] = field(default_factory=list)
    ready: bool = False
    ending: bool = False
    kept: bool = True
    scheme: str = "http"
    http_port: int = field(default_factory=free_port)
    came_up: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when it was ready for the first time."""
    followers: int = 0
    """How many read its log to the end, whatever becomes of it."""

    @property
    def restarts(self) -> int:
        return max(0, len(self.outputs) - 1)

    async def start(self) -> None:
        output = self.folder / f"{self.name}.{len(self.outputs)}.log"
        settings = {"HASCHEDULER_REPLICA_ID": self.name, "HASCHEDULER_HTTP_PORT": str(self.http_port)}
        self.child: Child = await start_child(
            self.name,
            [sys.executable, "-m", "hascheduler", *self.arguments],
            output,
            environment={**self.environment, **settings},
        )
        self.outputs.append(output)

    async def keep_running(self, http: httpx.AsyncClient) -> None:
        """Until it is deleted: start it again when it ends, and know whether it is ready."""
        while True:
            await self._attend(http)
            self.ready = False
            if not self.kept:
                return
            await self.start()

    @contextmanager
    def followed(self) -> Iterator[None]:
        self.followers += 1
        try:
            yield
        finally:
            self.followers -= 1

    def kill(self, number: signal.Signals) -> None:
        self.child.signal(number)

    async def _attend(self, http: httpx.AsyncClient) -> None:
        child = self.child
        while child.running:
            self.ready = await self._is_ready(http)
            if self.ready:
                self.came_up.set()
            ended = asyncio.create_task(child.wait())
            await asyncio.wait([ended], timeout=0.1)
        await child.wait()

    async def _is_ready(self, http: httpx.AsyncClient) -> bool:
        if self.component == "processor":
            return self.outputs[-1].stat().st_size > 0
        try:
            return (await http.get(f"{self.scheme}://127.0.0.1:{self.http_port}/readyz")).status_code == httpx.codes.OK
        except httpx.HTTPError:
            return False
