"""Runs a plain function in a thread of its own.

Daemon threads rather than a pool: at the end of the process a pool waits for its threads, and a function that never
returns would keep a drained processor alive for ever.
"""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from hascheduler.processor.context import JobContext


async def run_in_thread(function: Callable[[JobContext], Any], job: JobContext) -> Any:
    """What ``function`` returns or raises.

    The first cancellation waits for the thread all the same, as it can't be stopped and still does its work; the
    function learns of it through `JobContext.stop_requested`. The second one abandons the thread.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def settle(result: Any, error: BaseException | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(result)
        elif isinstance(error, Exception) and not isinstance(error, StopIteration):
            done.set_exception(error)
        else:
            # No future takes a StopIteration, and a SystemExit would end the event loop with all its jobs.
            done.set_exception(RuntimeError(f"the handler raised {type(error).__name__}"))

    def work() -> None:
        result: Any = None
        error: BaseException | None = None
        try:
            result = function(job)
        except BaseException as raised:
            error = raised
        with suppress(RuntimeError):  # the loop is closed: the thread was abandoned
            loop.call_soon_threadsafe(settle, result, error)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(work,), name=f"handler {job.id}/{job.attempt}", daemon=True).start()
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        if done.done():
            return done.result()
    return await done
