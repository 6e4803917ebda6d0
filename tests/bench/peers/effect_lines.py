"""The line a peer's handler leaves, in the form of ``hascheduler.handlers.log``.

It runs in the peer's environment: no imports.
"""

import json
import os
import time

_file: list[int] = []


def leave(job: str, nominal_ms: int | None = None) -> None:
    """Append it at once; a line so short is whole even if others append at the same moment.

    Jobs are ``job:…`` or ``fire:<schedule>:…``; the driver waits for ``ready:…``, ``begin:…`` and ``scheduled:…``.
    """
    at_ms = time.time_ns() // 1_000_000
    if not _file:
        _file.append(os.open(os.environ["EFFECTS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644))
    line = {"effect": "peer", "job": job, "attempt": 1, "nominal_ms": nominal_ms, "at_ms": at_ms}
    os.write(_file[0], f"{json.dumps(line)}\n".encode())
