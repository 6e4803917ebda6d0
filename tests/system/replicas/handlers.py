"""Handlers that fail as their payloads say, block their event loop, or trace and log by themselves."""

import asyncio
import os
import time
from typing import Any

import structlog
from opentelemetry import trace

from hascheduler.processor import Handlers, JobContext

handlers = Handlers()


class Bound:
    """Bound to the loop that ran while it was made, as an HTTP session is."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()

    async def used(self) -> None:
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(asyncio.sleep(0), self.loop))
        assert self.loop is asyncio.get_running_loop(), "another loop than the one it was made in"


bound = Bound()


@handlers.handler("block")
async def block(job: JobContext) -> str:
    """Block the loop for the payload's ``seconds`` in a task that the handler begins."""
    await asyncio.create_task(_block(job.payload))
    return "done"


async def _block(payload: Any) -> None:
    with open(payload["file"], "a") as book:  # noqa: ASYNC230  # it is here to block
        book.write("begun\n")
    time.sleep(payload["seconds"])  # noqa: ASYNC251  # it is here to block


@handlers.handler("nap")
async def nap(job: JobContext) -> str:
    await bound.used()
    await asyncio.sleep(job.payload["seconds"])
    return f"{os.getpid()}"


tracer = trace.get_tracer("somebody's application")
log = structlog.get_logger(__name__)


@handlers.handler("traced")
async def traced(job: JobContext) -> dict[str, int]:
    """Succeeds in the attempt that its payload names."""
    with tracer.start_as_current_span("in a coroutine"):
        log.info("at_work")
        if job.attempt < job.payload["succeeds_in"]:
            raise LookupError(f"attempt {job.attempt} was never to succeed")
        return {"attempt": job.attempt}


@handlers.handler("traced-thread")
def traced_thread(job: JobContext) -> None:
    with tracer.start_as_current_span("in a thread"):
        log.info("at_work")
