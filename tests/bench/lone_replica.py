"""One replica alone on a database that holds something already: how soon it is ready, and what it costs while it rests.

It runs on the ``mongo`` transport. *Ready* is from the start of its process until it is ready and leads: its term
begins behind everything that is in the database in the core's inbox, so nothing is decided before that is known.
"""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from hascheduler.client import AsyncScheduler, Unavailable
from hascheduler.embedded.children import Daemon, free_port, start_daemon
from tests.bench.cast import own_mb, process_cpu_s, resident_mb

READY_LIMIT_S = 600
_SETTLE_S = 5
_ASKED_EVERY_S = 0.2


@dataclass(frozen=True, slots=True)
class LoneReplica:
    """``health_url`` is where its process answers probes, from its first moment."""

    child: Daemon
    process: psutil.Process
    url: str
    health_url: str
    started_at: float
    settings: dict[str, str]

    async def leads(self) -> float:
        """Once it is ready and leads: the seconds that took since its start."""
        asking = AsyncScheduler(self.url, patience=0, answer_timeout=READY_LIMIT_S)
        async with asking as scheduler, asyncio.timeout(READY_LIMIT_S):
            while not await _leads(scheduler):
                if not self.child.running:
                    raise RuntimeError(f"the replica has ended:\n{self.child.last_lines()}")
                # Asked fifty times a second, a tenth of what a start costs was to answer that.
                await asyncio.sleep(_ASKED_EVERY_S)
        return round(time.monotonic() - self.started_at, 2)

    async def rests(self, seconds: int) -> dict[str, float]:
        """What it takes while nothing happens."""
        await asyncio.sleep(_SETTLE_S)
        before_s = process_cpu_s(self.process)
        await asyncio.sleep(seconds)
        spent_s = process_cpu_s(self.process) - before_s
        return {
            "memory_mb": own_mb(self.process),
            "resident_mb": resident_mb(self.process),
            "idle_cpu_percent": round(100 * spent_s / seconds, 2),
        }

    @asynccontextmanager
    async def processor(self, handlers: Sequence[str], slots: int) -> AsyncIterator[Path]:
        """A processor on the same database, and its handlers' output."""
        arguments = ["processor", *handlers, "--slots", str(slots)]
        output = self.child.log.with_name("processor.log")
        output.unlink(missing_ok=True)
        child = await start_daemon("processor", arguments, output, environment={**os.environ, **self.settings})
        try:
            yield output
        finally:
            await asyncio.shield(child.stop())


@asynccontextmanager
async def start_lone_replica(
    uri: str,
    database: str,
    folder: Path,
    more: Mapping[str, str] | None = None,
    program: Sequence[str] = (sys.executable, "-m", "hascheduler"),
) -> AsyncIterator[LoneReplica]:
    """``more``: settings of its own."""
    port, health_port = free_port(), free_port()
    settings = {
        "HASCHEDULER_MONGODB_URI": uri,
        "HASCHEDULER_DATABASE": database,
        "HASCHEDULER_TRANSPORT": "mongo",
        "HASCHEDULER_HTTP_PORT": str(port),
        "HASCHEDULER_HEALTH_PORT": str(health_port),
        "HASCHEDULER_REPLICA_ID": "bench",
        "HASCHEDULER_AUTH": "none",
        **(more or {}),
    }
    started_at = time.monotonic()
    # The health port is of replicas alone; a processor that is given none of its own has none.
    environment = {**os.environ, **settings}
    child = await start_daemon(
        "replica",
        ["serve"],
        folder / f"{database}.log",
        environment=environment,
        url=f"http://127.0.0.1:{health_port}",
        program=program,
    )
    of_processors = {name: value for name, value in settings.items() if name != "HASCHEDULER_HEALTH_PORT"}
    try:
        yield LoneReplica(
            child,
            psutil.Process(child.pid),
            f"http://127.0.0.1:{port}",
            f"http://127.0.0.1:{health_port}",
            started_at,
            of_processors,
        )
    finally:
        await asyncio.shield(child.stop())


async def _leads(scheduler: AsyncScheduler) -> bool:
    try:
        cluster = await scheduler.cluster.status()
    except Unavailable:
        return False
    return cluster.ready and cluster.leading
