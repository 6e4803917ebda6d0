"""Runs a coroutine that owns child processes: whatever ends it, its children are taken down in order."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


def run_in_foreground(main: Coroutine[Any, Any, Result]) -> Result:
    """The result of ``main``. Ctrl-C, SIGTERM and a closed terminal cancel it, and it may clean up.

    Then this raises `KeyboardInterrupt`. A second Ctrl-C ends at once; the kernel then kills the children.
    """

    async def attended() -> Result:
        task = asyncio.current_task()
        assert task is not None, "asyncio.run runs a task"
        for number in (signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        return await main

    try:
        return asyncio.run(attended())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
