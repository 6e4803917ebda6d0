"""What the processors run: each run writes down when it began and when it ended, in a file that everybody appends to.

A line is one write to a file that was opened with O_APPEND, so lines of many processes do not mix, and a process that
is killed has left all that it wrote.
"""

import asyncio
import os
import time
import zlib

import orjson

from hascheduler.processor import Handlers, JobContext
from tests.chaos.strings import NAME, SINK

_TAKES_S = (0.0, 0.01, 0.01, 0.05, 0.1, 0.2)
_SLOW_S = (0.5, 1.0, 1.5, 3.0)
_LONG_S = (9.0, 13.0)
"""Longer than a processor is waited for."""
_FLAKY_OF_100 = 30

handlers = Handlers()
_sink = os.open(os.environ[SINK], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
_process = f"{os.environ[NAME]}/{os.getpid()}"


@handlers.handler("quick")
@handlers.handler("capped")
@handlers.handler("grouped")
async def work(job: JobContext) -> str:
    return await _work(job, _TAKES_S)


@handlers.handler("slow")
async def slow(job: JobContext) -> str:
    return await _work(job, _SLOW_S)


@handlers.handler("long")
async def long(job: JobContext) -> str:
    return await _work(job, _LONG_S)


@handlers.handler("block")
async def block(job: JobContext) -> str:
    """Hold up all coroutines of this process for the payload's seconds."""
    _tell("begin", job)
    time.sleep(job.payload)  # noqa: ASYNC251  # it is here to block
    _tell("end", job)
    return "done"


@handlers.handler("flaky")
async def flaky(job: JobContext) -> str:
    done = await _work(job, _TAKES_S)
    if _lot(job) % 100 < _FLAKY_OF_100:
        raise RuntimeError("flaky")
    return done


async def _work(job: JobContext, takes_s: tuple[float, ...]) -> str:
    _tell("begin", job)
    try:
        await asyncio.sleep(takes_s[_lot(job) % len(takes_s)])
    finally:
        _tell("end", job)
    return "done"


def _lot(job: JobContext) -> int:
    """By chance, and the same for everybody who asks about this attempt."""
    return zlib.crc32(f"{job.id}/{job.attempt}".encode())


def _tell(what: str, job: JobContext) -> None:
    line = {"what": what, "job": job.id, "attempt": job.attempt, "process": _process, "wall_ns": time.time_ns()}
    os.write(_sink, orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
