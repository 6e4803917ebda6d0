"""``log``: writes one line of JSON to standard output for each attempt. Takes any payload, returns null.

The line is an effect that the scheduler has no hand in, so it serves as independent evidence of what ran, and when::

    {"effect": "log", "job": "fire:tick:1700000000000", "attempt": 1, "target": "demo", "schedule": "tick",
     "nominal_ms": 1700000000000, "at_ms": 1700000000004, "payload": {"message": "hello"}}
"""

import asyncio
import os
import sys
import time

import orjson

from hascheduler.processor import Handlers, JobContext

handlers = Handlers()


@handlers.handler("log")
async def log(job: JobContext) -> None:
    line = orjson.dumps(
        {
            "effect": "log",
            "job": job.id,
            "attempt": job.attempt,
            "target": job.target,
            "schedule": job.schedule,
            "nominal_ms": job.nominal_ms,
            "at_ms": time.time_ns() // 1_000_000,
            "payload": job.payload,
        },
        default=str,  # a payload that was written by hand may hold what JSON can't
        option=orjson.OPT_APPEND_NEWLINE,
    )
    await _write_whole(line)


async def _write_whole(line: bytes) -> None:
    """One write, so that the lines of several jobs never mix; a reader that is slow is waited for elsewhere."""
    sys.stdout.flush()
    if len(line) <= _AT_ONCE_BYTES:
        _write(line)
    else:
        await asyncio.to_thread(_write, line)


_AT_ONCE_BYTES = 4096
"""POSIX: a pipe takes so much undivided."""


def _write(line: bytes) -> None:
    written = os.write(sys.stdout.fileno(), line)
    while written < len(line):
        written += os.write(sys.stdout.fileno(), line[written:])
