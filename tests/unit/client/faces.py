"""The two schedulers under one face, so that each test is one for both."""

import asyncio
from collections.abc import Callable
from typing import Any

import httpx2

from hascheduler.client import AsyncScheduler, Job, Scheduler

Answering = Callable[[httpx2.Request], httpx2.Response]


class Threaded:
    """A `Scheduler`, or a part of one, whose methods are awaited, while this loop serves it."""

    def __init__(self, scheduler: Any) -> None:
        self.scheduler = scheduler

    def __getattr__(self, name: str) -> Any:
        meant = getattr(self.scheduler, name)
        if not callable(meant):
            return Threaded(meant)

        async def ask(*arguments: Any, **more: Any) -> Any:
            return await asyncio.to_thread(meant, *arguments, **more)

        return ask


class Face:
    """``ask`` is a scheduler with methods to await."""

    def __init__(self, ask: Any) -> None:
        self.ask = ask

    async def listed(self, **filter: Any) -> list[Job]:
        if isinstance(self.ask, AsyncScheduler):
            return [job async for job in self.ask.list(**filter)]
        scheduler: Scheduler = self.ask.scheduler
        return await asyncio.to_thread(lambda: list(scheduler.list(**filter)))


def answered_by(kind: str, answer: Answering, *urls: str, **more: Any) -> Face:
    """A face whose replicas are ``answer``."""
    if kind == "async":
        return Face(scheduler_over(answer, *urls, **more))
    return Face(Threaded(Scheduler(*urls, http=httpx2.Client(transport=httpx2.MockTransport(answer)), **more)))


def scheduler_over(transport: Any, *urls: str, **more: Any) -> AsyncScheduler:
    """One whose replicas are behind ``transport``, or a function that answers."""
    if not isinstance(transport, httpx2.AsyncBaseTransport):
        transport = httpx2.MockTransport(transport)
    return AsyncScheduler(*(urls or ("http://a",)), http=httpx2.AsyncClient(transport=transport), **more)
