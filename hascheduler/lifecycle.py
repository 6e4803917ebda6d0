"""The life of a process: it waits for its database at its start, and stops in good order on a signal.

A driver may lose the cancellation of a task, and the loop around it would go on for ever. So each such loop calls
`leave_if_cancelled` once a round, and each stop has a limit, after which the process ends in any case.
"""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import structlog
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_delay, wait_random_exponential

from hascheduler.errors import StoreUnavailable, Unreachable
from hascheduler.telemetry.log_lines import Reminders

log = structlog.get_logger(__name__)

STOP_LIMIT_S = 40.0
"""More than an orderly stop takes, whatever it has to wait for; a drain has its grace besides."""
_NAMED_MAX = 20


def leave_if_cancelled() -> None:
    """Raise `CancelledError` if the current task was asked to end, even if the cancellation was lost."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


async def in_time(waiting: Awaitable[object], limit_s: float | None) -> bool:
    """Wait at most for that time; return True if it finished."""
    try:
        async with asyncio.timeout(limit_s):
            await waiting
    except TimeoutError:
        return False
    return True


async def database_ready(prepare: Callable[[], Awaitable[None]], patience_ms: int) -> bool:
    """Retry ``prepare`` until the database is ready: it may be starting, being initiated or given its users.

    Return False if a signal came first: a container's first process has no default action for signals, so without a
    handler it would not end. After ``patience_ms`` its last error is raised; an error that waiting does not fix is
    raised at once.
    """
    waiting = asyncio.create_task(_prepared(prepare, patience_ms), name="wait for MongoDB")
    try:
        with on_signal(waiting.cancel):
            await asyncio.wait([waiting])
    finally:
        waiting.cancel()
    if waiting.cancelled():
        log.info("stopped")
        return False
    waiting.result()
    return True


async def _prepared(prepare: Callable[[], Awaitable[None]], patience_ms: int) -> None:
    reminders = Reminders()

    def tell(state: RetryCallState) -> None:
        reason = str(state.outcome.exception()) if state.outcome else ""
        if reminders.is_due(reason, int(asyncio.get_running_loop().time() * 1_000)):
            log.warning("waiting_for_mongodb", tries=state.attempt_number, error=reason)

    try:
        async for attempt in AsyncRetrying(
            retry=retry_if_exception(_may_mend),
            wait=wait_random_exponential(multiplier=0.2, max=3),
            stop=stop_after_delay(patience_ms / 1_000),
            before_sleep=tell,
            reraise=True,
        ):
            with attempt:
                try:
                    await prepare()
                finally:
                    leave_if_cancelled()
    except Unreachable as error:
        raise error.mistake from error


def _may_mend(error: BaseException) -> bool:
    return isinstance(error, StoreUnavailable) and not (isinstance(error, Unreachable) and error.stays)


@contextmanager
def on_signal(stop: Callable[[], object], limit_s: float | None = None) -> Iterator[None]:
    """Call ``stop`` on SIGTERM and SIGINT; a second signal ends the process as if it had been killed.

    With a limit, the process ends at the latest that long after the first, even if the block has ended by then: threads
    that never return would keep it alive.
    """
    loop = asyncio.get_running_loop()
    stopping = False

    def receive(number: int) -> None:
        nonlocal stopping
        if stopping:
            sys.stderr.write("hascheduler: second signal, leaving at once\n")
            os._exit(128 + number)
        stopping = True
        log.info("stopping", signal=signal.Signals(number).name)
        if limit_s is not None:
            # A thread, because the loop itself may hang.
            limit = threading.Timer(limit_s, _end_anyhow, (loop, limit_s))
            limit.daemon = True
            limit.start()
        stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, receive, number)
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


def _end_anyhow(loop: asyncio.AbstractEventLoop, limit_s: float) -> None:
    """End the process, and log what it waits for."""
    try:
        tasks = sorted(task.get_name() for task in asyncio.all_tasks(loop))
        threads = sorted(thread.name for thread in threading.enumerate() if not thread.daemon)
        log.error("stop_timed_out", limit_s=limit_s, tasks=tasks[:_NAMED_MAX], threads=threads[:_NAMED_MAX])
    finally:
        os._exit(1)
