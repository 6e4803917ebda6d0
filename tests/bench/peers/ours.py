"""This scheduler, running: three replicas and two processors, MongoDB and RabbitMQ, all of it as it comes.

Jobs are submitted over HTTP, one by one or in batches, to all replicas in turn. An instance that is killed is the
leading replica and one of the processors at once, as if both were on a machine that is gone.
"""

import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

import orjson
from pymongo import AsyncMongoClient

from hascheduler.demo.evidence import Effect, Effects
from hascheduler.embedded.stack import Stack, StackPlan, open_stack
from tests.bench.cast import leading
from tests.bench.http_client import post_all
from tests.bench.made_schedules import interval_bodies
from tests.bench.peers.environments import CannotRun
from tests.bench.stacks import now_ms
from tests.bench.throughput import submit_noops

_DATABASE = "hascheduler-peers"
_HANDLERS = ("tests.bench.handlers", "processors.log")


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
