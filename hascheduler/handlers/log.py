"""``log``: writes one line of JSON to standard output for each attempt. Takes any payload, returns null.

The scheduler has no part in writing the line, so it is independent evidence of what ran, and when::

    {"effect": "log", "job": "fire:tick:1700000000000", "attempt": 1, "target": "demo", "schedule": "tick",
     "nominal_ms": 1700000000000, "at_ms": 1700000000004, "payload": {"message": "hello"}}
"""

import os
import sys
import threading
import time

import orjson

from hascheduler.processor import Handlers, JobContext

handlers = Handlers()
_one_line_at_a_time = threading.Lock()


@handlers.handler("log")
def log(job: JobContext) -> None:
    """Write the line, in a thread because this is a plain function: a slow reader must not stop the heartbeat."""
    effect = {"effect": "log", "job": job.id, "attempt": job.attempt, "target": job.target, "schedule": job.schedule}
    effect |= {"nominal_ms": job.nominal_ms, "at_ms": time.time_ns() // 1_000_000, "payload": job.payload}
    # A payload that was written by hand may hold values that JSON can't.
    line = orjson.dumps(effect, default=str, option=orjson.OPT_APPEND_NEWLINE)
    with _one_line_at_a_time:
        written = os.write(sys.stdout.fileno(), line)
        while written < len(line):  # a pipe takes a long line in pieces
            written += os.write(sys.stdout.fileno(), line[written:])
