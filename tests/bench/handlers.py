"""``noop``: does nothing but leave an effect, at next to no cost: lines are written some at a time.

The line is that of ``hascheduler.handlers.log``, as far as the benchmarks read it.
"""

import asyncio
import os
import sys
import time

from hascheduler.processor import Handlers, JobContext

handlers = Handlers()

_FLUSH_S = 0.02
_lines: list[bytes] = []


@handlers.handler("noop")
async def noop(job: JobContext) -> None:
    at_ms = time.time_ns() // 1_000_000
    if not _lines:
        asyncio.get_running_loop().call_later(_FLUSH_S, _flush)
    nominal = "null" if job.nominal_ms is None else str(job.nominal_ms)
    _lines.append(
        b'{"effect": "noop", "job": "%s", "attempt": %d, "nominal_ms": %s, "at_ms": %d}\n'
        % (job.id.encode(), job.attempt, nominal.encode(), at_ms)
    )


def _flush() -> None:
    whole = b"".join(_lines)
    _lines.clear()
    written = os.write(sys.stdout.fileno(), whole)
    while written < len(whole):
        written += os.write(sys.stdout.fileno(), whole[written:])
