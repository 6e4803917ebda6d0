"""``hascheduler`` on a loop that is timed: what each piece of its work, from one turn to the next, takes of CPU.

A program, started in the place of ``python -m hascheduler``. It writes a line for each piece of more than
`NOTED_MS` to the file `PIECES`: the milliseconds, and what ran. Its loop is asyncio's, whose callbacks can be wrapped,
as those of uvloop cannot; and it collects no garbage, which would count for whoever meets it.
"""

import asyncio
import gc
import os
import time
from typing import Any

import uvloop

PIECES = "BENCH_PIECES"
"""The environment variable that names the file."""
NOTED_MS = 2.0
_NAMED_MAX = 300


def _run_timed() -> None:
    from hascheduler.__main__ import main

    with open(os.environ[PIECES], "a", encoding="utf-8", buffering=1) as noted:
        run = asyncio.Handle._run

        def timed(handle: asyncio.Handle) -> None:
            began_s = time.thread_time()
            run(handle)
            took_ms = 1_000 * (time.thread_time() - began_s)
            if took_ms >= NOTED_MS:
                noted.write(f"{took_ms:.1f} {str(handle)[:_NAMED_MAX]}\n")

        asyncio.Handle._run = timed  # type: ignore[method-assign, assignment]
        uvloop.run = _run_on_asyncio  # type: ignore[assignment]
        gc.collect()
        gc.disable()
        main()


def _run_on_asyncio(main: Any) -> None:
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        runner.run(main)


if __name__ == "__main__":
    _run_timed()
