"""Coroutine handlers that block their event loop, and others that share it."""

import asyncio
import os
import time
from typing import Any

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
    """Stand still for the payload's ``seconds``; ``child``: in a task that the handler begins."""
    stand_still = _stand_still(job.payload)
    if job.payload.get("child"):
        await asyncio.create_task(stand_still)
    else:
        await stand_still
    return "done"


async def _stand_still(payload: Any) -> None:
    with open(payload["file"], "a") as book:  # noqa: ASYNC230  # it is here to block
        book.write("begun\n")
    time.sleep(payload["seconds"])  # noqa: ASYNC251  # it is here to block


@handlers.handler("nap")
async def nap(job: JobContext) -> str:
    await bound.used()
    await asyncio.sleep(job.payload["seconds"])
    return f"{os.getpid()}"
